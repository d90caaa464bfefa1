// Family scan, i8 with AVX-512 VNNI: four products of uint8 and int8 summed into int32 at once, without saturation.
#if defined(__x86_64__) || defined(_M_X64)

#include "kernels/scan/avx512.hpp"

namespace finch {
namespace {

struct MultiplyI8 {
  static constexpr size_t kStep = 64, kPerWord = 4;
  using Element = int8_t;
  static __m512i load_row(const uint8_t* codes) { return _mm512_load_si512(codes); }
  static __m512i multiply_add(__m512i sum, __m512i row, __m512i query) {
#if defined(__GNUC__) && !defined(__clang__)
    // gcc 12 keeps arrays of sums in memory around the intrinsic: half the speed.
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(row), "v"(query));
    return sum;
#else
    return _mm512_dpbusd_epi32(sum, row, query);
#endif
  }
};

using Few = FewInteger<MultiplyI8>;
using Panel = PanelScan<PanelInteger<MultiplyI8, 12>>;

void pack(const float* queries, size_t count, size_t d, void* out) {
  pack_i8<int8_t>(queries, count, d, Panel::kPanel, out);
}

}  // namespace

namespace avx512vnni {

extern constexpr ScanFormat scan_i8 = {Few::bytes, Few::prepare, FewScan<Few>::run, Panel::kPanel, Panel::bytes,
                                       pack,       Panel::run,   nullptr,           nullptr};

}  // namespace avx512vnni
}  // namespace finch
#endif
