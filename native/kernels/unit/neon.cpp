#if defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#include <cstring>

#include "kernels/unit/unit.hpp"

namespace finch::neon {
namespace {

constexpr size_t kWidth = 4;
constexpr size_t kLanes = 32;
constexpr size_t kRegisters = kLanes / 2;

// By bytes: the operands may have any alignment.
inline float32x4_t load(const float* p, size_t left) {
  if (left >= kWidth) return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
  float padded[kWidth] = {};
  std::memcpy(padded, p, left * sizeof(float));
  return vld1q_f32(padded);
}

inline void add(float32x4_t v, float64x2_t* low, float64x2_t* high) {
  const float64x2_t a = vcvt_f64_f32(vget_low_f32(v));
  const float64x2_t b = vcvt_high_f64_f32(v);
  *low = vfmaq_f64(*low, a, a);
  *high = vfmaq_f64(*high, b, b);
}

}  // namespace

double square_sum(const float* x, size_t d) {
  float64x2_t sums[kRegisters];
  for (float64x2_t& sum : sums) sum = vdupq_n_f64(0.0);
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; r += 2) add(load(x + i + 2 * r, kWidth), &sums[r], &sums[r + 1]);
  }
  for (size_t r = 0; i < d; r += 2, i += kWidth) add(load(x + i, d - i), &sums[r], &sums[r + 1]);
  for (size_t half = kRegisters / 2; half > 0; half /= 2) {
    for (size_t r = 0; r < half; ++r) sums[r] = vaddq_f64(sums[r], sums[r + half]);
  }
  return vgetq_lane_f64(sums[0], 0) + vgetq_lane_f64(sums[0], 1);
}

void scale(const float* x, double factor, size_t d, float* out) {
  const float64x2_t factors = vdupq_n_f64(factor);
  for (size_t i = 0; i < d; i += kWidth) {
    const float32x4_t v = load(x + i, d - i);
    const float32x2_t low = vcvt_f32_f64(vmulq_f64(vcvt_f64_f32(vget_low_f32(v)), factors));
    const float32x4_t y = vcvt_high_f32_f64(low, vmulq_f64(vcvt_high_f64_f32(v), factors));
    if (d - i >= kWidth) {
      vst1q_u8(reinterpret_cast<uint8_t*>(out + i), vreinterpretq_u8_f32(y));
    } else {
      float padded[kWidth];
      vst1q_f32(padded, y);
      std::memcpy(out + i, padded, (d - i) * sizeof(float));
    }
  }
}

}  // namespace finch::neon

#endif  // aarch64
