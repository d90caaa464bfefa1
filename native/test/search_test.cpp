#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "catalogue.hpp"

namespace finch_test {
namespace {

std::vector<std::string> numbered(size_t count) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back("id" + std::to_string(i));
  return ids;
}

TEST(Search, AgreesWithFloat64AtManyDimensions) {
  Random random(1);
  for (const uint32_t d : {1u, 2u, 15u, 64u, 100u, 384u, 769u, 4097u}) {
    const size_t rows = d > 1000 ? 150 : 700;
    Index index(d);
    Model model;
    const auto ids = numbered(rows);
    const auto vectors = gaussian(random, rows * d);
    ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
    for (size_t i = 0; i < rows; ++i) model.upsert(ids[i], vectors.data() + i * d, d, 0.5f);
    Snapshot snapshot(index);
    const auto queries = gaussian(random, 40 * d);
    for (const uint32_t k : {1u, 10u, 1000u}) {
      const auto hits = snapshot.search(queries, 40, k);
      for (size_t q = 0; q < 40; q += 7) expect_ranking(hits[q], model.ranking(queries.data() + q * d, d), k, d);
    }
  }
}

TEST(Search, AQuerysBitsDoNotDependOnItsBatchNorOnK) {
  constexpr uint32_t kDimension = 37;
  Random random(2);
  Index index(kDimension);
  ASSERT_EQ(index.upsert(numbered(500), gaussian(random, 500 * kDimension)), FINCH_OK);
  Snapshot snapshot(index);
  const auto queries = gaussian(random, 50 * kDimension);
  const auto batch = snapshot.search(queries, 50, 12);
  for (size_t q = 0; q < 50; ++q) {
    const std::vector<float> alone(queries.begin() + static_cast<long>(q * kDimension),
                                   queries.begin() + static_cast<long>((q + 1) * kDimension));
    EXPECT_EQ(snapshot.search(alone, 1, 12)[0], batch[q]);
    auto longer = snapshot.search(alone, 1, 300)[0];
    longer.resize(12);
    EXPECT_EQ(longer, batch[q]);
  }
}

TEST(Search, TiesGoByKeyWhateverTheSlot) {
  Index index(2);
  ASSERT_EQ(index.upsert(numbered(400), std::vector<float>(800, 1.0f)), FINCH_OK);
  // Early slots go to late keys.
  ASSERT_EQ(index.remove({"id0", "id1", "id2", "id3"}), FINCH_OK);
  ASSERT_EQ(index.upsert({"late0", "late1"}, {1, 1, 2, 2}), FINCH_OK);
  ASSERT_EQ(index.upsert({"id9"}, {3, 3}), FINCH_OK) << "replacing keeps the place";
  const auto hits = Snapshot(index).search({1, 1}, 1, 398)[0];
  ASSERT_EQ(hits.size(), 398u);
  for (size_t i = 0; i < 396; ++i) EXPECT_EQ(hits[i].key, i + 5);
  EXPECT_EQ(hits[396].key, 401u);
  EXPECT_EQ(hits[397].key, 402u);
  const auto few = Snapshot(index).search({1, 1}, 1, 7)[0];
  EXPECT_EQ(few, std::vector<Hit>(hits.begin(), hits.begin() + 7));
}

TEST(Search, MasksDecideBeforeScores) {
  constexpr uint32_t kDimension = 9;
  Random random(4);
  Index index(kDimension);
  Model model;
  const auto ids = numbered(1000);
  const auto vectors = gaussian(random, 1000 * kDimension);
  ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
  Snapshot snapshot(index);
  const auto query = gaussian(random, kDimension);
  for (const size_t size : {0u, 1u, 2u, 63u, 64u, 65u, 500u, 999u, 1000u}) {
    auto chosen = ids;
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(size);
    model.rows.clear();
    for (const auto& id : chosen) {
      const size_t i = std::stoul(id.substr(2));
      model.upsert(id, vectors.data() + i * kDimension, kDimension, 0.5f);
      model.rows[id].key = i + 1;
    }
    const auto list = texts(chosen);
    finch_allow* allow = nullptr;
    size_t matched = 99;
    ASSERT_EQ(finch_allow_create(snapshot.get(), list.data(), list.size(), &allow, &matched), FINCH_OK);
    EXPECT_EQ(matched, size);
    const auto hits = snapshot.search(query, 1, 20, FINCH_SEARCH_EXACT, allow)[0];
    expect_ranking(hits, model.ranking(query.data(), kDimension), 20, kDimension);
    finch_allow_release(allow);
  }
}

TEST(Search, ReadsQueriesAtAnyAlignment) {
  Random random(5);
  constexpr uint32_t kDimension = 33;
  Index index(kDimension);
  ASSERT_EQ(index.upsert(numbered(50), gaussian(random, 50 * kDimension)), FINCH_OK);
  Snapshot snapshot(index);
  const auto query = gaussian(random, kDimension);
  const auto expected = snapshot.search(query, 1, 5)[0];
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = 5;
  for (size_t shift = 1; shift < 4; ++shift) {
    std::vector<char> bytes(kDimension * sizeof(float) + shift);
    std::memcpy(bytes.data() + shift, query.data(), kDimension * sizeof(float));
    uint64_t keys[5];
    float scores[5];
    uint32_t count;
    ASSERT_EQ(finch_search(snapshot.get(), reinterpret_cast<const float*>(bytes.data() + shift), 1, &options, keys,
                           scores, &count),
              FINCH_OK);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ((Hit{keys[i], scores[i]}), expected[i]);
  }
}

TEST(Search, RefusesBadArgumentsAndLeavesOutputsAlone) {
  Index index(2), other(2);
  ASSERT_EQ(index.upsert({"a", "b"}, {1, 0, 0, 1}), FINCH_OK);
  ASSERT_EQ(other.upsert({"a", "b"}, {1, 0, 0, 1}), FINCH_OK);
  Snapshot snapshot(index);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  finch_search_options options{};
  uint64_t keys[20];
  float scores[20];
  uint32_t counts[20];
  const auto attempt = [&](const std::vector<float>& queries, finch_status expected) {
    std::fill_n(keys, 20, 77u);
    std::fill_n(counts, 20, 77u);
    EXPECT_EQ(finch_search(snapshot.get(), queries.data(), queries.size() / 2, &options, keys, scores, counts),
              expected);
    EXPECT_TRUE(std::all_of(keys, keys + 20, [](uint64_t x) { return x == 77; }));
    EXPECT_TRUE(std::all_of(counts, counts + 20, [](uint32_t x) { return x == 77; }));
  };
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);  // no size
  options.size = sizeof(options);
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);  // k = 0
  options.k = FINCH_MAX_K + 1;
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);
  options.k = 1;
  options.mode = 3;
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);
  options.mode = FINCH_SEARCH_ANN;
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);
  options.mode = FINCH_SEARCH_AUTO;
  attempt({1, 0, 1, nan}, FINCH_NOT_FINITE);
  std::vector<float> many(40, 1.0f);  // the fault in a later tile than results that are ready
  many[38] = many[39] = 0;
  attempt(many, FINCH_ZERO_VECTOR);
  attempt({}, FINCH_OK);

  finch_allow* allow = nullptr;
  const finch_string id{"a", 1};
  Snapshot foreign(other);
  ASSERT_EQ(finch_allow_create(foreign.get(), &id, 1, &allow, nullptr), FINCH_OK);
  options.allow = allow;
  attempt({1, 0}, FINCH_INVALID_ARGUMENT);  // same version, another index
  finch_allow_release(allow);
  ASSERT_EQ(finch_allow_create(snapshot.get(), &id, 1, &allow, nullptr), FINCH_OK);
  ASSERT_EQ(index.upsert({"c"}, {1, 1}), FINCH_OK);
  options.allow = allow;
  Snapshot later(index);
  EXPECT_EQ(finch_search(later.get(), many.data(), 1, &options, keys, scores, counts), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_search(snapshot.get(), many.data(), 1, &options, keys, scores, counts), FINCH_OK);
  finch_allow_release(allow);

  options.allow = nullptr;
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  options.cancel = cancel;
  ASSERT_EQ(finch_search(snapshot.get(), many.data(), 1, &options, keys, scores, counts), FINCH_OK);
  finch_cancel_signal(cancel);
  attempt({1, 0}, FINCH_ABORTED);
  finch_cancel_release(cancel);
}

TEST(Search, AnEmptyIndexHasNoResults) {
  Index index(3);
  EXPECT_TRUE(Snapshot(index).search({1, 2, 3}, 1, 5)[0].empty());
  ASSERT_EQ(index.upsert({"a"}, {1, 2, 3}), FINCH_OK);
  ASSERT_EQ(index.remove({"a"}), FINCH_OK);
  EXPECT_TRUE(Snapshot(index).search({1, 2, 3}, 1, 5)[0].empty());
}

TEST(Search, ManyThreadsShareASnapshot) {
  constexpr uint32_t kDimension = 24;
  Random random(6);
  Index index(kDimension);
  ASSERT_EQ(index.upsert(numbered(600), gaussian(random, 600 * kDimension)), FINCH_OK);
  Snapshot snapshot(index);
  const auto queries = gaussian(random, 8 * kDimension);
  const auto expected = snapshot.search(queries, 8, 9);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(snapshot.search(queries, 8, 9), expected);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Cosine, AgreesWithFloat64AndWithSearch) {
  Random random(7);
  for (const uint32_t d : {1u, 5u, 63u, 384u}) {
    const auto a = gaussian(random, 10 * d), b = gaussian(random, 10 * d);
    std::vector<float> out(10);
    ASSERT_EQ(finch_cosine(a.data(), b.data(), 10, d, out.data()), FINCH_OK);
    Index index(d);
    ASSERT_EQ(index.upsert(numbered(10), b), FINCH_OK);
    for (size_t i = 0; i < 10; ++i) {
      Model model;
      model.upsert("b", b.data() + i * d, d, 0);
      EXPECT_NEAR(out[i], model.ranking(a.data() + i * d, d)[0].first, tolerance(d));
      const std::vector<float> query(a.begin() + static_cast<long>(i * d), a.begin() + static_cast<long>((i + 1) * d));
      const auto hits = Snapshot(index).search(query, 1, 10)[0];
      for (const Hit& hit : hits) {
        if (hit.key != i + 1) continue;
        EXPECT_EQ(hit.score, out[i]) << "the same bits as search";
      }
    }
  }
}

TEST(Cosine, RefusesWhatHasNoAngle) {
  const float good[] = {1, 2}, zero[] = {0, 0}, infinite[] = {1, std::numeric_limits<float>::infinity()};
  float out = 77;
  EXPECT_EQ(finch_cosine(good, zero, 1, 2, &out), FINCH_ZERO_VECTOR);
  EXPECT_EQ(finch_cosine(infinite, good, 1, 2, &out), FINCH_NOT_FINITE);
  EXPECT_EQ(finch_cosine(good, good, 1, 0, &out), FINCH_DIMENSION);
  EXPECT_EQ(finch_cosine(good, good, 1, FINCH_MAX_DIMENSION + 1, &out), FINCH_DIMENSION);
  EXPECT_EQ(finch_cosine(nullptr, good, 1, 2, &out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out, 77);
  EXPECT_EQ(finch_cosine(nullptr, nullptr, 0, 2, nullptr), FINCH_OK);
}

}  // namespace
}  // namespace finch_test
