#include "unit.hpp"

#include <cmath>
#include <cstring>

namespace finch {
namespace {

inline double at(const char* base, size_t i) noexcept {
  float x;
  std::memcpy(&x, base + i * sizeof(float), sizeof(float));  // any alignment
  return static_cast<double>(x);
}

}  // namespace

finch_status to_unit(const float* in, size_t dimension, float* out) noexcept {
  const char* base = reinterpret_cast<const char*>(in);
  // Squares of float32 lie between 2^-298 and 2^256, so neither the squares nor their sum leave double's range: the sum
  // is finite exactly when every element is, and zero exactly when every element is.
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= dimension; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      const double x = at(base, i + j);
      sums[j] += x * x;
    }
  }
  for (size_t j = 0; i < dimension; ++i, ++j) {
    const double x = at(base, i);
    sums[j] += x * x;
  }
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (!std::isfinite(sum)) return FINCH_NOT_FINITE;
  if (sum == 0.0) return FINCH_ZERO_VECTOR;
  const double scale = 1.0 / std::sqrt(sum);
  char* target = reinterpret_cast<char*>(out);
  for (i = 0; i < dimension; ++i) {
    const float y = static_cast<float>(at(base, i) * scale);
    std::memcpy(target + i * sizeof(float), &y, sizeof(float));
  }
  return FINCH_OK;
}

}  // namespace finch
