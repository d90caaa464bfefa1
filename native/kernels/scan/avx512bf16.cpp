// Family scan, bf16 with AVX-512 BF16: two products of bf16 summed into float32 at once. Queries are rounded to bf16
// too.
#if defined(__x86_64__) || defined(_M_X64)

#include "kernels/scan/avx512.hpp"

namespace finch {
namespace {

inline __m512 multiply_add_pairs(__m512 sum, __m512i row, __m512i query) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(row), reinterpret_cast<__m512bh>(query));
}

struct Few {
  static constexpr size_t kStep = 32, kChains = 4, kCodeBytes = 2;
  static constexpr size_t kRowsOf1 = 4, kRowsOf2 = 8, kRowsOf4 = 6, kRowsOf8 = 3;
  static constexpr bool kPadded = true;
  using Row = __m512i;
  using Query = __m512i;
  using Accumulator = __m512;
  static size_t bytes(size_t d) { return prepared_bf16_bytes(d); }
  static __m512 zero() { return _mm512_setzero_ps(); }
  static __m512i load_row(const void* row, size_t i) {
    return _mm512_load_si512(static_cast<const uint16_t*>(row) + i);
  }
  static __m512i load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static __m512i load_query(const char* query, size_t i) {
    return _mm512_loadu_si512(reinterpret_cast<const uint16_t*>(query) + i);
  }
  static __m512i load_query_tail(const char* query, size_t i, size_t) { return load_query(query, i); }
  static __m512 multiply_add(__m512 sum, __m512i row, __m512i query) { return multiply_add_pairs(sum, row, query); }
  template <size_t C>
  static float canonical(const __m512 (&sum)[C], const char*, size_t, const float*, size_t) {
    return sum_lanes(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
  }
  template <size_t Q>
  static void reduce(const __m512 (&sum)[Q][1], const char* const*, size_t, const float*, size_t, float* out) {
    __m512 v[Q];
    for (size_t q = 0; q < Q; ++q) v[q] = sum[q][0];
    sums<AddFloats>(v, out);
  }
};

struct Pairs : PanelFloatBase {
  static constexpr size_t kRows = 12;
  static size_t words(size_t d) { return (d + 1) / 2; }
  static __m512 multiply_add(__m512 sum, __m512i x, __m512i q) { return multiply_add_pairs(sum, x, q); }
};
using Panel = PanelScan<Pairs>;

void pack(const float* queries, size_t count, size_t d, void* out) {
  pack_words<PackBf16>(queries, count, d, Panel::kPanel, static_cast<uint32_t*>(out));
}

}  // namespace

namespace avx512bf16 {

extern constexpr ScanFormat scan_bf16 = {Few::bytes, prepare_bf16, FewScan<Few>::run, Panel::kPanel, Panel::bytes,
                                         pack,       Panel::run,   nullptr,           nullptr};

}  // namespace avx512bf16
}  // namespace finch
#endif
