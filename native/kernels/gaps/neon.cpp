#if defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#include <cmath>
#include <cstring>

#include "kernels/gaps/gaps.hpp"

namespace finch::neon {
namespace {

constexpr size_t kLanes = 4;

inline float fold(float32x4_t s0, float32x4_t s1, float32x4_t s2, float32x4_t s3) {
  const float32x4_t s = vaddq_f32(vaddq_f32(s0, s1), vaddq_f32(s2, s3));
  const float32x2_t h = vadd_f32(vget_low_f32(s), vget_high_f32(s));
  return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}

inline void step(float32x4_t x, float32x4_t y, float32x4_t* dot, float32x4_t* norm) {
  *dot = vfmaq_f32(*dot, x, y);
  *norm = vfmaq_f32(*norm, y, y);
}

// By bytes: the operands may have any alignment.
inline float32x4_t load(const float* p) { return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p))); }

inline float32x4_t load(const float* p, size_t left) {
  if (left >= kLanes) return load(p);
  float padded[kLanes] = {};
  std::memcpy(padded, p, left * sizeof(float));
  return vld1q_f32(padded);
}

void dot_and_norm(const float* a, const float* b, size_t d, float* dot, float* norm) {
  float32x4_t p0 = vdupq_n_f32(0.0f), p1 = p0, p2 = p0, p3 = p0;
  float32x4_t q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
    step(load(a + i), load(b + i), &p0, &q0);
    step(load(a + i + 4), load(b + i + 4), &p1, &q1);
    step(load(a + i + 8), load(b + i + 8), &p2, &q2);
    step(load(a + i + 12), load(b + i + 12), &p3, &q3);
  }
  for (size_t block = 0; i < d; ++block, i += kLanes) {
    const float32x4_t x = load(a + i, d - i);
    const float32x4_t y = load(b + i, d - i);
    if (block == 0) step(x, y, &p0, &q0);
    if (block == 1) step(x, y, &p1, &q1);
    if (block == 2) step(x, y, &p2, &q2);
    if (block == 3) step(x, y, &p3, &q3);
  }
  *dot = fold(p0, p1, p2, p3);
  *norm = fold(q0, q1, q2, q3);
}

}  // namespace

void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms) {
  if (count == 0) return;
  float itself = 0.0f;
  dot_and_norm(rows[0], rows[0], d, &itself, &norms[0]);
  for (size_t i = 1; i < count; ++i) dot_and_norm(rows[i - 1], rows[i], d, &dots[i - 1], &norms[i]);
}

void cosines(const float* dots, const float* norms, size_t count, float* out) {
  const float64x2_t most = vdupq_n_f64(1.0);
  const float64x2_t least = vdupq_n_f64(-1.0);
  const auto wide = [](const float* p) { return vcvt_f64_f32(vld1_f32(p)); };
  size_t i = 0;
  for (; i + 3 <= count; i += 2) {
    const float64x2_t lengths = vmulq_f64(vsqrtq_f64(wide(norms + i)), vsqrtq_f64(wide(norms + i + 1)));
    const float64x2_t cosine = vdivq_f64(wide(dots + i), lengths);
    vst1_f32(out + i, vcvt_f32_f64(vmaxq_f64(least, vminq_f64(most, cosine))));
  }
  for (; i + 1 < count; ++i) {
    const double lengths = std::sqrt(static_cast<double>(norms[i])) * std::sqrt(static_cast<double>(norms[i + 1]));
    const double cosine = static_cast<double>(dots[i]) / lengths;
    out[i] = static_cast<float>(cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine);
  }
}

}  // namespace finch::neon

#endif  // aarch64
