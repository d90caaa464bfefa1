// Family scan, i8 with the mixed dot products of Armv8.6 (i8mm): four products of uint8 and int8 summed into int32 at
// once, so rows are read as they are stored.
#if defined(__aarch64__) || defined(_M_ARM64)

#include "kernels/scan/neon.hpp"

namespace finch {
namespace {

struct MultiplyI8 {
  static constexpr size_t kStep = 16;
  static constexpr bool kBias = true;
  using Element = int8_t;
  using Row = uint8x16_t;
  using Query = int8x16_t;
  static uint8x16_t load_row(const uint8_t* codes) { return vld1q_u8(codes); }
  static int8x16_t load_query(const int8_t* query) { return vld1q_s8(query); }
  static int32x4_t multiply_add(int32x4_t sum, uint8x16_t row, int8x16_t query) { return vusdotq_s32(sum, row, query); }
};

struct Words : WordsI8 {
  using Group = uint8x16_t;
  static uint8x16_t load_group(const uint32_t* row) { return vreinterpretq_u8_u32(vld1q_u32(row)); }
  template <size_t Lane>
  static int32x4_t multiply_lane(int32x4_t sum, uint8x16_t x, int8x16_t q) {
    return vsudotq_laneq_s32(sum, q, x, Lane);
  }
};

using Few = FewInteger<MultiplyI8>;
using Panel = PanelScan<PanelInteger<Words>>;

}  // namespace

namespace neoni8mm {

extern constexpr ScanFormat scan_i8 = {Few::bytes,    Few::prepare, FewScan<Few>::run,
                                       Panel::kPanel, Panel::bytes, pack_groups_i8<Panel>,
                                       Panel::run,    nullptr,      nullptr};

}  // namespace neoni8mm
}  // namespace finch
#endif
