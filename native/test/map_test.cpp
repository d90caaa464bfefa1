// Opening an index file mapped: the same index as opening it read, without its vectors in memory of our own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "catalogue.hpp"
#include "core/file_format.hpp"

namespace finch_test {
namespace {

namespace fs = std::filesystem;

finch_index* open_mapped(const std::string& path, bool verified = true, finch_status expected = FINCH_OK) {
  finch_open_options options{sizeof(options), 1, verified ? 0u : 1u};
  finch_index* out = nullptr;
  EXPECT_EQ(finch_index_open(path.c_str(), &options, &out), expected) << finch_last_error();
  EXPECT_EQ(out != nullptr, expected == FINCH_OK);
  return out;
}

class Map : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    path = testing::TempDir() + "finch-map-" + std::to_string(getpid()) + ".finch";
    for (size_t i = 0; i < rows; ++i) ids.push_back("tool " + std::to_string(i));
    vectors = gaussian(random, rows * d);
    ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
    ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK) << finch_last_error();
  }
  void TearDown() override { fs::remove(path); }

  // What both indexes answer to some queries, bit for bit.
  void expect_same(const Index& a, const Index& b) {
    Snapshot of_a(a), of_b(b);
    const auto queries = gaussian(random, 5 * d);
    EXPECT_EQ(of_a.keys(), of_b.keys());
    EXPECT_EQ(of_a.search(queries, 5, 20), of_b.search(queries, 5, 20));
  }

  const uint32_t d = GetParam();
  const size_t rows = d > 1000 ? 40 : 1500;
  Random random{d};
  std::vector<std::string> ids;
  std::vector<float> vectors;
  Index index{d};
  std::string path;
};

INSTANTIATE_TEST_SUITE_P(Dimensions, Map, testing::Values(1u, 7u, 96u, 384u, 5001u));

TEST_P(Map, IsTheSameIndexWithoutACopy) {
  const Index mapped(open_mapped(path));
  EXPECT_EQ(mapped.info().vector_bytes, 0u);
  EXPECT_EQ(mapped.info().mapped_bytes, rows * d * sizeof(float));
  EXPECT_EQ(index.info().mapped_bytes, 0u);
  expect_same(index, mapped);
  expect_same(index, Index(open_mapped(path, false)));
}

TEST_P(Map, ChangesAreMadeInMemory) {
  Index mapped(open_mapped(path));
  std::ifstream before_stream(path, std::ios::binary);
  const std::string before(std::istreambuf_iterator<char>(before_stream), {});
  const Snapshot old(mapped);
  const auto query = gaussian(random, d);
  const auto old_hits = old.search(query, 1, 30);
  for (int round = 0; round < 5; ++round) {
    const std::vector<std::string> some{ids[random() % rows], "new " + std::to_string(round)};
    const auto fresh = gaussian(random, 2 * d);
    ASSERT_EQ(index.upsert(some, fresh), FINCH_OK);
    ASSERT_EQ(mapped.upsert(some, fresh), FINCH_OK);
    const std::string gone = "tool " + std::to_string(round);
    ASSERT_EQ(index.remove({gone}), FINCH_OK);
    ASSERT_EQ(mapped.remove({gone}), FINCH_OK);
    ASSERT_EQ(index.upsert({gone}, fresh), FINCH_OK);
    ASSERT_EQ(mapped.upsert({gone}, fresh), FINCH_OK);
    expect_same(index, mapped);
  }
  EXPECT_EQ(old.search(query, 1, 30), old_hits);
  EXPECT_GT(mapped.info().vector_bytes, 0u);
  EXPECT_LT(mapped.info().mapped_bytes, rows * d * sizeof(float));
  std::ifstream after_stream(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after_stream), {}), before);
  ASSERT_EQ(finch_index_save(mapped.get(), path.c_str(), nullptr, 0), FINCH_OK) << "over the file it is mapped from";
  expect_same(mapped, Index(open_mapped(path)));
  expect_same(index, mapped);
}

TEST_P(Map, OutlivesTheFilesName) {
  const Index mapped(open_mapped(path));
  Index other(d);
  ASSERT_EQ(other.upsert({"only"}, gaussian(random, d)), FINCH_OK);
  ASSERT_EQ(finch_index_save(other.get(), path.c_str(), nullptr, 0), FINCH_OK);
  expect_same(index, mapped);
  fs::remove(path);
  expect_same(index, mapped);
}

// The mapping goes with the last that needs it: a snapshot, or a graph that was built over it.
TEST_P(Map, SnapshotsAndGraphsKeepIt) {
  auto mapped = std::make_unique<Index>(open_mapped(path));
  ASSERT_EQ(finch_index_build_ann(mapped->get(), nullptr, nullptr), FINCH_OK);
  ASSERT_EQ(mapped->remove(ids), FINCH_OK);
  EXPECT_EQ(mapped->info().mapped_bytes, 0u);
  ASSERT_EQ(mapped->upsert({"late"}, gaussian(random, d)), FINCH_OK);
  const auto hits = Snapshot(*mapped).search(gaussian(random, d), 1, 3, FINCH_SEARCH_ANN);
  EXPECT_EQ(hits[0].size(), 1u);
  Index again(open_mapped(path));
  const Snapshot snapshot(again);
  const auto query = gaussian(random, d);
  const auto expected = snapshot.search(query, 1, 10);
  again.adopt(nullptr);
  mapped.reset();
  EXPECT_EQ(snapshot.search(query, 1, 10), expected);
}

TEST_P(Map, GraphsOfTheFileWork) {
  ASSERT_EQ(finch_index_build_ann(index.get(), nullptr, nullptr), FINCH_OK);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  const Index mapped(open_mapped(path));
  const auto query = gaussian(random, d);
  EXPECT_EQ(Snapshot(mapped).search(query, 1, 10, FINCH_SEARCH_ANN),
            Snapshot(index).search(query, 1, 10, FINCH_SEARCH_ANN));
}

// A flipped bit of a vector is found unless the caller forgoes it; then scores are wrong and nothing else is.
TEST_P(Map, VerifiesUnlessToldNotTo) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-static_cast<std::streamoff>(sizeof(float)), std::ios::end);
  const float nan = std::nanf("");
  file.write(reinterpret_cast<const char*>(&nan), sizeof(nan));  // vectors are the last section without blobs or graph
  file.close();
  open_mapped(path, true, FINCH_CORRUPT);
  const Index mapped(open_mapped(path, false));
  Snapshot(mapped).search(gaussian(random, 3 * d), 3, 50);
  Snapshot(mapped).search(gaussian(random, 3 * d), 3, 1);
}

TEST_P(Map, ProcessesShareIt) {
  std::vector<pid_t> children;
  const auto query = gaussian(random, d);
  const auto expected = Snapshot(index).search(query, 1, 5);
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const Index mapped(open_mapped(path));
      const Snapshot snapshot(mapped);
      finch_search_options options{};
      options.size = sizeof(options);
      options.k = 5;
      options.threads = 1;  // the pool's threads do not come along into a child
      uint64_t keys[5];
      float scores[5];
      uint32_t count = 0;
      bool same =
          finch_search(snapshot.get(), query.data(), 1, &options, keys, scores, &count) == FINCH_OK && count == 5;
      for (size_t i = 0; same && i < 5; ++i) same = Hit{keys[i], scores[i]} == expected[0][i];
      _exit(same ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(MapOptions, AreChecked) {
  const std::string path = testing::TempDir() + "finch-map-options.finch";
  Index index(3);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  finch_index* out = nullptr;
  const auto open = [&](const finch_open_options& options) {
    const finch_status status = finch_index_open(path.c_str(), &options, &out);
    finch_index_release(out);
    out = nullptr;
    return status;
  };
  EXPECT_EQ(open({sizeof(finch_open_options), 1, 0}), FINCH_OK) << "no rows: nothing to map";
  EXPECT_EQ(open({sizeof(finch_open_options), 0, 0}), FINCH_OK);
  EXPECT_EQ(open({0, 1, 0}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(open({sizeof(finch_open_options), 2, 0}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(open({sizeof(finch_open_options), 1, 2}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(open({sizeof(finch_open_options), 0, 1}), FINCH_INVALID_ARGUMENT);
  fs::remove(path);
  EXPECT_EQ(open({sizeof(finch_open_options), 1, 0}), FINCH_IO);
}

// Readers of many threads over one mapping, while a writer replaces rows under it.
TEST(MapThreads, ReadersAndAWriter) {
  constexpr uint32_t kDimension = 32;
  constexpr size_t kRows = 2000;
  const std::string path = testing::TempDir() + "finch-map-threads.finch";
  Random random(4);
  std::vector<std::string> ids;
  for (size_t i = 0; i < kRows; ++i) ids.push_back(std::to_string(i));
  {
    Index index(kDimension);
    ASSERT_EQ(index.upsert(ids, gaussian(random, kRows * kDimension)), FINCH_OK);
    ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  }
  Index mapped(open_mapped(path));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (unsigned seed = 0; seed < 3; ++seed) {
    readers.emplace_back([&, seed] {
      Random own(seed);
      while (!done) {
        const Snapshot snapshot(mapped);
        EXPECT_EQ(snapshot.search(gaussian(own, kDimension), 1, 10)[0].size(), 10u);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(mapped.upsert({ids[random() % kRows]}, gaussian(random, kDimension)), FINCH_OK);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  fs::remove(path);
}

}  // namespace
}  // namespace finch_test
