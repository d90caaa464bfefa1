// What the AArch64 files of family scan share. Included by them alone.
#pragma once

#include <arm_neon.h>

#include "kernels/scan/prepare.hpp"
#include "kernels/scan/tile.hpp"

namespace finch {
namespace {

// The order of dot/dot.hpp.
inline float sum_lanes(float32x4_t s) {
  const float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
  return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

// Four sums, in whatever order is quickest (not the canonical one).
inline float32x4_t sum_four(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}
inline int32x4_t sum_four(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}
inline void store_four(float* out, float32x4_t four) { vst1q_f32(out, four); }
inline void store_four(int32_t* out, int32x4_t four) { vst1q_s32(out, four); }

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

// --- few: rows x chains or queries that fit 32 registers beside the loads
// ---------------------------------------------
struct FewTiles {
  static constexpr size_t kChains = 4;
  static constexpr size_t kRowsOf1 = 4, kRowsOf2 = 8, kRowsOf4 = 5, kRowsOf8 = 2;
};

struct FewFloatSums : FewTiles {
  using Accumulator = float32x4_t;
  static float32x4_t zero() { return vdupq_n_f32(0.0f); }
  template <size_t C>
  static float canonical(const float32x4_t (&sum)[C], const char*, size_t, const float*, size_t) {
    static_assert(C == 4);
    return sum_lanes(vaddq_f32(vaddq_f32(sum[0], sum[1]), vaddq_f32(sum[2], sum[3])));
  }
  template <size_t Q>
  static void reduce(const float32x4_t (&sum)[Q][1], const char* const*, size_t, const float*, size_t, float* out) {
    sums(sum, out);
  }
};

// Op: kStep, Element (of the prepared query), Row, Query, load_row, load_query, multiply_add, kBias (whether rows keep
// their 128, which the sums then start by taking back).
template <typename Op>
struct FewInteger : FewTiles {
  static constexpr size_t kStep = Op::kStep, kCodeBytes = 1;
  static constexpr bool kPadded = true;
  using Row = typename Op::Row;
  using Query = typename Op::Query;
  using Accumulator = int32x4_t;
  using Element = typename Op::Element;
  static size_t length(size_t d) { return round_up(d, 64); }
  static size_t bytes(size_t d) { return 64 + length(d) * sizeof(Element); }
  static void prepare(const float* query, size_t d, void* out) {
    prepare_i8<Element>(query, d, length(d), out);
    if (!Op::kBias) std::memset(out, 0, sizeof(int32_t));
  }
  static int32x4_t zero() { return vdupq_n_s32(0); }
  static Row load_row(const void* row, size_t i) { return Op::load_row(static_cast<const uint8_t*>(row) + i); }
  static Row load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static Query load_query(const char* query, size_t i) {
    return Op::load_query(reinterpret_cast<const Element*>(query + 64) + i);
  }
  static Query load_query_tail(const char* query, size_t i, size_t) { return load_query(query, i); }
  static int32x4_t multiply_add(int32x4_t sum, Row row, Query query) { return Op::multiply_add(sum, row, query); }
  template <size_t C>
  static float canonical(const int32x4_t (&sum)[C], const char* query, size_t, const float* scales, size_t row) {
    int32x4_t s = sum[0];
    for (size_t j = 1; j < C; ++j) s = vaddq_s32(s, sum[j]);
    return score_i8(vaddvq_s32(s), query, scales[row]);
  }
  template <size_t Q>
  static void reduce(const int32x4_t (&sum)[Q][1], const char* const* queries, size_t, const float* scales, size_t row,
                     float* out) {
    int32_t whole[Q];
    sums(sum, whole);
    for (size_t q = 0; q < Q; ++q) out[q] = score_i8(whole[q], queries[q], scales[row]);
  }
};

// --- panels: 8 x 2 accumulators, a vector of each row, two of queries: 26 registers
// ----------------------------------- Rows are multiplied lane by lane of one load: a broadcast from memory would cost
// an arithmetic instruction.
struct PanelBase {
  static constexpr size_t kWidth = 4, kVectors = 2, kRows = 8;
  static float32x4_t load_bars(const float* bars) { return vld1q_f32(bars); }
  static uint32_t reach(float32x4_t score, float32x4_t bar) {
    constexpr uint32_t kBits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgeq_f32(score, bar), vld1q_u32(kBits)));
  }
  static void store(float* out, float32x4_t score) { vst1q_f32(out, score); }
};

struct PanelFloatBase : PanelBase {
  static constexpr size_t kHeader = 0;
  using Accumulator = float32x4_t;
  static float32x4_t start(const char*, size_t) { return vdupq_n_f32(0.0f); }
  static float32x4_t score(float32x4_t sum, const float*, size_t) { return sum; }
};

// Op: Word, Vector, Group, kGroup, words, load, load_group, multiply_lane.
template <typename Op>
struct PanelInteger : PanelBase, Op {
  static constexpr size_t kHeader = kWidth * kVectors * sizeof(int32_t);
  using Accumulator = int32x4_t;
  static int32x4_t start(const char* header, size_t c) {
    return vld1q_s32(reinterpret_cast<const int32_t*>(header) + c * kWidth);
  }
  static float32x4_t score(int32x4_t sum, const float* scales, size_t row) {
    return vmulq_n_f32(vcvtq_f32_s32(sum), scales[row]);
  }
};

// Four int8 in a word, four words in a group.
struct WordsI8 {
  using Word = uint32_t;
  static constexpr size_t kGroup = 4;
  using Vector = int8x16_t;
  static size_t words(size_t d) { return round_up(d, 16) / 4; }
  static int8x16_t load(const uint32_t* packed) { return vreinterpretq_s8_u32(vld1q_u32(packed)); }
};

// Whole groups: the words that pack_i8 leaves are zeros.
template <typename Panel>
void pack_groups_i8(const float* queries, size_t count, size_t d, void* out) {
  std::memset(out, 0, Panel::bytes(d));
  pack_i8<int8_t>(queries, count, d, Panel::kPanel, out);
}

}  // namespace
}  // namespace finch
