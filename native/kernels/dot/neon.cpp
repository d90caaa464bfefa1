// dot for AArch64 NEON.
#include "kernels/dot/dot.hpp"

#if defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>

#include <cstring>

namespace finch::neon {
namespace {

constexpr size_t kLanes = 4;

inline float32x4_t load(const float* p) { return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p))); }

inline float32x4_t load_part(const float* p, size_t lanes) {
  float x[kLanes] = {};
  std::memcpy(x, p, lanes * sizeof(float));
  return vld1q_f32(x);
}

inline float sum_lanes(float32x4_t a0, float32x4_t a1, float32x4_t a2, float32x4_t a3) {
  const float32x4_t s = vaddq_f32(vaddq_f32(a0, a1), vaddq_f32(a2, a3));
  const float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
  return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

}  // namespace

// Unrolled by request: at -O2 alone gcc keeps the accumulators in memory.
float dot(const float* a, const float* b, size_t d) {
  float32x4_t sum[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) sum[j] = vdupq_n_f32(0.0f);
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sum[j] = vfmaq_f32(sum[j], load(a + i + j * kLanes), load(b + i + j * kLanes));
  }
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    if (i >= d) break;
    const size_t lanes = d - i < kLanes ? d - i : kLanes;
    sum[j] = vfmaq_f32(sum[j], load_part(a + i, lanes), load_part(b + i, lanes));
    i += lanes;
  }
  return sum_lanes(sum[0], sum[1], sum[2], sum[3]);
}

}  // namespace finch::neon
#endif
