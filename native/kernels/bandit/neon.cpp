#if defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#include "kernels/bandit/bandit.hpp"

namespace finch::neon {
namespace {

constexpr size_t kWidth = 4;
constexpr size_t kRegisters = 8;
constexpr size_t kLanes = kWidth * kRegisters;

inline float fold(const float32x4_t (&s)[kRegisters]) {
  float32x4_t q[4];
  for (size_t r = 0; r < 4; ++r) q[r] = vaddq_f32(s[r], s[r + 4]);
  const float32x4_t t = vaddq_f32(vaddq_f32(q[0], q[2]), vaddq_f32(q[1], q[3]));
  const float32x2_t h = vadd_f32(vget_low_f32(t), vget_high_f32(t));
  return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}

inline float32x4_t load(const float* p, size_t left) {
  if (left >= kWidth) return vld1q_f32(p);
  float padded[kWidth] = {};
  for (size_t j = 0; j < left; ++j) padded[j] = p[j];
  return vld1q_f32(padded);
}

inline void store(float* p, size_t left, float32x4_t v) {
  if (left >= kWidth) {
    vst1q_f32(p, v);
    return;
  }
  float padded[kWidth];
  vst1q_f32(padded, v);
  for (size_t j = 0; j < left; ++j) p[j] = padded[j];
}

inline void step(float32x4_t b, float32x4_t inverse_a, float32x4_t x, float32x4_t* mean, float32x4_t* variance) {
  const float32x4_t t = vmulq_f32(x, inverse_a);
  *mean = vfmaq_f32(*mean, b, t);
  *variance = vfmaq_f32(*variance, x, t);
}

void score(const float* b, const float* inverse_a, const float* x, size_t d, float* mean, float* variance) {
  float32x4_t means[kRegisters];
  float32x4_t variances[kRegisters];
  for (size_t r = 0; r < kRegisters; ++r) means[r] = variances[r] = vdupq_n_f32(0.0f);
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kWidth;
      step(vld1q_f32(b + at), vld1q_f32(inverse_a + at), vld1q_f32(x + at), &means[r], &variances[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    step(load(b + i, d - i), load(inverse_a + i, d - i), load(x + i, d - i), &means[r], &variances[r]);
  }
  *mean = fold(means);
  *variance = fold(variances);
}

float dot(const float* sum, const float* x, size_t d) {
  float32x4_t lanes[kRegisters];
  for (size_t r = 0; r < kRegisters; ++r) lanes[r] = vdupq_n_f32(0.0f);
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kWidth;
      lanes[r] = vfmaq_f32(lanes[r], vld1q_f32(sum + at), vld1q_f32(x + at));
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    lanes[r] = vfmaq_f32(lanes[r], load(sum + i, d - i), load(x + i, d - i));
  }
  return fold(lanes);
}

}  // namespace

void arm_scores(const float* const* arms, size_t stride, size_t count, const float* x, size_t d, float* means,
                float* variances) {
  for (size_t k = 0; k < count; ++k) {
    score(arms[k] + stride, arms[k] + 2 * stride, x, d, &means[k], &variances[k]);
  }
}

void context_dots(const float* const* sums, size_t count, const float* x, size_t d, float* dots) {
  for (size_t k = 0; k < count; ++k) dots[k] = dot(sums[k], x, d);
}

void arm_invert(float* arm, size_t stride, size_t d) {
  float* inverse_a = arm + 2 * stride;
  const float32x4_t one = vdupq_n_f32(1.0f);
  for (size_t i = 0; i < d; i += kWidth) store(inverse_a + i, d - i, vdivq_f32(one, load(arm + i, d - i)));
}

void arm_update(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward) {
  const float32x4_t gammas = vdupq_n_f32(gamma);
  const float32x4_t floors = vdupq_n_f32(floor);
  const float32x4_t rewards = vdupq_n_f32(reward);
  const float32x4_t smallest = vdupq_n_f32(kSmallestB);
  float* b = arm + stride;
  for (size_t i = 0; i < d; i += kWidth) {
    const float32x4_t v = load(x + i, d - i);
    store(arm + i, d - i, vfmaq_f32(vfmaq_f32(floors, v, v), gammas, load(arm + i, d - i)));
    store(b + i, d - i, vfmaq_f32(vfmaq_f32(smallest, rewards, v), gammas, load(b + i, d - i)));
  }
}

}  // namespace finch::neon

#endif  // aarch64
