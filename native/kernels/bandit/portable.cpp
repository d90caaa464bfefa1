#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/bandit/bandit.hpp"

namespace finch::portable {
namespace {

constexpr size_t kLanes = 32;

// What is left when `sum`, the double nearest to product + addend, is rounded to float: twice rounded is once rounded,
// unless the sum lies in the middle of two floats (subnormal ones are left to this, too). Rounded to odd instead, it
// still tells on which side of the middle the exact value lies.
[[maybe_unused]] float round_to_odd(double product, double addend, double sum) {
  const double back = sum - product;
  const double lost = (product - (sum - back)) + (addend - back);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (lost != 0.0 && (bits & 1) == 0) bits += (lost > 0.0) == (sum > 0.0) ? 1 : ~uint64_t{0};
  return static_cast<float>(std::bit_cast<double>(bits));
}

// fma(a, b, c) with one rounding, whatever the machine: the product of two floats is exact in double.
inline float fused(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;
  constexpr uint64_t kMiddle = uint64_t{1} << 28;
  constexpr double kSmallestNormal = 1.1754943508222875e-38;
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = product + static_cast<double>(c);
  const bool middle = (std::bit_cast<uint64_t>(sum) & kBelowFloat) == kMiddle;
  if (middle || std::fabs(sum) < kSmallestNormal) return round_to_odd(product, static_cast<double>(c), sum);
  return static_cast<float>(sum);
#endif
}

float fold(float (&lanes)[kLanes]) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

void score(const float* b, const float* inverse_a, const float* x, size_t d, float* mean, float* variance) {
  float means[kLanes] = {};
  float variances[kLanes] = {};
  const auto step = [&](size_t i, size_t j) {
    const float t = x[i] * inverse_a[i];
    means[j] = fused(b[i], t, means[j]);
    variances[j] = fused(x[i], t, variances[j]);
  };
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) step(i + j, j);
  }
  for (size_t j = 0; i < d; ++i, ++j) step(i, j);
  *mean = fold(means);
  *variance = fold(variances);
}

float dot(const float* sum, const float* x, size_t d) {
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] = fused(sum[i + j], x[i + j], lanes[j]);
  }
  for (size_t j = 0; i < d; ++i, ++j) lanes[j] = fused(sum[i], x[i], lanes[j]);
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
  for (size_t i = 0; i < d; ++i) inverse_a[i] = 1.0f / arm[i];
}

void arm_update(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward) {
  float* b = arm + stride;
  for (size_t i = 0; i < d; ++i) {
    arm[i] = fused(gamma, arm[i], fused(x[i], x[i], floor));
    b[i] = fused(gamma, b[i], fused(reward, x[i], kSmallestB));
  }
}

}  // namespace finch::portable
