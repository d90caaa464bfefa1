// Arm scores, one array a field: what JavaScript reads fastest.
#pragma once

#include "results.hpp"

namespace finch::node {

// Sets mean, bonus, availability, lastOutcome, evidence and updates on `object`; `score_of(i)` is the i-th
// finch_arm_score.
template <typename ScoreOf>
void set_arm_scores(Napi::Env env, napi_value object, size_t count, ScoreOf&& score_of) {
  const Array<float> mean = make_array<float>(env, count);
  const Array<float> bonus = make_array<float>(env, count);
  const Array<float> availability = make_array<float>(env, count);
  const Array<float> last_outcome = make_array<float>(env, count);
  const Array<double> evidence = make_array<double>(env, count);
  const Array<double> updates = make_array<double>(env, count);
  for (size_t i = 0; i < count; ++i) {
    const finch_arm_score& score = score_of(i);
    mean.data[i] = score.mean;
    bonus.data[i] = score.bonus;
    availability.data[i] = score.availability;
    last_outcome.data[i] = score.last_outcome;
    evidence.data[i] = score.evidence;
    updates.data[i] = static_cast<double>(score.updates);
  }
  set(env, object, "mean", mean.value);
  set(env, object, "bonus", bonus.value);
  set(env, object, "availability", availability.value);
  set(env, object, "lastOutcome", last_outcome.value);
  set(env, object, "evidence", evidence.value);
  set(env, object, "updates", updates.value);
}

}  // namespace finch::node
