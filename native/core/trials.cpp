#include "trials.hpp"

#include <algorithm>
#include <cmath>

namespace finch {
namespace {

// What a trial that succeeds pays into each budget.
constexpr double kCredit = 2.0;
// Failures in a row that chance explains less often than this suspend a tool.
constexpr double kChance = 0.05;
// Calls' worth of success that a tool is trusted with before any.
constexpr double kTrust = 0.5;
// Failures in a row beyond which nothing is explained any more.
constexpr uint32_t kManyFailures = 64;

double grown(double tokens, const TrialBudget& budget, const AvailabilityRule& rule, double now) noexcept {
  const double elapsed = std::max(0.0, now - budget.time);
  return std::min(TrialBudget::kMostTrials, tokens + elapsed / rule.half_life_max);
}

}  // namespace

bool is_suspended(const Availability& state, const TrialEvidence& evidence) noexcept {
  if (state.failures == 0) return false;
  if (state.failures > kManyFailures) return true;
  // The sums as they were before the failures in a row, which added 1 each to n and, near enough, 0 to s.
  double power = 1.0;
  double failed = 0.0;
  for (uint32_t i = 0; i < state.failures; ++i) {
    failed = evidence.gamma * failed + 1.0;
    power *= evidence.gamma;
  }
  if (!(power > 1e-12)) return true;
  const double n = std::max(0.0, (evidence.evidence - failed) / power);
  const double s = std::clamp(evidence.reward_sum / power, 0.0, n);
  const double failing = 1.0 - (s + kTrust) / (n + kTrust);
  double chance = 1.0;
  for (uint32_t i = 0; i < state.failures; ++i) chance *= failing;
  return chance < kChance;
}

bool has_room(const TrialBudget& budget, const AvailabilityRule& rule, uint32_t failures, double now) noexcept {
  return grown(failures > 1 ? budget.repeated : budget.first, budget, rule, now) >= 1.0;
}

bool has_room_in_context(const TrialBudget& budget, const AvailabilityRule& rule, double now) noexcept {
  return std::isinf(rule.trial_share) || grown(budget.in_context, budget, rule, now) >= 1.0;
}

double offered_availability(const Availability& state, const AvailabilityRule& rule, const TrialEvidence& evidence,
                            const TrialBudget& budget, double now) noexcept {
  if (std::isinf(rule.trial_share)) return availability_at(state, rule, now);
  if (!is_suspended(state, evidence)) return 1.0;
  const double relaxed = availability_at(state, rule, now);
  if (relaxed >= 0.5 && has_room(budget, rule, state.failures, now)) return 1.0;
  return std::min(kWaiting, relaxed / 2.0);
}

void settle(TrialBudget* budget, const AvailabilityRule& rule, const Availability& state, const TrialEvidence& evidence,
            double y, double now, bool in_context) noexcept {
  if (std::isinf(rule.trial_share)) return;
  for (double* tokens : {&budget->first, &budget->repeated, &budget->in_context}) {
    *tokens = std::min(TrialBudget::kMostTrials, grown(*tokens, *budget, rule, now) + rule.trial_share);
  }
  budget->time = std::max(budget->time, now);
  if (in_context) {
    if (y >= 0.5) {
      budget->in_context = std::min(TrialBudget::kMostTrials, budget->in_context + kCredit);
    } else {
      if (budget->in_context >= 1.0) budget->in_context -= 1.0;
      return;
    }
  }
  if (!is_suspended(state, evidence)) return;
  if (y >= 0.5) {
    budget->first = std::min(TrialBudget::kMostTrials, budget->first + kCredit);
    budget->repeated = std::min(TrialBudget::kMostTrials, budget->repeated + kCredit);
    return;
  }
  // Calls that were under way when the tool was suspended come in late: they leave no debt.
  double* spent = state.failures > 1 ? &budget->repeated : &budget->first;
  if (*spent >= 1.0) *spent -= 1.0;
}

}  // namespace finch
