#include "unit.hpp"

#include <cmath>

#include "kernels/kernels.hpp"

namespace finch {

finch_status unit_factor(const float* in, size_t dimension, double* factor) noexcept {
  // Squares of float32 lie between 2^-298 and 2^256, so neither the squares nor their sum leave double's range: the sum
  // is finite exactly when every element is, and zero exactly when every element is.
  const double sum = kernels().square_sum(in, dimension);
  if (!std::isfinite(sum)) return FINCH_NOT_FINITE;
  if (sum == 0.0) return FINCH_ZERO_VECTOR;
  *factor = 1.0 / std::sqrt(sum);
  return FINCH_OK;
}

finch_status to_unit(const float* in, size_t dimension, float* out) noexcept {
  double factor = 0.0;
  const finch_status status = unit_factor(in, dimension, &factor);
  if (status == FINCH_OK) kernels().scale(in, factor, dimension, out);
  return status;
}

}  // namespace finch
