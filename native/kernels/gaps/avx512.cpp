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

// The sums of `kRows` rows: dots[r] = rows[r] . rows[r + 1] and norms[r] = rows[r + 1] . rows[r + 1]; kFirst: before
// these norms that of rows[0]. Every row is read once for all its sums: with a pair at a time it is the loads, not the
// arithmetic, that take the time.
template <size_t kRows, bool kFirst>
struct Group {
  static constexpr size_t kNorms = kRows - 1 + (kFirst ? 1 : 0);
  __m512 dot[kRows - 1][4];
  __m512 norm[kNorms][4];

  Group() {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows - 1; ++r) dot[r][j] = _mm512_setzero_ps();
#pragma GCC unroll 4
      for (size_t r = 0; r < kNorms; ++r) norm[r][j] = _mm512_setzero_ps();
    }
  }
  // `read(r)` is the block of row r that accumulator j is due.
  template <typename Read, typename Add>
  void add(size_t j, Read&& read, Add&& fma) {
    __m512 before = read(0);
    if constexpr (kFirst) norm[0][j] = fma(before, before, norm[0][j]);
#pragma GCC unroll 4
    for (size_t r = 1; r < kRows; ++r) {
      const __m512 row = read(r);
      __m512& sum = norm[r - 1 + (kFirst ? 1 : 0)][j];
      dot[r - 1][j] = fma(before, row, dot[r - 1][j]);
      sum = fma(row, row, sum);
      before = row;
    }
  }
  template <typename Read>
  void add(size_t j, Read&& read) {
    add(j, read, [](__m512 a, __m512 b, __m512 sum) { return _mm512_fmadd_ps(a, b, sum); });
  }
  // The lanes outside of the mask stay as they are.
  template <typename Read>
  void add_masked(size_t j, __mmask16 mask, Read&& read) {
    add(j, read, [mask](__m512 a, __m512 b, __m512 sum) { return _mm512_mask3_fmadd_ps(a, b, sum, mask); });
  }
  // Whole lines were added: what accumulator j is due lies in the upper lanes of sum j and the lower ones of the next.
  void turn(size_t words) {
    const __m512i from = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                          _mm512_set1_epi32(static_cast<int>(words)));
    const auto each = [from](__m512(&sums)[4]) {
      const __m512 first = sums[0];
      sums[0] = _mm512_permutex2var_ps(sums[0], from, sums[1]);
      sums[1] = _mm512_permutex2var_ps(sums[1], from, sums[2]);
      sums[2] = _mm512_permutex2var_ps(sums[2], from, sums[3]);
      sums[3] = _mm512_permutex2var_ps(sums[3], from, first);
    };
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows - 1; ++r) each(dot[r]);
#pragma GCC unroll 4
    for (size_t r = 0; r < kNorms; ++r) each(norm[r]);
  }
  void store(float* dots, float* norms) const {
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows - 1; ++r) dots[r] = fold(dot[r]);
#pragma GCC unroll 4
    for (size_t r = 0; r < kNorms; ++r) norms[r] = fold(norm[r]);
  }
};

// Rows that all begin `words` floats behind the start of a cache line (0: at one, or not all alike). A load from there
// would touch two lines, so these are added line by line, and `turn` puts each element's product where it is due: the
// same additions in the same order. kWhole: d is a multiple of four lines, as it is for nearly every encoder; then all
// sums stay in registers.
template <size_t kRows, bool kFirst, bool kWhole, bool kShifted>
inline void group(const float* const* rows, size_t words, size_t d, float* dots, float* norms) {
  Group<kRows, kFirst> sums;
  const size_t end = words + d;  // from the start of the first line
  size_t i = 0;
  const auto line = [&](size_t r, size_t j) { return rows[r] - words + i + j * kLanes; };
  const auto masked = [&](size_t j, __mmask16 mask) {
    sums.add_masked(j, mask, [&](size_t r) { return _mm512_maskz_loadu_ps(mask, line(r, j)); });
  };
  const auto full = [&](size_t j) { sums.add(j, [&](size_t r) { return _mm512_loadu_ps(line(r, j)); }); };
  const auto rest = [&](size_t from) {
#pragma GCC unroll 4
    for (size_t j = from; j < 4; ++j) {
      if (i + j * kLanes < end) masked(j, mask_of(end - i - j * kLanes));
    }
  };
  if constexpr (kShifted) {
    const auto inside = static_cast<__mmask16>(0xffffu << words);
    masked(0, kWhole ? inside : static_cast<__mmask16>(inside & mask_of(end)));
    if constexpr (kWhole) {
      full(1), full(2), full(3);
    } else {
      rest(1);
    }
    i = 4 * kLanes;
  }
  for (; i + 4 * kLanes <= end; i += 4 * kLanes) full(0), full(1), full(2), full(3);
  if constexpr (kWhole) {
    if constexpr (kShifted) masked(0, mask_of(words));
  } else {
    rest(0);
  }
  if constexpr (kShifted) sums.turn(words);
  sums.store(dots, norms);
}

template <bool kWhole, bool kShifted>
void groups(const float* const* rows, size_t count, size_t words, size_t d, float* dots, float* norms) {
  group<3, true, kWhole, kShifted>(rows, words, d, dots, norms);
  size_t i = 2;
  for (; i + 4 <= count; i += 3) group<4, false, kWhole, kShifted>(rows + i, words, d, dots + i, norms + i + 1);
  if (i + 3 <= count) {
    group<3, false, kWhole, kShifted>(rows + i, words, d, dots + i, norms + i + 1);
    i += 2;
  }
  if (i + 2 <= count) group<2, false, kWhole, kShifted>(rows + i, words, d, dots + i, norms + i + 1);
}

}  // namespace

void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms) {
  if (count == 0) return;
  const auto behind_line = [](const float* row) { return reinterpret_cast<uintptr_t>(row) % kLineBytes; };
  const size_t bytes = behind_line(rows[0]);
  bool alike = bytes % sizeof(float) == 0;
  for (size_t i = 1; alike && i < count; ++i) alike = behind_line(rows[i]) == bytes;
  const size_t words = alike ? bytes / sizeof(float) : 0;
  if (count < 3) {
    const float* const two[2] = {rows[0], rows[count - 1]};
    float pair[2];
    float dot;
    group<2, true, false, false>(two, 0, d, &dot, pair);
    norms[0] = pair[0];
    if (count == 2) {
      norms[1] = pair[1];
      *dots = dot;
    }
    return;
  }
  const bool whole = d > 0 && d % (4 * kLanes) == 0;
  const auto run = words > 0 ? (whole ? groups<true, true> : groups<false, true>)
                             : (whole ? groups<true, false> : groups<false, false>);
  run(rows, count, words, d, dots, norms);
}

void cosines(const float* dots, const float* norms, size_t count, float* out) {
  if (count < 2) return;
  constexpr size_t kWidth = 8;
  const __m512d most = _mm512_set1_pd(1.0);
  const __m512d least = _mm512_set1_pd(-1.0);
  const auto low = [](size_t left) { return static_cast<__mmask8>(left >= kWidth ? 0xffu : (1u << left) - 1u); };
  const auto load = [&](const float* p, size_t left) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_maskz_loadu_ps(low(left), p));
  };
  const auto root = [](__m512d v) { return _mm512_maskz_sqrt_pd(0xff, v); };
  __m512d here = root(load(norms, count));
  for (size_t i = 0; i + 1 < count; i += kWidth) {
    const size_t left = count - i;  // norms from i on; 2 at least
    const __m512d next = left > kWidth ? root(load(norms + i + kWidth, left - kWidth)) : here;
    const __m512i joined = _mm512_maskz_alignr_epi64(0xff, _mm512_castpd_si512(next), _mm512_castpd_si512(here), 1);
    const __m512d lengths = _mm512_mul_pd(here, _mm512_castsi512_pd(joined));
    const __m512d cosine = _mm512_div_pd(load(dots + i, left - 1), lengths);
    const __m512d clipped = _mm512_maskz_max_pd(0xff, least, _mm512_maskz_min_pd(0xff, most, cosine));
    _mm256_mask_storeu_ps(out + i, low(left - 1), _mm512_maskz_cvtpd_ps(0xff, clipped));
    here = next;
  }
}

}  // namespace finch::avx512

#endif  // x86-64
