#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include <cstdint>

#include "kernels/gaps/gaps.hpp"

namespace finch::avx512 {
namespace {

constexpr size_t kLanes = 16;
constexpr size_t kLineBytes = 64;

inline __mmask16 mask_of(size_t left) { return static_cast<__mmask16>(left >= kLanes ? 0xffffu : (1u << left) - 1u); }

// Masked extractions, since gcc 12 warns falsely about the plain ones (-Wmaybe-uninitialized).
inline float fold(const __m512 (&a)[4]) {
  const __m512 s = _mm512_add_ps(_mm512_add_ps(a[0], a[1]), _mm512_add_ps(a[2], a[3]));
  const __m256 h = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, s, 0), _mm512_maskz_extractf32x8_ps(0xff, s, 1));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

// The sums of `kRows` rows: dots[r] = rows[r] . rows[r + 1] and norms[r] = rows[r + 1] . rows[r + 1]. Every row is read
// once for all its sums: with a pair at a time it is the loads, not the arithmetic, that take the time.
template <size_t kRows>
struct Group {
  __m512 dot[kRows - 1][4];
  __m512 norm[kRows - 1][4];

  Group() {
    for (size_t r = 0; r < kRows - 1; ++r) {
      for (size_t j = 0; j < 4; ++j) dot[r][j] = norm[r][j] = _mm512_setzero_ps();
    }
  }
  // `read(r)` is the block of row r that accumulator j is due.
  template <typename Read>
  void add(size_t j, Read&& read) {
    __m512 before = read(0);
    for (size_t r = 1; r < kRows; ++r) {
      const __m512 row = read(r);
      dot[r - 1][j] = _mm512_fmadd_ps(before, row, dot[r - 1][j]);
      norm[r - 1][j] = _mm512_fmadd_ps(row, row, norm[r - 1][j]);
      before = row;
    }
  }
  void add_rest(const float* const* rows, size_t i, size_t d) {
    for (size_t j = 0; j < 4; ++j) {
      if (i + j * kLanes >= d) return;
      const __mmask16 mask = mask_of(d - i - j * kLanes);
      add(j, [&](size_t r) { return _mm512_maskz_loadu_ps(mask, rows[r] + i + j * kLanes); });
    }
  }
  void store(float* dots, float* norms) const {
    for (size_t r = 0; r < kRows - 1; ++r) {
      dots[r] = fold(dot[r]);
      norms[r] = fold(norm[r]);
    }
  }
};

template <size_t kRows>
inline void group(const float* const* rows, size_t d, float* dots, float* norms) {
  Group<kRows> sums;
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
    for (size_t j = 0; j < 4; ++j) {
      sums.add(j, [&](size_t r) { return _mm512_loadu_ps(rows[r] + i + j * kLanes); });
    }
  }
  sums.add_rest(rows, i, d);
  sums.store(dots, norms);
}

// As group, for rows that all begin `words` floats behind the start of a cache line: a load from there would touch two
// lines, so whole lines are read and pairs of them are joined.
template <size_t kRows>
inline void shifted_group(const float* const* rows, size_t words, size_t d, float* dots, float* norms) {
  const __m512i from = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                        _mm512_set1_epi32(static_cast<int>(words)));
  Group<kRows> sums;
  __m512 line[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    line[r] = _mm512_maskz_load_ps(static_cast<__mmask16>(0xffffu << words), rows[r] - words);
  }
  size_t i = 0;
  // The last line read ends inside the row.
  for (; i + 4 * kLanes + kLanes - words <= d; i += 4 * kLanes) {
    for (size_t j = 0; j < 4; ++j) {
      sums.add(j, [&](size_t r) {
        const __m512 next = _mm512_load_ps(rows[r] - words + i + (j + 1) * kLanes);
        const __m512 block = _mm512_permutex2var_ps(line[r], from, next);
        line[r] = next;
        return block;
      });
    }
  }
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
    for (size_t j = 0; j < 4; ++j) {
      sums.add(j, [&](size_t r) { return _mm512_loadu_ps(rows[r] + i + j * kLanes); });
    }
  }
  sums.add_rest(rows, i, d);
  sums.store(dots, norms);
}

}  // namespace

void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms) {
  if (count == 0) return;
  const float* const first[2] = {rows[0], rows[0]};
  float itself;
  group<2>(first, d, &itself, norms);
  const auto behind_line = [](const float* row) { return reinterpret_cast<uintptr_t>(row) % kLineBytes; };
  const size_t bytes = behind_line(rows[0]);
  bool alike = bytes != 0 && bytes % sizeof(float) == 0;
  for (size_t i = 1; alike && i < count; ++i) alike = behind_line(rows[i]) == bytes;
  size_t i = 0;
  if (alike) {
    for (; i + 4 <= count; i += 3) {
      shifted_group<4>(rows + i, bytes / sizeof(float), d, dots + i, norms + i + 1);
    }
  }
  for (; i + 4 <= count; i += 3) group<4>(rows + i, d, dots + i, norms + i + 1);
  for (; i + 2 <= count; ++i) group<2>(rows + i, d, dots + i, norms + i + 1);
}

}  // namespace finch::avx512

#endif  // x86-64
