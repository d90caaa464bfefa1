// Searches whose rows lie so close together that a filter in bf16 lets most of them through.
#include <gtest/gtest.h>

#include "catalogue.hpp"

namespace finch_test {
namespace {

class ScanFilter : public testing::TestWithParam<finch_storage> {};

// Batches answer as single queries do, to the bit, whatever passes the filter.
TEST_P(ScanFilter, BatchesAnswerAsSingleQueriesDo) {
  constexpr uint32_t kDimension = 96;
  constexpr size_t kRows = 3000;
  constexpr size_t kQueries = 70;
  std::mt19937 random(5);
  for (const float spread : {0.0f, 1e-4f, 3e-3f, 0.05f, 1.0f}) {
    Index index(kDimension, GetParam());
    const std::vector<float> centre = gaussian(random, kDimension);
    std::vector<float> vectors = gaussian(random, kRows * kDimension);
    for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = centre[i % kDimension] + spread * vectors[i];
    std::vector<std::string> ids;
    for (size_t i = 0; i < kRows; ++i) ids.push_back("tool " + std::to_string(i));
    ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
    std::vector<float> queries = gaussian(random, kQueries * kDimension);
    for (size_t i = 0; i < queries.size(); ++i) queries[i] = centre[i % kDimension] + 0.3f * queries[i];
    const Snapshot snapshot(index);
    finch_search_options options{};
    options.size = sizeof(options);
    options.k = 12;
    options.mode = FINCH_SEARCH_EXACT;
    std::vector<uint64_t> keys(kQueries * options.k), alone(options.k);
    std::vector<float> scores(kQueries * options.k), score(options.k);
    std::vector<uint32_t> counts(kQueries);
    for (const uint32_t threads : {1u, 3u}) {
      options.threads = threads;
      ASSERT_EQ(
          finch_search(snapshot.get(), queries.data(), kQueries, &options, keys.data(), scores.data(), counts.data()),
          FINCH_OK);
      for (size_t q = 0; q < kQueries; ++q) {
        uint32_t count = 0;
        ASSERT_EQ(finch_search(snapshot.get(), queries.data() + q * kDimension, 1, &options, alone.data(), score.data(),
                               &count),
                  FINCH_OK);
        ASSERT_EQ(counts[q], count);
        for (size_t i = 0; i < count; ++i) {
          EXPECT_EQ(keys[q * options.k + i], alone[i]) << "spread " << spread << " query " << q << " place " << i;
          EXPECT_EQ(scores[q * options.k + i], score[i]);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, ScanFilter,
                         testing::Values(FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8));

}  // namespace
}  // namespace finch_test
