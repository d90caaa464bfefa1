// Long use: slots are reclaimed, memory stays bounded, and readers beside it see one change or the other, never a mix.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

#include "catalogue.hpp"

namespace finch_test {
namespace {

constexpr finch_storage kStorages[] = {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8};

class Churn : public testing::TestWithParam<finch_storage> {};
INSTANTIATE_TEST_SUITE_P(Storages, Churn, testing::ValuesIn(kStorages));

// 100,000 upserts and removes over 1,000 living rows, a few at a time: rows come and go, are replaced, ids grow and
// shrink. What the index holds at the end is what 1,000 rows need, and a fresh copy of it answers alike.
TEST_P(Churn, SlotsAndBytesAreBounded) {
  constexpr uint32_t kDimension = 16;
  constexpr size_t kLive = 1000;
  constexpr size_t kOperations = 100000;
  constexpr size_t kAtOnce = 20;
  Random random(7);
  Index index(kDimension, GetParam());
  std::deque<std::string> live;
  size_t named = 0;
  const auto fresh_name = [&] { return "tool " + std::to_string(named++) + std::string(random() % 40, 'x'); };
  std::vector<std::string> first;
  for (size_t i = 0; i < kLive; ++i) first.push_back(fresh_name());
  ASSERT_EQ(index.upsert(first, gaussian(random, kLive * kDimension)), FINCH_OK);
  live.assign(first.begin(), first.end());
  const finch_index_info start = index.info();

  finch_index_info most = start;
  for (size_t done = 0; done < kOperations; done += 2 * kAtOnce) {
    std::vector<std::string> gone, come;
    for (size_t i = 0; i < kAtOnce; ++i) {
      std::swap(live[random() % live.size()], live.front());
      gone.push_back(live.front());
      live.pop_front();
      come.push_back(fresh_name());
    }
    ASSERT_EQ(index.remove(gone), FINCH_OK);
    const size_t added = come.size();
    come.push_back(live[random() % live.size()]);  // replaced, not new
    ASSERT_EQ(index.upsert(come, gaussian(random, come.size() * kDimension)), FINCH_OK);
    live.insert(live.end(), come.begin(), come.begin() + static_cast<long>(added));
    const finch_index_info now = index.info();
    most.slots = std::max(most.slots, now.slots);
    most.vector_bytes = std::max(most.vector_bytes, now.vector_bytes);
    most.code_bytes = std::max(most.code_bytes, now.code_bytes);
  }
  EXPECT_EQ(index.info().count, kLive);
  EXPECT_LE(most.slots, kLive + kAtOnce);
  EXPECT_LE(most.vector_bytes, 2 * start.vector_bytes);
  EXPECT_LE(most.code_bytes, 2 * start.code_bytes);
  EXPECT_EQ(start.code_bytes == 0, GetParam() == FINCH_STORAGE_F32);

  const std::string path = testing::TempDir() + "finch-churn.finch";
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  finch_index* handle = nullptr;
  ASSERT_EQ(finch_index_open(path.c_str(), nullptr, &handle), FINCH_OK) << finch_last_error();
  const Index opened(handle);
  const auto queries = gaussian(random, 5 * kDimension);
  EXPECT_EQ(Snapshot(index).search(queries, 5, 50), Snapshot(opened).search(queries, 5, 50));
  std::remove(path.c_str());
}

// The peak of the process's memory is the allocator's business; what must not grow is what the states keep alive.
TEST(ChurnStates, OldStatesGoWhenTheirReadersDo) {
  constexpr uint32_t kDimension = 64;
  Random random(8);
  Index index(kDimension);
  std::vector<std::string> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(std::to_string(i));
  std::deque<std::unique_ptr<Snapshot>> held;
  std::deque<std::pair<std::vector<float>, std::vector<std::vector<Hit>>>> answers;
  for (int round = 0; round < 200; ++round) {
    ASSERT_EQ(index.upsert(ids, gaussian(random, ids.size() * kDimension)), FINCH_OK);
    held.push_back(std::make_unique<Snapshot>(index));
    auto query = gaussian(random, kDimension);
    answers.emplace_back(query, held.back()->search(query, 1, 5));
    if (held.size() < 8) continue;
    EXPECT_EQ(held.front()->search(answers.front().first, 1, 5), answers.front().second) << "held for 8 changes";
    held.pop_front();
    answers.pop_front();
  }
  EXPECT_EQ(index.info().slots, 500u);
}

class Atomic : public testing::TestWithParam<finch_storage> {};
INSTANTIATE_TEST_SUITE_P(Storages, Atomic, testing::ValuesIn(kStorages));

// A writer replaces two rows at a time, with opposite vectors and priors that sum to 1, and adds and removes rows in
// pairs. A reader that finds anything else has seen half a change.
TEST_P(Atomic, ReadersSeeWholeChanges) {
  constexpr uint32_t kDimension = 24;
  constexpr size_t kFixed = 200;
  constexpr int kChanges = 400;
  Random random(9);
  Index index(kDimension, GetParam());
  std::vector<std::string> fixed;
  for (size_t i = 0; i < kFixed; ++i) fixed.push_back("fixed " + std::to_string(i));
  ASSERT_EQ(index.upsert(fixed, gaussian(random, kFixed * kDimension)), FINCH_OK);

  const auto pair = [&](int round, Random& with) {
    auto vectors = gaussian(with, kDimension);
    vectors.resize(2 * kDimension);
    for (size_t i = 0; i < kDimension; ++i) vectors[kDimension + i] = -vectors[i];
    const float prior = static_cast<float>(round % 128) / 128;
    const float priors[] = {prior, 1 - prior};
    EXPECT_EQ(index.upsert({"left", "right"}, vectors, priors), FINCH_OK);
  };
  pair(0, random);
  std::atomic<bool> done{false};
  std::atomic<size_t> looked{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      while (!done) {
        const Snapshot snapshot(index);
        const std::vector<uint64_t> keys{snapshot.find("left"), snapshot.find("right")};
        ASSERT_NE(keys[0], FINCH_NO_KEY);
        ASSERT_NE(keys[1], FINCH_NO_KEY);
        std::vector<float> vectors(2 * kDimension);
        float priors[2];
        ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), 2, nullptr, vectors.data(), priors), FINCH_OK);
        EXPECT_EQ(priors[0] + priors[1], 1.0f);
        for (size_t i = 0; i < kDimension; ++i) ASSERT_EQ(vectors[kDimension + i], -vectors[i]);
        // What search scans (codes too) is of the same state as the vectors.
        const std::vector<float> query(vectors.begin(), vectors.begin() + kDimension);
        const auto hits = snapshot.search(query, 1, 1);
        ASSERT_EQ(hits[0].size(), 1u);
        EXPECT_EQ(hits[0][0].key, keys[0]);
        EXPECT_NEAR(hits[0][0].score, 1.0f, 1e-5);
        size_t count = 0;
        for (int i = 0; i < 4; ++i) count += snapshot.find("moving " + std::to_string(i)) != FINCH_NO_KEY;
        EXPECT_EQ(finch_snapshot_count(snapshot.get()), kFixed + 2 + count);
        EXPECT_EQ(count % 2, 0u) << "half a change";
        ++looked;
      }
    });
  }
  Random own(10);
  for (int round = 1; round <= kChanges; ++round) {
    pair(round, own);
    const std::vector<std::string> two{"moving " + std::to_string(2 * (round % 2)),
                                       "moving " + std::to_string(2 * (round % 2) + 1)};
    if (round > 2) {
      EXPECT_EQ(index.remove(two), FINCH_OK);
    }
    EXPECT_EQ(index.upsert(two, gaussian(own, 2 * kDimension)), FINCH_OK);
    if (round == kChanges) {
      while (looked == 0) std::this_thread::yield();
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(looked, 0u);
}

}  // namespace
}  // namespace finch_test
