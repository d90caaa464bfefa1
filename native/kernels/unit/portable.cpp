#include <cstring>

#include "kernels/unit/unit.hpp"

namespace finch::portable {
namespace {

constexpr size_t kLanes = 32;

// memcpy: the operands may have any alignment.
inline double element(const float* x, size_t i) {
  float v;
  std::memcpy(&v, reinterpret_cast<const char*>(x) + i * sizeof(float), sizeof(v));
  return static_cast<double>(v);
}

}  // namespace

double square_sum(const float* x, size_t d) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] += element(x, i + j) * element(x, i + j);
  }
  for (size_t j = 0; i < d; ++i, ++j) lanes[j] += element(x, i) * element(x, i);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

void scale(const float* x, double factor, size_t d, float* out) {
  char* target = reinterpret_cast<char*>(out);
  for (size_t i = 0; i < d; ++i) {
    const float y = static_cast<float>(element(x, i) * factor);
    std::memcpy(target + i * sizeof(float), &y, sizeof(y));
  }
}

}  // namespace finch::portable
