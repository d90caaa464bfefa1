#include <algorithm>
#include <cmath>
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

}  // namespace

void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms) {
  if (count == 0) return;
  float itself = 0.0f;
  dot_and_norm(rows[0], rows[0], d, &itself, &norms[0]);
  for (size_t i = 1; i < count; ++i) dot_and_norm(rows[i - 1], rows[i], d, &dots[i - 1], &norms[i]);
}

void cosines(const float* dots, const float* norms, size_t count, float* out) {
  if (count < 2) return;
  double before = std::sqrt(static_cast<double>(norms[0]));
  for (size_t i = 0; i + 1 < count; ++i) {
    const double here = std::sqrt(static_cast<double>(norms[i + 1]));
    out[i] = static_cast<float>(std::clamp(static_cast<double>(dots[i]) / (before * here), -1.0, 1.0));
    before = here;
  }
}

}  // namespace finch::portable
