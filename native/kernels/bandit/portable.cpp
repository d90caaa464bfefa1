#include "kernels/bandit/bandit.hpp"

namespace finch::portable {
namespace {

constexpr size_t kLanes = 32;

float fold(float (&lanes)[kLanes]) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

}  // namespace

void arm_score(const float* inverse_a, const float* b, const float* x, size_t d, float* mean, float* variance) {
  float means[kLanes] = {};
  float variances[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const float t = x[i + j] * inverse_a[i + j];
      means[j] += b[i + j] * t;
      variances[j] += x[i + j] * t;
    }
  }
  for (size_t j = 0; i < d; ++i, ++j) {
    const float t = x[i] * inverse_a[i];
    means[j] += b[i] * t;
    variances[j] += x[i] * t;
  }
  *mean = fold(means);
  *variance = fold(variances);
}

void arm_update(float* inverse_a, float* b, const float* x, size_t d, float gamma, float floor, float reward) {
  for (size_t i = 0; i < d; ++i) {
    const float inverse = inverse_a[i];
    const float next = inverse / (gamma + (x[i] * x[i] + floor) * inverse);
    inverse_a[i] = next < kLargestInverse ? next : kLargestInverse;
    b[i] = gamma * b[i] + reward * x[i];
  }
}

}  // namespace finch::portable
