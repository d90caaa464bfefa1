// Storage other than float32: codes that score far below the k-th best one are not scored again. None of them would
// have made a difference.
#include <gtest/gtest.h>

#include <cmath>

#include "catalogue.hpp"

namespace finch_test {
namespace {

constexpr uint32_t kDimension = 96;
constexpr size_t kRows = 4000;
constexpr size_t kQueries = 150;

using Fill = std::vector<float> (*)(std::mt19937& random, size_t count);

// Every vector for itself; around 40 centres; with a few large components; counts of words; nothing negative.
std::vector<float> independent(std::mt19937& random, size_t count) { return gaussian(random, count * kDimension); }
std::vector<float> clustered(std::mt19937& random, size_t count) {
  std::mt19937 same(11);
  const std::vector<float> centres = gaussian(same, 40 * kDimension);
  std::vector<float> all = gaussian(random, count * kDimension);
  for (size_t i = 0; i < count; ++i) {
    const size_t centre = random() % 40;
    for (size_t j = 0; j < kDimension; ++j) {
      all[i * kDimension + j] = centres[centre * kDimension + j] + 0.1f * all[i * kDimension + j];
    }
  }
  return all;
}
std::vector<float> spiky(std::mt19937& random, size_t count) {
  std::vector<float> all = gaussian(random, count * kDimension);
  for (float& x : all) x = x * x * x;
  return all;
}
std::vector<float> counts(std::mt19937& random, size_t count) {
  std::vector<float> all(count * kDimension);
  for (size_t i = 0; i < count; ++i) {
    for (size_t word = 0; word < 14; ++word) all[i * kDimension + random() % kDimension] += 1.0f;
  }
  return all;
}
std::vector<float> positive(std::mt19937& random, size_t count) {
  std::vector<float> all = gaussian(random, count * kDimension);
  for (float& x : all) x = std::fabs(x) + 0.5f;
  return all;
}

struct Answers {
  std::vector<uint64_t> keys;
  std::vector<float> scores;
};

Answers search(const finch_snapshot* snapshot, const std::vector<float>& queries, uint32_t k, uint32_t overfetch) {
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = k;
  options.mode = FINCH_SEARCH_EXACT;
  options.overfetch = overfetch;
  Answers answers{std::vector<uint64_t>(kQueries * k), std::vector<float>(kQueries * k)};
  std::vector<uint32_t> counts(kQueries);
  EXPECT_EQ(finch_search(snapshot, queries.data(), kQueries, &options, answers.keys.data(), answers.scores.data(),
                         counts.data()),
            FINCH_OK)
      << finch_last_error();
  return answers;
}

class Rescoring : public testing::TestWithParam<finch_storage> {};

TEST_P(Rescoring, WhatIsSparedWouldNotHaveBeenFound) {
  for (const Fill fill : {independent, clustered, spiky, counts, positive}) {
    std::mt19937 random(21);
    Index index(kDimension, GetParam());
    std::vector<std::string> ids;
    for (size_t i = 0; i < kRows; ++i) ids.push_back("tool " + std::to_string(i));
    ASSERT_EQ(index.upsert(ids, fill(random, kRows)), FINCH_OK);
    const std::vector<float> queries = fill(random, kQueries);
    const Snapshot snapshot(index);
    for (const uint32_t k : {1u, 10u, 100u}) {
      // As many as the default allows at most, but each of them scored.
      const uint32_t most = GetParam() == FINCH_STORAGE_I8 ? k + k / 4 + 24 : k + k / 16 + 16;
      const Answers some = search(snapshot.get(), queries, k, 0);
      const Answers all = search(snapshot.get(), queries, k, most);
      EXPECT_EQ(some.keys, all.keys) << "k " << k;
      EXPECT_EQ(some.scores, all.scores) << "k " << k;
    }
  }
}

// With as many as there are rows the answer is float32's.
TEST_P(Rescoring, OfEveryRowIsExact) {
  std::mt19937 random(22);
  Index index(kDimension, GetParam());
  Index reference(kDimension, FINCH_STORAGE_F32);
  std::vector<std::string> ids;
  for (size_t i = 0; i < 500; ++i) ids.push_back("tool " + std::to_string(i));
  const std::vector<float> vectors = clustered(random, ids.size());
  ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
  ASSERT_EQ(reference.upsert(ids, vectors), FINCH_OK);
  const std::vector<float> queries = clustered(random, kQueries);
  const Snapshot snapshot(index), exact(reference);
  const Answers all = search(snapshot.get(), queries, 20, 500);
  const Answers wanted = search(exact.get(), queries, 20, 0);
  EXPECT_EQ(all.keys, wanted.keys);
  EXPECT_EQ(all.scores, wanted.scores);
}

INSTANTIATE_TEST_SUITE_P(Storages, Rescoring, testing::Values(FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8));

}  // namespace
}  // namespace finch_test
