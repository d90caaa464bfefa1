// Failures that depend on the context, against a reading of their rule in float64 with every context kept.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "bandit_fixture.hpp"

namespace finch::test {
namespace {

using Doubles = std::vector<double>;

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Doubles unit(const std::vector<float>& v) {
  Doubles out(v.begin(), v.end());
  const double length = std::sqrt(dot(out, out));
  for (double& x : out) x /= length;
  return out;
}

// One tool's outcomes in order, all kept.
struct History {
  std::vector<std::pair<Doubles, bool>> outcomes;

  Doubles mean(bool worked) const {
    Doubles sum;
    bool failed = false;
    for (const auto& [x, y] : outcomes) {
      failed = failed || !y;
      if (!failed || y != worked) continue;
      sum.resize(x.size());
      for (size_t i = 0; i < x.size(); ++i) sum[i] = 0.9 * sum[i] + x[i];
    }
    return sum;
  }
  double contrast(const Doubles& x) const {
    const Doubles worked = mean(true), failed = mean(false);
    if (worked.empty() || failed.empty()) return std::nan("");
    return dot(x, worked) / std::sqrt(dot(worked, worked)) - dot(x, failed) / std::sqrt(dot(failed, failed));
  }
};

TEST(Contrast, IsTheDifferenceOfTheCosines) {
  for (const uint32_t d : {1u, 5u, 16u, 40u, 384u}) {
    std::mt19937 random(d);
    const Bandit bandit = make_bandit(bandit_options(d));
    std::map<std::string, History> histories;
    for (int i = 0; i < 300; ++i) {
      const std::string id = "tool " + std::to_string(random() % 5);
      const std::vector<float> x = random_vector(&random, d);
      const finch_arm_score s = score(bandit, id, x, 0.5f, 1000.0 * i);
      const double expected = histories[id].contrast(unit(x));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(s.contrast));
      } else {
        EXPECT_NEAR(static_cast<double>(s.contrast), expected, 2e-6) << d << " " << i;
      }
      const bool worked = random() % 3 != 0;
      report(bandit, id, x, 0.5f, worked ? 1.0f : 0.0f, 1000.0 * i);
      histories[id].outcomes.emplace_back(unit(x), worked);
    }
  }
}

// Contexts of two kinds: e1 and e2 with some noise.
std::vector<float> of_kind(int kind, std::mt19937* random) {
  std::vector<float> x = random_vector(random, 16);
  for (float& v : x) v *= 0.1f;
  x[static_cast<size_t>(kind)] += 1.0f;
  return x;
}

struct Kinds {
  std::mt19937 random{3};
  Bandit bandit = make_bandit(bandit_options(16));
  double now = 1e6;

  void outcome(int kind, bool works) {
    ASSERT_EQ(report(bandit, "tool", of_kind(kind, &random), 0.5f, works ? 1.0f : 0.0f, now), FINCH_OK);
    now += 1000.0;
  }
  float availability(int kind) { return score(bandit, "tool", of_kind(kind, &random), 0.5f, now).availability; }
};

TEST(Contrast, HoldsBackTheKindThatFailsAlone) {
  Kinds k;
  for (int i = 0; i < 20; ++i) k.outcome(i % 2, true);
  k.outcome(1, false);
  EXPECT_LT(k.availability(0), 1.01f);
  k.outcome(0, true);  // the trial
  EXPECT_EQ(k.availability(0), 1.0f);
  EXPECT_LT(k.availability(1), 0.5f);
  // A failure that was foreseen says nothing of the other kind.
  k.outcome(1, false);
  EXPECT_EQ(k.availability(0), 1.0f);
  EXPECT_LT(k.availability(1), 0.5f);
  // One of the kind that works suspends as before.
  k.outcome(0, false);
  k.outcome(0, false);
  k.outcome(0, false);
  EXPECT_LT(k.availability(0), 0.5f);
}

TEST(Contrast, IsTriedAgainEverLaterAndGivenUpWhenItIsWrong) {
  Kinds k;
  for (int i = 0; i < 20; ++i) k.outcome(i % 2, true);
  k.outcome(1, false);
  k.outcome(0, true);
  double wait = 0.0;
  for (int trial = 0; trial < 3; ++trial) {  // as many as the budget has
    const double before = wait;
    const double failed_at = k.now - 1000.0 - (trial == 0 ? 1000.0 : 0.0);
    while (k.availability(1) < 0.5f) k.now += 500.0;
    wait = k.now - failed_at;
    EXPECT_NEAR(wait, 30000.0 * (trial == 0 ? 1.0 : std::exp2(trial - 1)), 1001.0) << trial;
    EXPECT_GE(wait, before - 1001.0);
    k.outcome(1, false);
  }
  while (k.availability(1) < 0.5f) k.now += 10000.0;
  for (int i = 0; i < 8; ++i) k.outcome(1, true);
  EXPECT_EQ(k.availability(1), 1.0f);
}

TEST(Contrast, FailedTrialsOfAllToolsShareOneBudget) {
  const Bandit bandit = make_bandit(bandit_options(16));
  std::mt19937 random(5);
  double now = 1e6;
  const auto name = [](int i) { return "tool " + std::to_string(i); };
  const auto tell = [&](int i, int kind, float y) { report(bandit, name(i), of_kind(kind, &random), 0.5f, y, now); };
  for (int i = 0; i < 50; ++i) {
    tell(i, 0, 1.0f);
    tell(i, 1, 0.0f);
    tell(i, 0, 1.0f);
  }
  now += 60000.0;  // every wait is over
  int offered = 0;
  for (int i = 0; i < 50; ++i) {
    if (score(bandit, name(i), of_kind(1, &random), 0.5f, now).availability < 0.5f) continue;
    ++offered;
    tell(i, 1, 0.0f);
  }
  EXPECT_LE(offered, 4);
  EXPECT_GE(offered, 2);
}

TEST(Contrast, OnlyTheCalibratedFormHasOne) {
  for (const finch_bandit_form form : {FINCH_BANDIT_LITERAL, FINCH_BANDIT_MEAN}) {
    const Bandit bandit = make_bandit(bandit_options(16, form));
    std::mt19937 random(6);
    for (int i = 0; i < 6; ++i) report(bandit, "tool", of_kind(i % 2, &random), 0.5f, static_cast<float>(i % 2));
    EXPECT_TRUE(std::isnan(score(bandit, "tool", of_kind(0, &random), 0.5f).contrast));
  }
}

TEST(Contrast, TakesMemoryOfToolsThatFailedOnlyAndGivesItBack) {
  const auto bytes = [](const Bandit& bandit) {
    uint64_t count = 0, size = 0;
    EXPECT_EQ(finch_bandit_arms(bandit.get(), &count, &size), FINCH_OK);
    return size;
  };
  const Bandit bandit = make_bandit(bandit_options(384));
  const std::vector<float> x(384, 1.0f);
  for (int i = 0; i < 64; ++i) report(bandit, "tool " + std::to_string(i), x, 0.5f, 1.0f);
  const uint64_t before = bytes(bandit);
  report(bandit, "tool 0", x, 0.5f, 0.0f);
  const uint64_t with = bytes(bandit);
  EXPECT_GE(with - before, 2u * 384u * 4u);
  EXPECT_LE(with - before, 2u * 384u * 4u + 512u);
  const std::string first = "tool 0";
  for (int round = 0; round < 50; ++round) {
    const finch_string id = as_string(first);
    ASSERT_EQ(finch_bandit_drop(bandit.get(), &id, 1), FINCH_OK);
    report(bandit, "tool 0", x, 0.5f, 0.0f);
    EXPECT_EQ(bytes(bandit), with);
  }
}

TEST(Contrast, IsKeptInTheState) {
  Kinds k;
  for (int i = 0; i < 30; ++i) k.outcome(i % 2, i % 2 == 0);
  const std::vector<char> bytes = serialized(k.bandit);
  const Bandit copy = make_bandit(bandit_options(16));
  ASSERT_EQ(finch_bandit_deserialize(copy.get(), bytes.data(), bytes.size()), FINCH_OK) << finch_last_error();
  EXPECT_EQ(serialized(copy), bytes);
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> x = of_kind(i % 2, &k.random);
    const finch_arm_score a = score(k.bandit, "tool", x, 0.5f, k.now), b = score(copy, "tool", x, 0.5f, k.now);
    EXPECT_EQ(a.contrast, b.contrast);
    EXPECT_EQ(a.availability, b.availability);
    for (const Bandit* each : std::initializer_list<const Bandit*>{&k.bandit, &copy})
      report(*each, "tool", x, 0.5f, static_cast<float>(i % 3 == 0), k.now);
    EXPECT_EQ(serialized(copy), serialized(k.bandit));
  }
}

}  // namespace
}  // namespace finch::test
