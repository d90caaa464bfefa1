#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "catalogue.hpp"

namespace finch_test {
namespace {

constexpr uint32_t kDimension = 32;

// Clusters, as catalogues have them: many near relatives, few strangers.
class Clusters {
 public:
  explicit Clusters(unsigned seed) : random_(seed), centres_(gaussian(random_, kClusters * kDimension)) {}

  std::vector<float> draw(size_t count) {
    std::normal_distribution<float> noise(0, 0.35f);
    std::uniform_int_distribution<size_t> cluster(0, kClusters - 1);
    std::vector<float> out(count * kDimension);
    for (size_t i = 0; i < count; ++i) {
      const float* centre = centres_.data() + cluster(random_) * kDimension;
      for (size_t j = 0; j < kDimension; ++j) out[i * kDimension + j] = centre[j] + noise(random_);
    }
    return out;
  }
  Random& random() { return random_; }

 private:
  static constexpr size_t kClusters = 60;
  Random random_;
  std::vector<float> centres_;
};

std::vector<std::string> numbered(size_t from, size_t to) {
  std::vector<std::string> ids;
  for (size_t i = from; i < to; ++i) ids.push_back("id" + std::to_string(i));
  return ids;
}

// Share of the exact top 10 that the graph found; scores must be those of exact search, to the bit.
double recall(const Snapshot& snapshot, const std::vector<float>& queries, const finch_allow* allow = nullptr) {
  const size_t count = queries.size() / kDimension;
  const auto exact = snapshot.search(queries, count, 10, FINCH_SEARCH_EXACT, allow);
  const auto found = snapshot.search(queries, count, 10, FINCH_SEARCH_ANN, allow);
  const auto all = snapshot.search(queries, count, FINCH_MAX_K > 9000 ? 9000 : FINCH_MAX_K, FINCH_SEARCH_EXACT, allow);
  size_t hit = 0, total = 0;
  for (size_t q = 0; q < count; ++q) {
    EXPECT_EQ(found[q].size(), exact[q].size());
    std::set<uint64_t> truth;
    for (const auto& h : exact[q]) truth.insert(h.key);
    std::map<uint64_t, float> scores;
    for (const auto& h : all[q]) scores[h.key] = h.score;
    for (const auto& h : found[q]) {
      EXPECT_TRUE(scores.count(h.key)) << "not a row of this snapshot, or not allowed";
      EXPECT_EQ(scores[h.key], h.score);
      hit += truth.count(h.key);
    }
    total += exact[q].size();
  }
  return total == 0 ? 1.0 : static_cast<double>(hit) / static_cast<double>(total);
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(condition());
}

class Graph : public testing::Test {
 protected:
  static constexpr size_t kRows = 5000;

  void SetUp() override { ASSERT_EQ(index.upsert(numbered(0, kRows), clusters.draw(kRows)), FINCH_OK); }
  void build() { ASSERT_EQ(finch_index_build_ann(index.get(), nullptr, nullptr), FINCH_OK) << finch_last_error(); }

  Clusters clusters{11};
  Index index{kDimension};
};

TEST_F(Graph, FindsNearlyAllAndKeepsVersionAndSnapshots) {
  Snapshot before(index);
  const auto info = index.info();
  EXPECT_EQ(info.ann_count, 0u);
  build();
  EXPECT_EQ(index.info().version, info.version);
  EXPECT_EQ(index.info().ann_count, kRows);
  EXPECT_GT(index.info().ann_bytes, kRows * 100);
  EXPECT_LT(index.info().ann_bytes, kRows * 250);
  const auto queries = clusters.draw(100);
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  before.search(queries, 1, 1, FINCH_SEARCH_ANN, nullptr, FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(Snapshot(index).search(queries, 100, 10, FINCH_SEARCH_AUTO),
            Snapshot(index).search(queries, 100, 10, FINCH_SEARCH_ANN));
  ASSERT_EQ(finch_index_drop_ann(index.get()), FINCH_OK);
  EXPECT_EQ(index.info().ann_count, 0u);
  EXPECT_EQ(index.info().ann_bytes, 0u);
}

TEST_F(Graph, IsTheSameForTheSameRows) {
  build();
  const auto queries = clusters.draw(50);
  const auto first = Snapshot(index).search(queries, 50, 10, FINCH_SEARCH_ANN);
  build();
  EXPECT_EQ(Snapshot(index).search(queries, 50, 10, FINCH_SEARCH_ANN), first);
}

TEST_F(Graph, FollowsRemovalsReplacementsAndAdditions) {
  build();
  const auto queries = clusters.draw(100);
  Snapshot before(index);
  const auto old = before.search(queries, 100, 10, FINCH_SEARCH_ANN);
  ASSERT_EQ(index.remove(numbered(0, 1500)), FINCH_OK);
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  ASSERT_EQ(index.upsert(numbered(1500, 2000), clusters.draw(500)), FINCH_OK);
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  ASSERT_EQ(index.upsert(numbered(6000, 6400), clusters.draw(400)), FINCH_OK);
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  ASSERT_EQ(index.remove(numbered(1900, 2100)), FINCH_OK);
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  EXPECT_EQ(before.search(queries, 100, 10, FINCH_SEARCH_ANN), old) << "an old snapshot is searched with its own graph";
}

TEST_F(Graph, TakesFreshRowsInOnThePool) {
  build();
  const auto queries = clusters.draw(100);
  // Enough fresh rows to be worth a merge,
  ASSERT_EQ(index.upsert(numbered(6000, 7500), clusters.draw(1500)), FINCH_OK);
  wait_for([&] { return index.info().ann_count == kRows + 1500; });
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  // a merge that carries stale entries along,
  ASSERT_EQ(index.upsert(numbered(2000, 2100), clusters.draw(100)), FINCH_OK);
  ASSERT_EQ(index.remove(numbered(0, 1500)), FINCH_OK);
  EXPECT_EQ(index.info().ann_count, kRows + 1500) << "not yet worth it";
  ASSERT_EQ(index.upsert(numbered(8000, 9200), clusters.draw(1200)), FINCH_OK);
  wait_for([&] { return index.info().ann_count == kRows + 1500 + 100 + 1200; });
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
  // and so many stale ones that the graph is made anew.
  ASSERT_EQ(index.remove(numbered(2000, 5000)), FINCH_OK);
  wait_for([&] { return index.info().ann_count == index.info().count; });
  EXPECT_GE(recall(Snapshot(index), queries), 0.95);
}

TEST_F(Graph, TakesInRowsThatCameDuringAMerge) {
  build();
  // The first batch begins a merge, and the others come before it ends; then nothing changes any more.
  for (size_t batch = 0; batch < 10; ++batch) {
    ASSERT_EQ(index.upsert(numbered(6000 + 1500 * batch, 7500 + 1500 * batch), clusters.draw(1500)), FINCH_OK);
  }
  wait_for([&] { return index.info().ann_count + index.info().count / 16 >= index.info().count; });
  EXPECT_GE(recall(Snapshot(index), clusters.draw(100)), 0.95);
}

TEST_F(Graph, MasksHoldAtEverySelectivity) {
  build();
  Snapshot snapshot(index);
  const auto queries = clusters.draw(40);
  for (const size_t size : {0u, 1u, 5u, 11u, 100u, 1000u, 3500u, 4500u, 5000u}) {
    auto ids = numbered(0, kRows);
    std::shuffle(ids.begin(), ids.end(), clusters.random());
    ids.resize(size);
    const auto list = texts(ids);
    finch_allow* allow = nullptr;
    ASSERT_EQ(finch_allow_create(snapshot.get(), list.data(), list.size(), &allow, nullptr), FINCH_OK);
    EXPECT_GE(recall(snapshot, queries, allow), 0.95) << size << " allowed";
    finch_allow_release(allow);
  }
}

TEST_F(Graph, LargeKAndEmptyIndex) {
  build();
  const auto query = clusters.draw(1);
  Snapshot snapshot(index);
  EXPECT_EQ(snapshot.search(query, 1, 5000, FINCH_SEARCH_ANN)[0], snapshot.search(query, 1, 5000)[0]);
  ASSERT_EQ(index.remove(numbered(0, kRows)), FINCH_OK);
  EXPECT_TRUE(Snapshot(index).search(query, 1, 5, FINCH_SEARCH_ANN)[0].empty());
  ASSERT_EQ(index.upsert({"one"}, query), FINCH_OK);
  EXPECT_EQ(Snapshot(index).search(query, 1, 5, FINCH_SEARCH_ANN)[0].size(), 1u);
  Index empty(kDimension);
  ASSERT_EQ(finch_index_build_ann(empty.get(), nullptr, nullptr), FINCH_OK);
  EXPECT_TRUE(Snapshot(empty).search(query, 1, 5, FINCH_SEARCH_ANN)[0].empty());
  ASSERT_EQ(empty.upsert(numbered(0, 2500), clusters.draw(2500)), FINCH_OK);
  EXPECT_GE(recall(Snapshot(empty), clusters.draw(10)), 0.95);
  wait_for([&] { return empty.info().ann_count == 2500; });
  EXPECT_GE(recall(Snapshot(empty), clusters.draw(50)), 0.95);
}

TEST_F(Graph, CancelledBuildsLeaveNothing) {
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    finch_cancel_signal(cancel);
  });
  const finch_status status = finch_index_build_ann(index.get(), nullptr, cancel);
  canceller.join();
  EXPECT_TRUE(status == FINCH_ABORTED || status == FINCH_OK);
  EXPECT_EQ(finch_index_build_ann(index.get(), nullptr, cancel), FINCH_ABORTED);
  EXPECT_EQ(index.info().ann_count, status == FINCH_OK ? kRows : 0u);
  finch_cancel_release(cancel);
}

TEST_F(Graph, RefusesOptionsOutOfRange) {
  finch_ann_options options{};
  EXPECT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_INVALID_ARGUMENT);
  options.size = sizeof(options);
  options.connectivity = 1;
  EXPECT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_INVALID_ARGUMENT);
  options.connectivity = 1000;
  EXPECT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_INVALID_ARGUMENT);
  options.connectivity = 2;
  options.expansion_add = 1;
  options.expansion_search = 1;
  EXPECT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_OK) << "poor, but valid";
  const auto query = clusters.draw(20);
  for (const auto& hits : Snapshot(index).search(query, 20, 10, FINCH_SEARCH_ANN)) EXPECT_EQ(hits.size(), 10u);
  options.connectivity = 128;
  options.expansion_add = 32;
  EXPECT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_OK);
  EXPECT_GE(recall(Snapshot(index), query), 0.95);
}

// The whole answer to `queries` with these options.
std::vector<std::vector<Hit>> search(const Snapshot& snapshot, const std::vector<float>& queries,
                                     finch_search_options options, finch_status expected = FINCH_OK) {
  options.size = sizeof(options);
  options.mode = FINCH_SEARCH_ANN;
  const size_t count = queries.size() / kDimension;
  std::vector<uint64_t> keys(count * options.k);
  std::vector<float> scores(count * options.k);
  std::vector<uint32_t> counts(count);
  EXPECT_EQ(finch_search(snapshot.get(), queries.data(), count, &options, keys.data(), scores.data(), counts.data()),
            expected)
      << finch_last_error();
  std::vector<std::vector<Hit>> out(count);
  for (size_t q = 0; q < count && expected == FINCH_OK; ++q) {
    for (size_t i = 0; i < counts[q]; ++i) out[q].push_back({keys[q * options.k + i], scores[q * options.k + i]});
  }
  return out;
}

TEST_F(Graph, AnswersTheSameOnAnyNumberOfThreadsAndQueriesACall) {
  build();
  ASSERT_EQ(index.remove(numbered(50, 250)), FINCH_OK);
  ASSERT_EQ(index.upsert(numbered(6000, 6300), clusters.draw(300)), FINCH_OK);
  Snapshot snapshot(index);
  const auto queries = clusters.draw(70);
  finch_search_options options{};
  options.k = 10;
  options.expansion = 24;
  options.threads = 1;
  std::vector<std::vector<Hit>> alone;
  for (size_t q = 0; q < 70; ++q) {
    const std::vector<float> query(queries.begin() + q * kDimension, queries.begin() + (q + 1) * kDimension);
    alone.push_back(search(snapshot, query, options)[0]);
  }
  for (const uint32_t threads : {0u, 1u, 2u, 5u}) {
    options.threads = threads;
    EXPECT_EQ(search(snapshot, queries, options), alone) << threads << " threads";
  }
}

TEST_F(Graph, ExpansionSetsHowManyAreFound) {
  build();
  Snapshot snapshot(index);
  const auto queries = clusters.draw(200);
  finch_search_options options{};
  options.k = 10;
  const auto exact = snapshot.search(queries, 200, 10);
  const auto recall_with = [&](uint32_t expansion) {
    options.expansion = expansion;
    const auto found = search(snapshot, queries, options);
    size_t hit = 0;
    for (size_t q = 0; q < 200; ++q) {
      EXPECT_EQ(found[q].size(), 10u);
      for (const auto& h : found[q]) hit += std::count(exact[q].begin(), exact[q].end(), h);
    }
    return static_cast<double>(hit) / 2000;
  };
  const double narrow = recall_with(10);
  EXPECT_LT(narrow, recall_with(48));
  EXPECT_GE(recall_with(48), 0.95);
  EXPECT_GE(recall_with(200), 0.995);
  EXPECT_EQ(recall_with(5000), 1.0) << "more than there are rows: scanned";
  options.expansion = 9;
  search(snapshot, queries, options, FINCH_INVALID_ARGUMENT);
  options.expansion = 65537;
  search(snapshot, queries, options, FINCH_INVALID_ARGUMENT);
  // Cancelled before it begins.
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  finch_cancel_signal(cancel);
  options.expansion = 32;
  options.cancel = cancel;
  search(snapshot, queries, options, FINCH_ABORTED);
  finch_cancel_release(cancel);
}

TEST_F(Graph, IsWalkedAlikeInEveryStorageAndFromAMappedFile) {
  const auto vectors = clusters.draw(2000);
  const auto queries = clusters.draw(30);
  std::vector<std::vector<Hit>> first;
  for (const finch_storage storage : {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8}) {
    Index stored(kDimension, storage);
    ASSERT_EQ(stored.upsert(numbered(0, 2000), vectors), FINCH_OK);
    ASSERT_EQ(finch_index_build_ann(stored.get(), nullptr, nullptr), FINCH_OK);
    const auto found = Snapshot(stored).search(queries, 30, 10, FINCH_SEARCH_ANN);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << "storage " << storage;
    const std::string path = testing::TempDir() + "walk.finch";
    ASSERT_EQ(finch_index_save(stored.get(), path.c_str(), nullptr, 0), FINCH_OK) << finch_last_error();
    for (const uint32_t unverified : {0u, 1u}) {
      finch_open_options options{};
      options.size = sizeof(options);
      options.map = 1;
      options.unverified = unverified;
      finch_index* handle = nullptr;
      ASSERT_EQ(finch_index_open(path.c_str(), &options, &handle), FINCH_OK) << finch_last_error();
      Index opened(handle);
      EXPECT_EQ(Snapshot(opened).search(queries, 30, 10, FINCH_SEARCH_ANN), first);
    }
    std::remove(path.c_str());
  }
}

TEST_F(Graph, EqualVectorsAreTiedByKey) {
  Index twins(kDimension);
  std::vector<float> same;
  const auto one = clusters.draw(1);
  for (int i = 0; i < 3000; ++i) same.insert(same.end(), one.begin(), one.end());
  ASSERT_EQ(twins.upsert(numbered(0, 3000), same), FINCH_OK);
  ASSERT_EQ(finch_index_build_ann(twins.get(), nullptr, nullptr), FINCH_OK);
  const auto hits = Snapshot(twins).search(one, 1, 10, FINCH_SEARCH_ANN)[0];
  ASSERT_EQ(hits.size(), 10u);
  for (size_t i = 1; i < hits.size(); ++i) EXPECT_LT(hits[i - 1].key, hits[i].key);
}

TEST_F(Graph, SurvivesTheFileWithStaleAndFreshRows) {
  build();
  ASSERT_EQ(index.remove(numbered(100, 600)), FINCH_OK);
  ASSERT_EQ(index.upsert(numbered(700, 800), clusters.draw(100)), FINCH_OK);
  ASSERT_EQ(index.upsert(numbered(6000, 6200), clusters.draw(200)), FINCH_OK);
  const std::string path = testing::TempDir() + "ann.finch";
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK) << finch_last_error();
  finch_index* handle = nullptr;
  ASSERT_EQ(finch_index_open(path.c_str(), nullptr, &handle), FINCH_OK) << finch_last_error();
  Index opened(handle);
  std::remove(path.c_str());
  const auto queries = clusters.draw(100);
  EXPECT_EQ(opened.info().ann_count, kRows);
  EXPECT_GE(recall(Snapshot(opened), queries), 0.95);
  EXPECT_EQ(Snapshot(opened).search(queries, 100, 10, FINCH_SEARCH_ANN),
            Snapshot(index).search(queries, 100, 10, FINCH_SEARCH_ANN));
  ASSERT_EQ(opened.upsert(numbered(7000, 8500), clusters.draw(1500)), FINCH_OK);
  wait_for([&] { return opened.info().ann_count == kRows + 100 + 200 + 1500; });
  EXPECT_GE(recall(Snapshot(opened), queries), 0.95);
}

TEST_F(Graph, SearchersWritersAndBuildersTogether) {
  build();
  const auto queries = clusters.draw(4);
  const auto fresh = clusters.draw(1300);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        Snapshot snapshot(index);
        const auto all = snapshot.keys();
        const std::set<uint64_t> keys(all.begin(), all.end());
        for (const auto& hits : snapshot.search(queries, 4, 10, FINCH_SEARCH_AUTO)) {
          EXPECT_EQ(hits.size(), 10u);
          for (const auto& hit : hits) EXPECT_TRUE(keys.count(hit.key));
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (size_t round = 0; round < 3; ++round) {
      EXPECT_EQ(index.upsert(numbered(9000, 10300), fresh), FINCH_OK);
      for (size_t i = 0; i < 20; ++i) EXPECT_EQ(index.remove({"id" + std::to_string(round * 20 + i)}), FINCH_OK);
      EXPECT_EQ(index.remove(numbered(9000, 9700)), FINCH_OK);
    }
  });
  threads.back().join();
  threads.pop_back();
  build();
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GE(recall(Snapshot(index), clusters.draw(30)), 0.95);
}

}  // namespace
}  // namespace finch_test
