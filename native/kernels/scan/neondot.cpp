// Family scan, i8 with the dot products of Armv8.2: four products of int8 summed into int32 at once. Rows lose their
// bias of 128, so sums start from zero: `few` takes it off as it loads, panels from a copy, once for all of them.
#if defined(__aarch64__) || defined(_M_ARM64)

#include "kernels/scan/neon.hpp"

namespace finch {
namespace {

inline int8x16_t load_signed(const uint8_t* codes) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes), vdupq_n_u8(0x80)));
}

struct MultiplyI8 {
  static constexpr size_t kStep = 16;
  static constexpr bool kBias = false;
  using Element = int8_t;
  using Row = int8x16_t;
  using Query = int8x16_t;
  static int8x16_t load_row(const uint8_t* codes) { return load_signed(codes); }
  static int8x16_t load_query(const int8_t* query) { return vld1q_s8(query); }
  static int32x4_t multiply_add(int32x4_t sum, int8x16_t row, int8x16_t query) { return vdotq_s32(sum, query, row); }
};

struct Words : WordsI8 {
  using Group = int8x16_t;
  static int8x16_t load_group(const uint32_t* row) { return load(row); }
  template <size_t Lane>
  static int32x4_t multiply_lane(int32x4_t sum, int8x16_t x, int8x16_t q) {
    return vdotq_laneq_s32(sum, q, x, Lane);
  }
};

using Few = FewInteger<MultiplyI8>;
using Panel = PanelScan<PanelInteger<Words>>;

void pack(const float* queries, size_t count, size_t d, void* out) {
  pack_groups_i8<Panel>(queries, count, d, out);
  std::memset(out, 0, Panel::kPanel * sizeof(int32_t));
}

size_t wide_bytes(size_t d) { return round_up(d, 64); }
void widen(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 16) {
    vst1q_s8(static_cast<int8_t*>(out) + i, load_signed(static_cast<const uint8_t*>(row) + i));
  }
}

}  // namespace

namespace neondot {

extern constexpr ScanFormat scan_i8 = {Few::bytes, Few::prepare, FewScan<Few>::run, Panel::kPanel, Panel::bytes,
                                       pack,       Panel::run,   wide_bytes,        widen};

}  // namespace neondot
}  // namespace finch
#endif
