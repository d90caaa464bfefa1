// Reliability: the arms of a discounted diagonal LinUCB (SPEC 4; RATED) by id, and the availability beside each.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <string_view>

#include "arm_table.hpp"
#include "availability.hpp"
#include "snapshot.hpp"
#include "toolfinch.h"

namespace finch {

// finch_bandit_options, defaulted and checked.
struct BanditRule {
  uint32_t dimension;
  finch_bandit_form form;
  float lambda;
  float gamma;
  float alpha;
  AvailabilityRule availability;

  bool keeps_vectors() const noexcept { return form != FINCH_BANDIT_MEAN; }
  // Floats from one vector of an arm to the next: whole cache lines.
  size_t stride() const noexcept { return (static_cast<size_t>(dimension) + 15) / 16 * 16; }
};

// Sets the message on failure.
finch_status read_bandit_rule(const finch_bandit_options* given, BanditRule* out) noexcept;

inline std::string_view view(const finch_string& s) noexcept { return {s.data, s.size}; }

// An id to be scored, its hash known: hash_id(id).
struct ScoredId {
  std::string_view id;
  uint64_t hash;
  float prior;
};

// finch_bandit_score without its checks of ids and priors. Sets the message on failure (the context's, or of `now`).
finch_status score_ids(const finch_bandit& bandit, const ScoredId* ids, size_t count, const float* x, double now,
                       bool explore, finch_arm_score* out);

// Room for one context: on the stack at ordinary dimensions.
inline constexpr size_t kContextOnStack = 1536;

}  // namespace finch

struct finch_bandit {
  explicit finch_bandit(const finch::BanditRule& r) : rule(r), table(r) {}

  std::atomic<uint32_t> references{1};
  const finch::BanditRule rule;
  mutable std::shared_mutex mutex;  // readers: score, arms, serialize
  finch::ArmTable table;
};
