#include "contrast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.hpp"

namespace finch {
namespace {

constexpr float kMemory = 0.9f;
constexpr double kRecord = 0.8;
double length_of(const float* v, size_t d) noexcept {
  float square = 0.0f;
  kernels().context_dots(&v, 1, v, d, &square);
  return std::sqrt(static_cast<double>(square));
}

double cosine(double product, double lengths) noexcept { return std::clamp(product / lengths, -1.0, 1.0); }

}  // namespace

Contrast::Contrast(size_t dimension) : dimension_(dimension), vectors_(std::make_unique<float[]>(2 * dimension)) {}

float Contrast::at(const float* x, double length) const noexcept {
  if (!rules()) return std::numeric_limits<float>::quiet_NaN();
  const float* sums[2] = {worked(), failed()};
  float products[2];
  kernels().context_dots(sums, 2, x, dimension_, products);
  return of(products, length);
}

float Contrast::of(const float* products, double length) const noexcept {
  return static_cast<float>(cosine(static_cast<double>(products[0]), length * worked_length_) -
                            cosine(static_cast<double>(products[1]), length * failed_length_));
}

bool Contrast::waits(const AvailabilityRule& rule, const TrialBudget& budget, double now) const noexcept {
  const int doublings = std::max(0, static_cast<int>(std::min<uint32_t>(foreseen, 1000)) - 1);
  const double wait = std::min(rule.half_life_max, std::ldexp(rule.half_life, doublings));
  return !(now - time >= wait && has_room_in_context(budget, rule, now));
}

void Contrast::learn(const float* x, float seen, double y, double now) noexcept {
  const bool failed_now = y < 0.5;
  if (!failed_now && is_empty()) return;
  if (foresees(seen)) {
    balance = kRecord * balance + (failed_now ? 1.0 : -1.0);
    if (!failed_now) {
      foreseen = 0;
    } else if (foreseen < std::numeric_limits<uint32_t>::max()) {
      ++foreseen;
    }
  }
  if (failed_now) time = now;
  float* sum = vectors_.get() + (failed_now ? dimension_ : 0);
  for (size_t i = 0; i < dimension_; ++i) sum[i] = kMemory * sum[i] + x[i];
  (failed_now ? failed_length_ : worked_length_) = length_of(sum, dimension_);
}

void Contrast::measure() noexcept {
  worked_length_ = length_of(worked(), dimension_);
  failed_length_ = length_of(failed(), dimension_);
}

}  // namespace finch
