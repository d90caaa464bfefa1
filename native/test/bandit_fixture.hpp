// Bandits for tests: handles that release themselves, one-line outcomes and scores.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "golden.hpp"
#include "toolfinch.h"

namespace finch::test {

struct ReleaseBandit {
  void operator()(finch_bandit* bandit) const { finch_bandit_release(bandit); }
};
using Bandit = std::unique_ptr<finch_bandit, ReleaseBandit>;

inline finch_bandit_options bandit_options(uint32_t dimension, finch_bandit_form form = FINCH_BANDIT_CALIBRATED) {
  finch_bandit_options options{};
  options.size = sizeof(options);
  options.dimension = dimension;
  options.form = form;
  return options;
}

inline Bandit make_bandit(const finch_bandit_options& options) {
  finch_bandit* bandit = nullptr;
  EXPECT_EQ(finch_bandit_create(&options, &bandit), FINCH_OK) << finch_last_error();
  return Bandit(bandit);
}

inline finch_status report(const Bandit& bandit, const std::string& id, const std::vector<float>& x, float prior,
                           float y, double now = 0.0) {
  const finch_outcome outcome = {as_string(id), x.data(), prior, y, now};
  return finch_bandit_update(bandit.get(), &outcome, 1);
}

inline finch_arm_score score(const Bandit& bandit, const std::string& id, const std::vector<float>& x, float prior,
                             double now = 0.0, int explore = 1) {
  finch_arm_score out{};
  const finch_string name = as_string(id);
  EXPECT_EQ(finch_bandit_score(bandit.get(), &name, &prior, 1, x.data(), now, explore, &out), FINCH_OK)
      << finch_last_error();
  return out;
}

inline std::vector<char> serialized(const Bandit& bandit) {
  size_t size = 0;
  EXPECT_EQ(finch_bandit_serialize(bandit.get(), nullptr, 0, &size), FINCH_OK);
  std::vector<char> bytes(size);
  EXPECT_EQ(finch_bandit_serialize(bandit.get(), bytes.data(), bytes.size(), &size), FINCH_OK);
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

inline std::vector<float> random_vector(std::mt19937* random, size_t d) {
  std::normal_distribution<float> normal;
  std::vector<float> v(d);
  for (float& x : v) x = normal(*random);
  return v;
}

inline uint64_t arm_count(const Bandit& bandit) {
  uint64_t count = 0, bytes = 0;
  EXPECT_EQ(finch_bandit_arms(bandit.get(), &count, &bytes), FINCH_OK);
  return count;
}

}  // namespace finch::test
