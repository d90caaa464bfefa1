// Arm scores, one array a field: what JavaScript reads fastest.
#pragma once

#include "results.hpp"

namespace finch::node {

// Bytes that the scores of `count` arms take in a SharedBuffer.
constexpr size_t arm_scores_bytes(size_t count) {
  return 5 * SharedBuffer::bytes<float>(count) + 2 * SharedBuffer::bytes<double>(count);
}

// Sets mean, bonus, availability, lastOutcome, contrast, evidence and updates on `object`; `score_of(i)` is the i-th
// finch_arm_score.
template <typename ScoreOf>
void set_arm_scores(Napi::Env env, napi_value object, SharedBuffer& buffer, size_t count, ScoreOf&& score_of) {
  const Array<float> mean = buffer.take<float>(count);
  const Array<float> bonus = buffer.take<float>(count);
  const Array<float> availability = buffer.take<float>(count);
  const Array<float> last_outcome = buffer.take<float>(count);
  const Array<float> contrast = buffer.take<float>(count);
  const Array<double> evidence = buffer.take<double>(count);
  const Array<double> updates = buffer.take<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const finch_arm_score& score = score_of(i);
    mean.data[i] = score.mean;
    bonus.data[i] = score.bonus;
    availability.data[i] = score.availability;
    last_outcome.data[i] = score.last_outcome;
    contrast.data[i] = score.contrast;
    evidence.data[i] = score.evidence;
    updates.data[i] = static_cast<double>(score.updates);
  }
  set(env, object, "mean", mean.value);
  set(env, object, "bonus", bonus.value);
  set(env, object, "availability", availability.value);
  set(env, object, "lastOutcome", last_outcome.value);
  set(env, object, "contrast", contrast.value);
  set(env, object, "evidence", evidence.value);
  set(env, object, "updates", updates.value);
}

}  // namespace finch::node
