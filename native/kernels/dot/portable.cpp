// dot without intrinsics: 4 x 4 lanes spelled out, so the order of summation, and with it every bit, is the source's
// and not the optimiser's.
#include <cstring>

#include "kernels/dot/dot.hpp"

namespace finch::portable {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kStep = 4 * kLanes;

// memcpy: the operands may have any alignment.
inline void multiply_add(const float* a, const float* b, size_t count, float* sums) {
  float x[kStep] = {};
  float y[kStep] = {};
  std::memcpy(x, a, count * sizeof(float));
  std::memcpy(y, b, count * sizeof(float));
  for (size_t j = 0; j < kStep; ++j) sums[j] += x[j] * y[j];
}

}  // namespace

float dot(const float* a, const float* b, size_t d) {
  float sums[kStep] = {};
  // Unaligned float pointers may not even be stepped as floats; bytes may.
  const char* pa = reinterpret_cast<const char*>(a);
  const char* pb = reinterpret_cast<const char*>(b);
  size_t i = 0;
  for (; i + kStep <= d; i += kStep) {
    multiply_add(reinterpret_cast<const float*>(pa + i * sizeof(float)),
                 reinterpret_cast<const float*>(pb + i * sizeof(float)), kStep, sums);
  }
  if (i < d) {
    multiply_add(reinterpret_cast<const float*>(pa + i * sizeof(float)),
                 reinterpret_cast<const float*>(pb + i * sizeof(float)), d - i, sums);
  }
  float s[kLanes];
  for (size_t j = 0; j < kLanes; ++j)
    s[j] = (sums[j] + sums[kLanes + j]) + (sums[2 * kLanes + j] + sums[3 * kLanes + j]);
  return (s[0] + s[2]) + (s[1] + s[3]);
}

}  // namespace finch::portable
