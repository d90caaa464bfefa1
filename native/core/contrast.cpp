#include "contrast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch {
namespace {

constexpr float kMemory = 0.9f;
constexpr double kRecord = 0.8;
constexpr size_t kLanes = 16;

// sum a_i b_i in float32: lane i mod 16, then the lanes in order of halves.
double dot(const float* a, const float* b, size_t d) noexcept {
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  for (size_t j = 0; i < d; ++i, ++j) lanes[j] += a[i] * b[i];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return static_cast<double>(lanes[0]);
}

double length_of(const float* v, size_t d) noexcept { return std::sqrt(dot(v, v, d)); }

double cosine(double product, double lengths) noexcept { return std::clamp(product / lengths, -1.0, 1.0); }

}  // namespace

Contrast::Contrast(size_t dimension) : dimension_(dimension), vectors_(std::make_unique<float[]>(2 * dimension)) {}

float Contrast::at(const float* x, double length) const noexcept {
  if (!(worked_length_ > 0.0 && failed_length_ > 0.0)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(cosine(dot(x, worked(), dimension_), length * worked_length_) -
                            cosine(dot(x, failed(), dimension_), length * failed_length_));
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
