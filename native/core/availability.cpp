#include "availability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch {
namespace {

// 2^-x for x >= 0, within 2 units in the last place; libm's exp2 differs between platforms.
double half_to_the(double x) noexcept {
  if (!(x < 1100.0)) return 0.0;
  const double whole = std::floor(x + 0.5);
  const double t = (whole - x) * 0.69314718055994530942;  // |t| <= ln(2) / 2
  double sum = 1.0;
  for (int n = 17; n >= 1; --n) sum = 1.0 + sum * t / n;  // Taylor's series of e^t, innermost term first
  return std::ldexp(sum, -static_cast<int>(whole));
}

}  // namespace

double availability_at(const Availability& state, const AvailabilityRule& rule, double now) noexcept {
  const double elapsed = now - state.time;
  if (!(elapsed > 0.0) || state.level >= 1.0) return state.level;
  const int doublings = static_cast<int>(std::min<uint32_t>(state.failures, 1024)) - 1;
  const double half_life = std::min(rule.half_life_max, std::ldexp(rule.half_life, std::max(doublings, 0)));
  return std::clamp(1.0 - (1.0 - state.level) * half_to_the(elapsed / half_life), 0.0, 1.0);
}

void observe(Availability* state, const AvailabilityRule& rule, double y, double now) noexcept {
  const double level = availability_at(*state, rule, now);
  state->level = std::clamp(rule.gamma * level + (1.0 - rule.gamma) * y, 0.0, 1.0);
  state->time = now;
  if (y >= 0.5) {
    state->failures = 0;
  } else if (state->failures < std::numeric_limits<uint32_t>::max()) {
    ++state->failures;
  }
}

}  // namespace finch
