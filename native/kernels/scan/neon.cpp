// Family scan for AArch64 NEON: bf16 and f16 are widened to float32, i8 to int16.
#if defined(__aarch64__) || defined(_M_ARM64)

#include "kernels/scan/neon.hpp"

namespace finch {
namespace {

struct LoadF32 {
  static constexpr bool kPadded = false;
  static constexpr size_t kCodeBytes = 4;
  static float32x4_t load(const void* row, size_t i) { return vld1q_f32(static_cast<const float*>(row) + i); }
  static float32x4_t load_tail(const void* row, size_t i, size_t lanes) {
    float x[4] = {};
    std::memcpy(x, static_cast<const float*>(row) + i, lanes * sizeof(float));
    return vld1q_f32(x);
  }
};
struct LoadBf16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static float32x4_t load(const void* row, size_t i) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(static_cast<const uint16_t*>(row) + i)), 16));
  }
  static float32x4_t load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};
struct LoadF16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static float32x4_t load(const void* row, size_t i) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const uint16_t*>(row) + i)));
  }
  static float32x4_t load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};

template <typename Load>
struct FewFloat : FewFloatSums {
  static constexpr size_t kStep = 4;
  static constexpr bool kPadded = Load::kPadded;
  static constexpr size_t kCodeBytes = Load::kCodeBytes;
  using Row = float32x4_t;
  using Query = float32x4_t;
  static size_t bytes(size_t d) { return kPadded ? padded_f32_bytes(d) : prepared_f32_bytes(d); }
  static float32x4_t load_row(const void* row, size_t i) { return Load::load(row, i); }
  static float32x4_t load_row_tail(const void* row, size_t i, size_t lanes) { return Load::load_tail(row, i, lanes); }
  static float32x4_t load_query(const char* query, size_t i) { return LoadF32::load(query, i); }
  static float32x4_t load_query_tail(const char* query, size_t i, size_t lanes) {
    return LoadF32::load_tail(query, i, lanes);
  }
  static float32x4_t multiply_add(float32x4_t sum, float32x4_t row, float32x4_t query) {
    return vfmaq_f32(sum, query, row);
  }
};

// int16 products summed in int32: exact.
inline int16x8_t widen_i8(const uint8_t* codes) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(codes))); }

struct MultiplyI16 {
  static constexpr size_t kStep = 8;
  static constexpr bool kBias = true;
  using Element = int16_t;
  using Row = int16x8_t;
  using Query = int16x8_t;
  static int16x8_t load_row(const uint8_t* codes) { return widen_i8(codes); }
  static int16x8_t load_query(const int16_t* query) { return vld1q_s16(query); }
  static int32x4_t multiply_add(int32x4_t sum, int16x8_t row, int16x8_t query) {
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(row), vget_low_s16(query)), row, query);
  }
};
using FewI8 = FewInteger<MultiplyI16>;

struct PanelF32 : PanelFloatBase {
  using Word = uint32_t;
  static constexpr size_t kGroup = 4;
  using Vector = float32x4_t;
  using Group = float32x4_t;
  static size_t words(size_t d) { return d; }
  static float32x4_t load(const uint32_t* packed) { return vreinterpretq_f32_u32(vld1q_u32(packed)); }
  static float32x4_t load_group(const uint32_t* row) { return load(row); }
  static float32x4_t broadcast(const uint32_t* word) { return vreinterpretq_f32_u32(vld1q_dup_u32(word)); }
  static float32x4_t multiply_add(float32x4_t sum, float32x4_t x, float32x4_t q) { return vfmaq_f32(sum, q, x); }
  template <size_t Lane>
  static float32x4_t multiply_lane(float32x4_t sum, float32x4_t x, float32x4_t q) {
    return vfmaq_laneq_f32(sum, q, x, Lane);
  }
};

// A word is one int16: the product of a row's lane with four queries widens to four int32.
struct WordsI16 {
  using Word = int16_t;
  static constexpr size_t kGroup = 8;
  using Vector = int16x4_t;
  using Group = int16x8_t;
  static size_t words(size_t d) { return round_up(d, kGroup); }
  static int16x4_t load(const int16_t* packed) { return vld1_s16(packed); }
  static int16x8_t load_group(const int16_t* row) { return vld1q_s16(row); }
  template <size_t Lane>
  static int32x4_t multiply_lane(int32x4_t sum, int16x8_t x, int16x4_t q) {
    return vmlal_laneq_s16(sum, q, x, Lane);
  }
};

using F32 = PanelScan<PanelF32>;
using I16 = PanelScan<PanelInteger<WordsI16>>;

void pack_f32(const float* queries, size_t count, size_t d, void* out) {
  pack_words<PackF32>(queries, count, d, F32::kPanel, static_cast<uint32_t*>(out));
}
void pack_i16(const float* queries, size_t count, size_t d, void* out) {
  std::memset(out, 0, I16::bytes(d));
  auto* starts = static_cast<int32_t*>(out);
  auto* elements = reinterpret_cast<int16_t*>(starts + I16::kPanel);
  for (size_t q = 0; q < count; ++q) {
    int32_t sum = 0;
    quantize_i8(queries + q * d, d, [&](size_t i, int32_t code) {
      sum += code;
      elements[i * I16::kPanel + q] = static_cast<int16_t>(code);
    });
    starts[q] = -128 * sum;
  }
}

size_t wide_f32_bytes(size_t d) { return round_up(d, 16) * sizeof(float); }
template <typename Load>
void widen_f32(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 4) vst1q_f32(static_cast<float*>(out) + i, Load::load(row, i));
}
size_t wide_i16_bytes(size_t d) { return round_up(d, 32) * sizeof(int16_t); }
void widen_i16(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 8) {
    vst1q_s16(static_cast<int16_t*>(out) + i, widen_i8(static_cast<const uint8_t*>(row) + i));
  }
}

template <typename Load>
constexpr ScanFormat widened() {
  return widened_format<FewFloat<Load>, F32>(prepare_padded_f32, pack_f32, wide_f32_bytes, widen_f32<Load>);
}

}  // namespace

namespace neon {

extern constexpr ScanFormats scan = {
    direct_format<FewFloat<LoadF32>, F32>(prepare_f32, pack_f32),
    widened<LoadBf16>(),
    widened<LoadF16>(),
    widened_format<FewI8, I16>(FewI8::prepare, pack_i16, wide_i16_bytes, widen_i16),
};

}  // namespace neon
}  // namespace finch
#endif
