// Reliability: the arms of a discounted diagonal LinUCB (SPEC 4; RATED) by id, and the availability beside each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

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

struct AlignedDelete {
  void operator()(float* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
};

// A tool with feedback: it has had at least one update.
struct Arm {
  float prior = 0.0f;  // r, as of the first update
  float last_outcome = 0.0f;
  uint64_t updates = 0;
  double evidence = 0.0;    // n <- gamma n + 1
  double reward_sum = 0.0;  // s <- gamma s + y
  Availability availability;
  std::unique_ptr<float[], AlignedDelete> vectors;  // 1 / A, then b one stride on; none in the mean form
};

struct IdHash {
  using is_transparent = void;
  size_t operator()(std::string_view id) const noexcept { return static_cast<size_t>(hash_id(id)); }
};

// All arms, and what they add up to.
struct ArmTable {
  std::unordered_map<std::string, Arm, IdHash, std::equal_to<>> arms;
  uint64_t evidence = 0;  // sum of evidence_units: whole numbers, so it does not depend on the order of updates
};

// An arm's evidence in units of 2^-20.
uint64_t evidence_units(double evidence) noexcept;

// An arm without updates: 1 / A = 1 / lambda; b = 0 (calibrated) or r / sqrt(d) (literal).
Arm fresh_arm(const BanditRule& rule, float prior);

inline std::string_view view(const finch_string& s) noexcept { return {s.data, s.size}; }

}  // namespace finch

struct finch_bandit {
  explicit finch_bandit(const finch::BanditRule& r) noexcept : rule(r) {}

  std::atomic<uint32_t> references{1};
  const finch::BanditRule rule;
  mutable std::shared_mutex mutex;  // readers: score, arms, serialize
  finch::ArmTable table;
};
