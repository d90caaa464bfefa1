// Trials: when a tool that failed is offered again, and what that may cost all requests together.
//
// A tool is suspended once its failures in a row are not what its calls before them would explain. A suspended tool is
// offered again, as if available, when its own waiting time is over (availability_at) and the budget of failed trials
// has room for one more. Every report adds a small share to the budget, a failed trial takes one, a trial that succeeds
// adds two: in an outage failed trials stay a fixed share of the requests, and once tools work again trials cost
// nothing, so all of them return as fast as they are asked for.
//
// Only additions, multiplications and divisions in a fixed order: the same outcomes give the same bits on every
// machine.
#pragma once

#include <cstdint>

#include "availability.hpp"

namespace finch {

// Failed trials that may still be made, at most kMostTrials of each kind: first trials (after one failure in a row) and
// repeated ones do not take from each other, so that a long outage does not keep tools with one failure waiting; nor do
// trials of a tool in the contexts that it fails in (contrast.hpp).
struct TrialBudget {
  static constexpr double kMostTrials = 3.0;

  double first = kMostTrials;
  double repeated = kMostTrials;
  double in_context = kMostTrials;
  double time = 0.0;  // of the latest report
};

// What a tool's own reports say.
struct TrialEvidence {
  double gamma;       // of the two sums
  double evidence;    // n <- gamma n + 1
  double reward_sum;  // s <- gamma s + y
};

// Whether failures in a row are more than chance: (1 - m)^f < 0.05, where m is the discounted success rate of the calls
// before them. A tool that always worked is suspended by its first failure, one that fails every other time by its
// fifth.
bool is_suspended(const Availability& state, const TrialEvidence& evidence) noexcept;

// Whether trials of this kind may be made at `now`. Besides the reports' shares, the budget grows by one an
// availability half_life_max.
bool has_room(const TrialBudget& budget, const AvailabilityRule& rule, uint32_t failures, double now) noexcept;

bool has_room_in_context(const TrialBudget& budget, const AvailabilityRule& rule, double now) noexcept;

// a as it is offered: 1 for a tool that is not suspended or whose trial is due, below 0.5 otherwise.
double offered_availability(const Availability& state, const AvailabilityRule& rule, const TrialEvidence& evidence,
                            const TrialBudget& budget, double now) noexcept;

// Offered availability is at most this while a tool waits.
inline constexpr double kWaiting = 0.499;

// A report on a tool, before it is observed. `in_context`: of a trial in a context that the tool fails in; it says
// nothing of the tool elsewhere when it fails.
void settle(TrialBudget* budget, const AvailabilityRule& rule, const Availability& state, const TrialEvidence& evidence,
            double y, double now, bool in_context) noexcept;

}  // namespace finch
