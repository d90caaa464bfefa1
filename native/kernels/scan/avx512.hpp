// What the AVX-512 files of family scan share. Included by them alone.
#pragma once

#include <immintrin.h>

#include "kernels/scan/prepare.hpp"
#include "kernels/scan/tile.hpp"

namespace finch {
namespace {

// gcc 12 warns falsely of uninitialised values in the plain extractions; the zero-masking forms do not.
inline __m256 low_half(__m512 v) { return _mm512_maskz_extractf32x8_ps(0xFF, v, 0); }
inline __m256 high_half(__m512 v) { return _mm512_maskz_extractf32x8_ps(0xFF, v, 1); }

// Keeps gcc from loading a value that several instructions use anew for each of them.
inline __m512 in_register(__m512 v) {
#if defined(__GNUC__)
  __asm__("" : "+v"(v));
#endif
  return v;
}

// The order of dot/dot.hpp.
inline float sum_lanes(__m512 s) {
  const __m256 u = _mm256_add_ps(low_half(s), high_half(s));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(u), _mm256_extractf128_ps(u, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  t = _mm_add_ss(t, _mm_movehdup_ps(t));
  return _mm_cvtss_f32(t);
}

inline int32_t sum_lanes(__m512i s) {
  const __m256i u =
      _mm256_add_epi32(_mm512_maskz_extracti32x8_epi32(0xFF, s, 0), _mm512_maskz_extracti32x8_epi32(0xFF, s, 1));
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
  t = _mm_add_epi32(t, _mm_unpackhi_epi64(t, t));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 1));
  return _mm_cvtsi128_si32(t);
}

struct AddFloats {
  static __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  static __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
struct AddIntegers {
  static __m512 add(__m512 a, __m512 b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
  static __m256 add(__m256 a, __m256 b) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  }
};

// a, b -> pairs summed: lanes a0+a2, b0+b2, a1+a3, b1+b3 of each 128 bits.
template <typename Add>
inline __m512 fold_two(__m512 a, __m512 b) {
  return Add::add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
template <typename Add>
inline __m512 fold_four(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = fold_two<Add>(a, b);  // per 128 bits: a b a b
  const __m512 cd = fold_two<Add>(c, d);
  return Add::add(_mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd))),
                  _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd))));  // a b c d
}

// Four sums in 128 bits.
template <typename Add>
inline __m128 sum_four(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 v = fold_four<Add>(a, b, c, d);
  const __m256 u = Add::add(low_half(v), high_half(v));
  const __m256 swapped = _mm256_permute2f128_ps(u, u, 1);
  return _mm256_castps256_ps128(Add::add(u, swapped));
}

// Sums of Q accumulators, in whatever order is quickest (not the canonical one).
template <typename Add, size_t Q>
inline void sums(const __m512 (&v)[Q], float* out) {
  static_assert(Q == 2 || Q == 4 || Q == 8);
  if constexpr (Q == 2) {
    const __m512 zero = _mm512_setzero_ps();
    alignas(16) float four[4];
    _mm_store_ps(four, sum_four<Add>(v[0], v[1], zero, zero));
    out[0] = four[0];
    out[1] = four[1];
  } else {
    for (size_t q = 0; q < Q; q += 4) _mm_storeu_ps(out + q, sum_four<Add>(v[q], v[q + 1], v[q + 2], v[q + 3]));
  }
}

inline __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>(0xFFFFu >> (16 - n)); }

// --- few: float32 arithmetic, rows of any format that widens to it ---------------------------------------------------
template <typename Load>
struct FewFloat {
  static constexpr size_t kStep = 16, kChains = 4, kCodeBytes = Load::kCodeBytes;
  static constexpr size_t kRowsOf1 = 4, kRowsOf2 = 8, kRowsOf4 = 6, kRowsOf8 = 3;
  static constexpr bool kPadded = Load::kPadded;
  using Row = __m512;
  using Query = __m512;
  using Accumulator = __m512;
  static size_t bytes(size_t d) { return kPadded ? padded_f32_bytes(d) : prepared_f32_bytes(d); }
  static __m512 zero() { return _mm512_setzero_ps(); }
  static __m512 load_row(const void* row, size_t i) { return Load::load(row, i); }
  static __m512 load_row_tail(const void* row, size_t i, size_t lanes) { return Load::load_tail(row, i, lanes); }
  static __m512 load_query(const char* query, size_t i) {
    return in_register(_mm512_loadu_ps(reinterpret_cast<const float*>(query) + i));
  }
  static __m512 load_query_tail(const char* query, size_t i, size_t lanes) {
    return _mm512_maskz_loadu_ps(first_lanes(lanes), reinterpret_cast<const float*>(query) + i);
  }
  static __m512 multiply_add(__m512 sum, __m512 row, __m512 query) { return _mm512_fmadd_ps(query, row, sum); }
  template <size_t C>
  static float canonical(const __m512 (&sum)[C], const char*, size_t, const float*, size_t) {
    static_assert(C == 4);
    return sum_lanes(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
  }
  template <size_t Q>
  static void reduce(const __m512 (&sum)[Q][1], const char* const*, size_t, const float*, size_t, float* out) {
    __m512 v[Q];
    for (size_t q = 0; q < Q; ++q) v[q] = sum[q][0];
    sums<AddFloats>(v, out);
  }
};

// --- few: integers
// ----------------------------------------------------------------------------------------------------
template <typename Op>
struct FewInteger {
  static constexpr size_t kStep = Op::kStep, kChains = 4, kCodeBytes = 1;
  static constexpr size_t kRowsOf1 = 4, kRowsOf2 = 8, kRowsOf4 = 6, kRowsOf8 = 3;
  static constexpr bool kPadded = true;
  using Row = __m512i;
  using Query = __m512i;
  using Accumulator = __m512i;
  using Element = typename Op::Element;
  static size_t length(size_t d) { return round_up(d, 64); }
  static size_t bytes(size_t d) { return 64 + length(d) * sizeof(Element); }
  static __m512i zero() { return _mm512_setzero_si512(); }
  static __m512i load_row(const void* row, size_t i) { return Op::load_row(static_cast<const uint8_t*>(row) + i); }
  static __m512i load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static __m512i load_query(const char* query, size_t i) {
    return _mm512_loadu_si512(query + 64 + i * sizeof(Element));
  }
  static __m512i load_query_tail(const char* query, size_t i, size_t) { return load_query(query, i); }
  static __m512i multiply_add(__m512i sum, __m512i row, __m512i query) { return Op::multiply_add(sum, row, query); }
  template <size_t C>
  static float canonical(const __m512i (&sum)[C], const char* query, size_t, const float* scales, size_t row) {
    __m512i s = sum[0];
    for (size_t j = 1; j < C; ++j) s = _mm512_add_epi32(s, sum[j]);
    return score_i8(sum_lanes(s), query, scales[row]);
  }
  template <size_t Q>
  static void reduce(const __m512i (&sum)[Q][1], const char* const* queries, size_t, const float* scales, size_t row,
                     float* out) {
    __m512 v[Q];
    for (size_t q = 0; q < Q; ++q) v[q] = _mm512_castsi512_ps(sum[q][0]);
    float bits[Q];
    sums<AddIntegers>(v, bits);
    for (size_t q = 0; q < Q; ++q) out[q] = score_i8(std::bit_cast<int32_t>(bits[q]), queries[q], scales[row]);
  }
  static void prepare(const float* query, size_t d, void* out) { prepare_i8<Element>(query, d, length(d), out); }
};

// --- panels
// -----------------------------------------------------------------------------------------------------------
struct PanelBase {
  static constexpr size_t kWidth = 16, kVectors = 2;
  using Vector = __m512i;
  using Word = uint32_t;
  static __m512i load(const uint32_t* packed) { return _mm512_load_si512(packed); }
  static __m512i broadcast(const uint32_t* word) {
    uint32_t w;
    std::memcpy(&w, word, sizeof(w));
    return _mm512_set1_epi32(static_cast<int>(w));
  }
  static __m512 load_bars(const float* bars) { return _mm512_loadu_ps(bars); }
  static uint32_t reach(__m512 score, __m512 bar) { return _mm512_cmp_ps_mask(score, bar, _CMP_GE_OQ); }
  static void store(float* out, __m512 score) { _mm512_store_ps(out, score); }
};

struct PanelFloatBase : PanelBase {
  static constexpr size_t kHeader = 0;
  using Accumulator = __m512;
  static __m512 start(const char*, size_t) { return _mm512_setzero_ps(); }
  static __m512 score(__m512 sum, const float*, size_t) { return sum; }
};

template <size_t Rows>
struct PanelF32 : PanelFloatBase {
  static constexpr size_t kRows = Rows;
  using Vector = __m512;
  static size_t words(size_t d) { return d; }
  static __m512 load(const uint32_t* packed) { return _mm512_load_ps(packed); }
  static __m512 broadcast(const uint32_t* word) {
    float x;
    std::memcpy(&x, word, sizeof(x));
    return _mm512_set1_ps(x);
  }
  static __m512 multiply_add(__m512 sum, __m512 x, __m512 q) { return _mm512_fmadd_ps(x, q, sum); }
};

template <typename Op, size_t Rows>
struct PanelInteger : PanelBase {
  static constexpr size_t kRows = Rows;
  static constexpr size_t kHeader = kWidth * kVectors * sizeof(int32_t);
  using Accumulator = __m512i;
  static size_t words(size_t d) { return (d + Op::kPerWord - 1) / Op::kPerWord; }
  static __m512i start(const char* header, size_t c) { return _mm512_load_si512(header + c * 64); }
  static __m512i multiply_add(__m512i sum, __m512i x, __m512i q) { return Op::multiply_add(sum, x, q); }
  static __m512 score(__m512i sum, const float* scales, size_t row) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(scales[row]));
  }
};

}  // namespace
}  // namespace finch
