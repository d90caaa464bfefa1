// Family scan with AVX2, FMA and F16C: bf16 and f16 are widened to float32, i8 to int16.
#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/scan/prepare.hpp"
#include "kernels/scan/tile.hpp"

namespace finch {
namespace {

// Loading 8 words from kMask + 8 - n gives n lanes of ones.
alignas(64) constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

// Masked loads neither read nor fault beyond the lanes wanted.
inline __m256 load_part(const float* p, size_t lanes) {
  return _mm256_maskload_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - lanes)));
}

// The order of dot/dot.hpp.
inline float sum_lanes(__m256 s) {
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  t = _mm_add_ss(t, _mm_movehdup_ps(t));
  return _mm_cvtss_f32(t);
}

inline int32_t sum_lanes(__m256i s) {
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
  t = _mm_add_epi32(t, _mm_unpackhi_epi64(t, t));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 1));
  return _mm_cvtsi128_si32(t);
}

// Four sums in 128 bits, in whatever order is quickest (not the canonical one).
inline __m128 sum_four(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 v = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
inline __m128i sum_four(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i v = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
  return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
inline void store_four(float* out, __m128 four) { _mm_storeu_ps(out, four); }
inline void store_four(int32_t* out, __m128i four) { _mm_storeu_si128(reinterpret_cast<__m128i*>(out), four); }

template <typename Sum, typename Lanes, size_t Q>
inline void sums(const Lanes (&v)[Q][1], Sum* out) {
  static_assert(Q == 2 || Q == 4 || Q == 8);
  if constexpr (Q == 2) {
    Sum four[4];
    store_four(four, sum_four(v[0][0], v[1][0], v[0][0], v[1][0]));
    out[0] = four[0];
    out[1] = four[1];
  } else {
    for (size_t q = 0; q < Q; q += 4) {
      store_four(out + q, sum_four(v[q][0], v[q + 1][0], v[q + 2][0], v[q + 3][0]));
    }
  }
}

// --- few: rows x chains or queries, so that accumulators, a row and what queries are no operands fit 16 registers ----
struct FewTiles {
  static constexpr size_t kChains = 4;
  static constexpr size_t kRowsOf1 = 3, kRowsOf2 = 6, kRowsOf4 = 2, kRowsOf8 = 1;
};

struct LoadF32 {
  static constexpr bool kPadded = false;
  static constexpr size_t kCodeBytes = 4;
  static __m256 load(const void* row, size_t i) { return _mm256_loadu_ps(static_cast<const float*>(row) + i); }
  static __m256 load_tail(const void* row, size_t i, size_t lanes) {
    return load_part(static_cast<const float*>(row) + i, lanes);
  }
};
struct LoadBf16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static __m256 load(const void* row, size_t i) {
    const __m128i codes = _mm_load_si128(reinterpret_cast<const __m128i*>(static_cast<const uint16_t*>(row) + i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
  }
  static __m256 load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};
struct LoadF16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static __m256 load(const void* row, size_t i) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(static_cast<const uint16_t*>(row) + i)));
  }
  static __m256 load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};

template <typename Load>
struct FewFloat : FewTiles {
  static constexpr size_t kStep = 8;
  static constexpr bool kPadded = Load::kPadded;
  static constexpr size_t kCodeBytes = Load::kCodeBytes;
  using Row = __m256;
  using Query = __m256;
  using Accumulator = __m256;
  static size_t bytes(size_t d) { return kPadded ? padded_f32_bytes(d) : prepared_f32_bytes(d); }
  static __m256 zero() { return _mm256_setzero_ps(); }
  static __m256 load_row(const void* row, size_t i) { return Load::load(row, i); }
  static __m256 load_row_tail(const void* row, size_t i, size_t lanes) { return Load::load_tail(row, i, lanes); }
  static __m256 load_query(const char* query, size_t i) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(query) + i);
  }
  static __m256 load_query_tail(const char* query, size_t i, size_t lanes) {
    return load_part(reinterpret_cast<const float*>(query) + i, lanes);
  }
  static __m256 multiply_add(__m256 sum, __m256 row, __m256 query) { return _mm256_fmadd_ps(query, row, sum); }
  template <size_t C>
  static float canonical(const __m256 (&sum)[C], const char*, size_t, const float*, size_t) {
    static_assert(C == 4);
    return sum_lanes(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
  }
  template <size_t Q>
  static void reduce(const __m256 (&sum)[Q][1], const char* const*, size_t, const float*, size_t, float* out) {
    sums(sum, out);
  }
};

// int16 products of pairs, summed in int32: exact.
inline __m256i widen_i8(const uint8_t* codes) {
  return _mm256_cvtepu8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(codes)));
}
inline __m256i multiply_add_i16(__m256i sum, __m256i row, __m256i query) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(row, query));
}

struct FewI8 : FewTiles {
  static constexpr size_t kStep = 16, kCodeBytes = 1;
  static constexpr bool kPadded = true;
  using Row = __m256i;
  using Query = __m256i;
  using Accumulator = __m256i;
  static size_t length(size_t d) { return round_up(d, 64); }
  static size_t bytes(size_t d) { return 64 + length(d) * sizeof(int16_t); }
  static void prepare(const float* query, size_t d, void* out) { prepare_i8<int16_t>(query, d, length(d), out); }
  static __m256i zero() { return _mm256_setzero_si256(); }
  static __m256i load_row(const void* row, size_t i) { return widen_i8(static_cast<const uint8_t*>(row) + i); }
  static __m256i load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static __m256i load_query(const char* query, size_t i) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + 64 + i * sizeof(int16_t)));
  }
  static __m256i load_query_tail(const char* query, size_t i, size_t) { return load_query(query, i); }
  static __m256i multiply_add(__m256i sum, __m256i row, __m256i query) { return multiply_add_i16(sum, row, query); }
  template <size_t C>
  static float canonical(const __m256i (&sum)[C], const char* query, size_t, const float* scales, size_t row) {
    __m256i s = sum[0];
    for (size_t j = 1; j < C; ++j) s = _mm256_add_epi32(s, sum[j]);
    return score_i8(sum_lanes(s), query, scales[row]);
  }
  template <size_t Q>
  static void reduce(const __m256i (&sum)[Q][1], const char* const* queries, size_t, const float* scales, size_t row,
                     float* out) {
    int32_t whole[Q];
    sums(sum, whole);
    for (size_t q = 0; q < Q; ++q) out[q] = score_i8(whole[q], queries[q], scales[row]);
  }
};

// --- panels: 6 x 2 accumulators, two vectors of queries, one broadcast (and one product of integers): 16 registers
// ----
struct PanelBase {
  static constexpr size_t kWidth = 8, kVectors = 2, kRows = 6;
  using Word = uint32_t;
  static __m256 load_bars(const float* bars) { return _mm256_loadu_ps(bars); }
  static uint32_t reach(__m256 score, __m256 bar) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(score, bar, _CMP_GE_OQ)));
  }
  static void store(float* out, __m256 score) { _mm256_store_ps(out, score); }
};

struct PanelF32 : PanelBase {
  static constexpr size_t kHeader = 0;
  using Vector = __m256;
  using Accumulator = __m256;
  static size_t words(size_t d) { return d; }
  static __m256 start(const char*, size_t) { return _mm256_setzero_ps(); }
  static __m256 load(const uint32_t* packed) { return _mm256_load_ps(reinterpret_cast<const float*>(packed)); }
  static __m256 broadcast(const uint32_t* word) { return _mm256_broadcast_ss(reinterpret_cast<const float*>(word)); }
  static __m256 multiply_add(__m256 sum, __m256 x, __m256 q) { return _mm256_fmadd_ps(x, q, sum); }
  static __m256 score(__m256 sum, const float*, size_t) { return sum; }
};

struct PanelI16 : PanelBase {
  static constexpr size_t kHeader = kWidth * kVectors * sizeof(int32_t);
  using Vector = __m256i;
  using Accumulator = __m256i;
  static size_t words(size_t d) { return (d + 1) / 2; }
  static __m256i start(const char* header, size_t c) { return load(header + c * sizeof(__m256i)); }
  static __m256i load(const void* packed) { return _mm256_load_si256(static_cast<const __m256i*>(packed)); }
  static __m256i broadcast(const uint32_t* word) {
    uint32_t w;
    std::memcpy(&w, word, sizeof(w));
    return _mm256_set1_epi32(static_cast<int>(w));
  }
  static __m256i multiply_add(__m256i sum, __m256i x, __m256i q) { return multiply_add_i16(sum, x, q); }
  static __m256 score(__m256i sum, const float* scales, size_t row) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_broadcast_ss(scales + row));
  }
};

using F32 = PanelScan<PanelF32>;
using I16 = PanelScan<PanelI16>;

void pack_f32(const float* queries, size_t count, size_t d, void* out) {
  pack_words<PackF32>(queries, count, d, F32::kPanel, static_cast<uint32_t*>(out));
}
void pack_i16(const float* queries, size_t count, size_t d, void* out) {
  pack_i8<int16_t>(queries, count, d, I16::kPanel, out);
}

size_t wide_f32_bytes(size_t d) { return round_up(d, 16) * sizeof(float); }
template <typename Load>
void widen_f32(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 8) _mm256_store_ps(static_cast<float*>(out) + i, Load::load(row, i));
}
size_t wide_i16_bytes(size_t d) { return round_up(d, 32) * sizeof(int16_t); }
void widen_i16(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 16) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(static_cast<int16_t*>(out) + i),
                       widen_i8(static_cast<const uint8_t*>(row) + i));
  }
}

template <typename Load>
constexpr ScanFormat widened() {
  return widened_format<FewFloat<Load>, F32>(prepare_padded_f32, pack_f32, wide_f32_bytes, widen_f32<Load>);
}

}  // namespace

namespace avx2 {

extern constexpr ScanFormats scan = {
    direct_format<FewFloat<LoadF32>, F32>(prepare_f32, pack_f32),
    widened<LoadBf16>(),
    widened<LoadF16>(),
    widened_format<FewI8, I16>(FewI8::prepare, pack_i16, wide_i16_bytes, widen_i16),
};

}  // namespace avx2
}  // namespace finch
#endif
