// Availability: the context-free layer of reliability. It falls at once when a tool fails and, between outcomes, drifts
// back towards 1, so that a tool that went down is tried again at growing intervals (half-open).
//
// Only additions, multiplications and divisions in a fixed order: the same outcomes give the same bits on every
// machine.
#pragma once

#include <cstdint>

namespace finch {

struct AvailabilityRule {
  double gamma;          // g in (0, 1)
  double half_life;      // h > 0, in the unit of `now`
  double half_life_max;  // h_max >= h
  double trial_share;    // of reports, for failed trials (trials.hpp); infinite: trials are free
};

struct Availability {
  double level = 1.0;     // a in [0, 1], as of `time`
  double time = 0.0;      // of the latest outcome
  uint32_t failures = 0;  // in a row (an outcome below 0.5 is a failure)
};

// a at `now`: 1 - (1 - level) 2^(-elapsed / H), H = min(h_max, h 2^(f - 1)), and H = h for f = 0. A clock that went
// backwards counts as no time.
double availability_at(const Availability& state, const AvailabilityRule& rule, double now) noexcept;

// Relaxes to `now`, then a <- g a + (1 - g) y. `time` becomes `now` even when that is earlier: a clock that once ran
// ahead does not hold the tool down.
void observe(Availability* state, const AvailabilityRule& rule, double y, double now) noexcept;

}  // namespace finch
