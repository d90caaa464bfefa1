#include <cstring>

#include "kernels/gaps/gaps.hpp"

namespace finch::portable {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kStep = 4 * kLanes;

// memcpy: the operands may have any alignment.
inline void step(const char* a, const char* b, size_t bytes, float* dots, float* norms) {
  float x[kStep] = {};
  float y[kStep] = {};
  std::memcpy(x, a, bytes);
  std::memcpy(y, b, bytes);
  for (size_t j = 0; j < kStep; ++j) dots[j] += x[j] * y[j];
  for (size_t j = 0; j < kStep; ++j) norms[j] += y[j] * y[j];
}

inline float fold(const float* sums) {
  float s[kLanes];
  for (size_t j = 0; j < kLanes; ++j) {
    s[j] = (sums[j] + sums[kLanes + j]) + (sums[2 * kLanes + j] + sums[3 * kLanes + j]);
  }
  return (s[0] + s[2]) + (s[1] + s[3]);
}

}  // namespace

void dot_and_norm(const float* a, const float* b, size_t d, float* dot, float* norm) {
  float dots[kStep] = {};
  float norms[kStep] = {};
  const char* from_a = reinterpret_cast<const char*>(a);
  const char* from_b = reinterpret_cast<const char*>(b);
  size_t i = 0;
  for (; i + kStep <= d; i += kStep) {
    step(from_a + i * sizeof(float), from_b + i * sizeof(float), kStep * sizeof(float), dots, norms);
  }
  if (i < d) step(from_a + i * sizeof(float), from_b + i * sizeof(float), (d - i) * sizeof(float), dots, norms);
  *dot = fold(dots);
  *norm = fold(norms);
}

}  // namespace finch::portable
