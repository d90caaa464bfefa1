// Family scan, bf16 with the dot products of Armv8.6: two products of bf16 summed into float32 at once. Queries are
// rounded to bf16 too.
#if defined(__aarch64__) || defined(_M_ARM64)

#include "kernels/scan/neon.hpp"

namespace finch {
namespace {

inline bfloat16x8_t load_eight(const uint16_t* codes) { return vreinterpretq_bf16_u16(vld1q_u16(codes)); }

struct Few : FewFloatSums {
  static constexpr size_t kStep = 8, kCodeBytes = 2;
  static constexpr bool kPadded = true;
  using Row = bfloat16x8_t;
  using Query = bfloat16x8_t;
  static size_t bytes(size_t d) { return prepared_bf16_bytes(d); }
  static bfloat16x8_t load_row(const void* row, size_t i) { return load_eight(static_cast<const uint16_t*>(row) + i); }
  static bfloat16x8_t load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static bfloat16x8_t load_query(const char* query, size_t i) { return load_row(query, i); }
  static bfloat16x8_t load_query_tail(const char* query, size_t i, size_t) { return load_row(query, i); }
  static float32x4_t multiply_add(float32x4_t sum, bfloat16x8_t row, bfloat16x8_t query) {
    return vbfdotq_f32(sum, query, row);
  }
};

struct Pairs : PanelFloatBase {
  using Word = uint32_t;
  static constexpr size_t kGroup = 4;
  using Vector = bfloat16x8_t;
  using Group = bfloat16x8_t;
  static size_t words(size_t d) { return round_up(d, 8) / 2; }
  static bfloat16x8_t load(const uint32_t* packed) { return vreinterpretq_bf16_u32(vld1q_u32(packed)); }
  static bfloat16x8_t load_group(const uint32_t* row) { return load(row); }
  template <size_t Lane>
  static float32x4_t multiply_lane(float32x4_t sum, bfloat16x8_t x, bfloat16x8_t q) {
    return vbfdotq_laneq_f32(sum, q, x, Lane);
  }
};
using Panel = PanelScan<Pairs>;

// Whole groups: the words that pack_words leaves are zeros.
void pack(const float* queries, size_t count, size_t d, void* out) {
  std::memset(out, 0, Panel::bytes(d));
  pack_words<PackBf16>(queries, count, d, Panel::kPanel, static_cast<uint32_t*>(out));
}

}  // namespace

namespace neonbf16 {

extern constexpr ScanFormat scan_bf16 = {Few::bytes, prepare_bf16, FewScan<Few>::run, Panel::kPanel, Panel::bytes,
                                         pack,       Panel::run,   nullptr,           nullptr};

}  // namespace neonbf16
}  // namespace finch
#endif
