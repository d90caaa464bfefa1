// Many at once gives the bits of one by one: lists of ids, updates, and readers that make 1 / A at the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "bandit_fixture.hpp"

namespace finch::test {
namespace {

constexpr finch_bandit_form kForms[] = {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL, FINCH_BANDIT_MEAN};

bool same_bits(const finch_arm_score& a, const finch_arm_score& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST(BanditBatch, ManyListsAreTheListsOneByOne) {
  std::mt19937 random(1);
  for (const finch_bandit_form form : kForms) {
    constexpr uint32_t d = 37;
    const Bandit bandit = make_bandit(bandit_options(d, form));
    for (int i = 0; i < 200; ++i) {
      report(bandit, "tool " + std::to_string(random() % 60), random_vector(&random, d), 0.4f,
             static_cast<float>(random() % 2), 1000.0 * i);
    }
    const std::vector<size_t> lengths = {0, 1, 50, 0, 3, 17, 2};
    std::vector<std::string> names;
    std::vector<uint64_t> offsets = {0};
    std::vector<float> priors, contexts;
    for (const size_t length : lengths) {
      for (size_t i = 0; i < length; ++i) {
        names.push_back("tool " + std::to_string(random() % 90));
        priors.push_back(static_cast<float>(random() % 11) / 10.0f);
      }
      offsets.push_back(names.size());
      const std::vector<float> x = random_vector(&random, d);
      contexts.insert(contexts.end(), x.begin(), x.end());
    }
    std::vector<finch_string> ids;
    for (const std::string& name : names) ids.push_back(as_string(name));
    for (const float* given : {static_cast<const float*>(priors.data()), static_cast<const float*>(nullptr)}) {
      std::vector<finch_arm_score> together(names.size()), alone(names.size());
      ASSERT_EQ(finch_bandit_score_batch(bandit.get(), ids.data(), given, offsets.data(), lengths.size(),
                                         contexts.data(), 2e5, 1, together.data()),
                FINCH_OK)
          << finch_last_error();
      for (size_t j = 0; j < lengths.size(); ++j) {
        const size_t first = static_cast<size_t>(offsets[j]);
        ASSERT_EQ(finch_bandit_score(bandit.get(), ids.data() + first, given == nullptr ? nullptr : given + first,
                                     lengths[j], contexts.data() + j * d, 2e5, 1, alone.data() + first),
                  FINCH_OK);
      }
      for (size_t i = 0; i < names.size(); ++i) EXPECT_TRUE(same_bits(together[i], alone[i])) << names[i];
    }
  }
}

TEST(BanditBatch, BadListsChangeNothing) {
  const Bandit bandit = make_bandit(bandit_options(2));
  const std::string name = "a";
  const finch_string ids[] = {as_string(name), as_string(name)};
  const float contexts[] = {1.0f, 0.0f, 0.0f, 0.0f};
  const uint64_t good[] = {0, 1, 2}, late[] = {1, 1, 2}, falling[] = {0, 2, 1};
  finch_arm_score out[2];
  std::memset(out, 0x5a, sizeof(out));
  finch_arm_score untouched[2];
  std::memcpy(untouched, out, sizeof(out));
  const auto score = [&](const uint64_t* offsets, const float* x, finch_arm_score* target) {
    return finch_bandit_score_batch(bandit.get(), ids, nullptr, offsets, 2, x, 0.0, 0, target);
  };
  EXPECT_EQ(score(good, contexts, out), FINCH_ZERO_VECTOR);  // the second context
  EXPECT_EQ(score(late, contexts, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(score(falling, contexts, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(score(nullptr, contexts, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(score(good, nullptr, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(score(good, contexts, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_score_batch(nullptr, ids, nullptr, good, 2, contexts, 0.0, 0, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_score_batch(bandit.get(), nullptr, nullptr, nullptr, 0, nullptr, 0.0, 0, nullptr), FINCH_OK);
  EXPECT_EQ(std::memcmp(out, untouched, sizeof(out)), 0);
}

TEST(BanditBatch, ManyUpdatesAreTheUpdatesOneByOne) {
  std::mt19937 random(2);
  for (const finch_bandit_form form : kForms) {
    for (const uint32_t d : {1u, 16u, 45u}) {
      const Bandit together = make_bandit(bandit_options(d, form));
      const Bandit alone = make_bandit(bandit_options(d, form));
      std::vector<std::vector<float>> contexts;
      for (int i = 0; i < 40; ++i) contexts.push_back(random_vector(&random, d));
      std::vector<std::string> names;
      std::vector<finch_outcome> outcomes;
      for (int i = 0; i < 300; ++i) names.push_back("tool " + std::to_string(random() % 9));
      for (size_t i = 0; i < names.size(); ++i) {
        // Runs of outcomes of one decision share its context.
        outcomes.push_back({as_string(names[i]), contexts[i / 3 % contexts.size()].data(), 0.3f,
                            static_cast<float>(random() % 5) / 4.0f, 100.0 * static_cast<double>(i)});
      }
      ASSERT_EQ(finch_bandit_update(together.get(), outcomes.data(), outcomes.size()), FINCH_OK);
      for (const finch_outcome& outcome : outcomes) {
        ASSERT_EQ(finch_bandit_update(alone.get(), &outcome, 1), FINCH_OK);
        // Scores in between leave no trace.
        score(alone, "tool 0", contexts[0], 0.3f);
      }
      EXPECT_EQ(serialized(together), serialized(alone));
    }
  }
}

TEST(BanditBatch, ArmsComeAndGo) {
  std::mt19937 random(3);
  const Bandit bandit = make_bandit(bandit_options(5));
  std::vector<uint64_t> updates(500, 0);
  const std::vector<float> x = {1, 2, 3, 4, 5};
  for (int step = 0; step < 20000; ++step) {
    const size_t at = random() % updates.size();
    const std::string name = "tool " + std::to_string(at);
    if (random() % 3 == 0) {
      const finch_string id = as_string(name);
      ASSERT_EQ(finch_bandit_drop(bandit.get(), &id, 1), FINCH_OK);
      updates[at] = 0;
    } else {
      ASSERT_EQ(report(bandit, name, x, 0.5f, 1.0f), FINCH_OK);
      ++updates[at];
    }
    const size_t other = random() % updates.size();
    ASSERT_EQ(score(bandit, "tool " + std::to_string(other), x, 0.5f).updates, updates[other]);
  }
  EXPECT_EQ(arm_count(bandit),
            static_cast<uint64_t>(std::count_if(updates.begin(), updates.end(), [](uint64_t n) { return n > 0; })));
}

TEST(BanditBatch, ReadersThatMeetAStaleArmAgree) {
  constexpr uint32_t d = 301;
  const Bandit bandit = make_bandit(bandit_options(d));
  const Bandit twin = make_bandit(bandit_options(d));
  std::mt19937 random(4);
  const std::vector<float> x = random_vector(&random, d);
  std::atomic<int> round{0};
  std::atomic<int> waiting{0};
  constexpr int kRounds = 200, kReaders = 3;
  std::vector<finch_arm_score> seen(kReaders);
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      for (int i = 1; i <= kRounds; ++i) {
        while (round.load() < i) std::this_thread::yield();
        seen[static_cast<size_t>(r)] = score(bandit, "a", x, 0.5f);
        waiting.fetch_add(1);
      }
    });
  }
  for (int i = 1; i <= kRounds; ++i) {
    const std::vector<float> context = random_vector(&random, d);
    for (const Bandit* b : {&bandit, &twin}) ASSERT_EQ(report(*b, "a", context, 0.5f, 1.0f), FINCH_OK);
    waiting.store(0);
    round.store(i);
    while (waiting.load() < kReaders) std::this_thread::yield();
    const finch_arm_score expected = score(twin, "a", x, 0.5f);
    for (const finch_arm_score& got : seen) EXPECT_TRUE(same_bits(got, expected)) << "round " << i;
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace finch::test
