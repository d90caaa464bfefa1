#include "availability.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace finch {
namespace {

// 2^-x for x >= 0, within 2 units in the last place, 0 below 2^-1000; libm's exp2 differs between platforms.
double half_to_the(double x) noexcept {
  if (!(x < 1000.0)) return 0.0;
  const auto whole = static_cast<int64_t>(x + 0.5);
  const double t = (static_cast<double>(whole) - x) * 0.69314718055994530942;  // |t| <= ln(2) / 2
  // Taylor's series of e^t up to t^15 / 15!, which is below half a unit in the last place by then; in pairs, since a
  // chain of 16 additions would wait for itself.
  const double t2 = t * t;
  const double t4 = t2 * t2;
  const double t8 = t4 * t4;
  const auto four = [&](double c0, double c1, double c2, double c3) { return (c0 + c1 * t) + (c2 + c3 * t) * t2; };
  const double low =
      four(1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0) + four(1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0) * t4;
  const double high = four(1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0, 1.0 / 39916800.0) +
                      four(1.0 / 479001600.0, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0) * t4;
  const uint64_t power = static_cast<uint64_t>(1023 - whole) << 52;  // 2^-whole
  return (low + high * t8) * std::bit_cast<double>(power);
}

// 2^n for 0 <= n <= 1023.
double two_to_the(int n) noexcept { return std::bit_cast<double>(static_cast<uint64_t>(1023 + n) << 52); }

}  // namespace

double availability_at(const Availability& state, const AvailabilityRule& rule, double now) noexcept {
  const double elapsed = now - state.time;
  if (!(elapsed > 0.0) || state.level >= 1.0) return state.level;
  const int doublings = static_cast<int>(std::min<uint32_t>(state.failures, 1024)) - 1;
  const double half_life = std::min(rule.half_life_max, rule.half_life * two_to_the(std::max(doublings, 0)));
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
