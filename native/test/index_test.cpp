#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <set>
#include <thread>

#include "catalogue.hpp"

namespace finch_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Index, RefusesOptionsOutOfRange) {
  finch_index* out = nullptr;
  finch_index_options options{sizeof(options), 0, FINCH_STORAGE_F32};
  EXPECT_EQ(finch_index_create(&options, &out), FINCH_INVALID_ARGUMENT);
  options.dimension = FINCH_MAX_DIMENSION + 1;
  EXPECT_EQ(finch_index_create(&options, &out), FINCH_INVALID_ARGUMENT);
  options = {4, 8, FINCH_STORAGE_F32};
  EXPECT_EQ(finch_index_create(&options, &out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_create(nullptr, &out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  options = {sizeof(options), 8, 4};
  EXPECT_EQ(finch_index_create(&options, &out), FINCH_INVALID_ARGUMENT);
  options = {sizeof(options), FINCH_MAX_DIMENSION, FINCH_STORAGE_F32};
  EXPECT_EQ(finch_index_create(&options, &out), FINCH_OK);
  finch_index_release(out);
}

TEST(Index, KeysCountUpSurviveReplacementAndAreNeverReused) {
  Index index(2);
  uint64_t keys[3];
  ASSERT_EQ(index.upsert({"a", "b", "c"}, {1, 0, 0, 1, 1, 1}, nullptr, keys), FINCH_OK);
  EXPECT_EQ((std::vector<uint64_t>(keys, keys + 3)), (std::vector<uint64_t>{1, 2, 3}));
  ASSERT_EQ(index.upsert({"c", "d", "a"}, {2, 0, 0, 2, 2, 2}, nullptr, keys), FINCH_OK);
  EXPECT_EQ((std::vector<uint64_t>(keys, keys + 3)), (std::vector<uint64_t>{3, 4, 1}));
  ASSERT_EQ(index.remove({"a", "d"}), FINCH_OK);
  ASSERT_EQ(index.upsert({"a"}, {1, 0}, nullptr, keys), FINCH_OK);
  EXPECT_EQ(keys[0], 5u);
  EXPECT_EQ(index.info().slots, 4u) << "a removed row's slot is reused";
  EXPECT_EQ(Snapshot(index).keys(), (std::vector<uint64_t>{2, 3, 5}));
  ASSERT_EQ(index.remove({"a", "b", "c"}), FINCH_OK);
  EXPECT_EQ(index.info().slots, 0u);
  EXPECT_EQ(index.info().vector_bytes, 0u);
  ASSERT_EQ(index.upsert({"b"}, {1, 0}, nullptr, keys), FINCH_OK);
  EXPECT_EQ(keys[0], 6u);
}

TEST(Index, VectorsAreStoredUnitWhateverTheirLength) {
  Index index(3);
  const float denormal = std::numeric_limits<float>::denorm_min();
  ASSERT_EQ(index.upsert({"small", "large", "tiny", "mixed"},
                         {3e-30f, 4e-30f, 0, 3e30f, 4e30f, 0, denormal, denormal, 0, 3e38f, 1e-38f, -3e38f}),
            FINCH_OK)
      << finch_last_error();
  Snapshot snapshot(index);
  const auto keys = snapshot.keys();
  std::vector<float> out(12);
  ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), 4, nullptr, out.data(), nullptr), FINCH_OK);
  const float root = std::sqrt(0.5f);
  const std::vector<float> expected{0.6f, 0.8f, 0, 0.6f, 0.8f, 0, root, root, 0, root, 0, -root};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6) << i;
}

TEST(Index, AFailedUpsertChangesNothing) {
  Index index(2);
  ASSERT_EQ(index.upsert({"a", "b"}, {1, 0, 0, 1}), FINCH_OK);
  const auto before = index.info();
  Snapshot old(index);
  const std::string longest(FINCH_MAX_ID_BYTES, 'x'), too_long(FINCH_MAX_ID_BYTES + 1, 'x');
  uint64_t keys[3] = {77, 77, 77};
  const struct {
    std::vector<std::string> ids;
    std::vector<float> vectors;
    std::vector<float> priors;
    finch_status status;
  } cases[] = {
      {{"c", "a", "d"}, {1, 1, 2, 2, kNan, 1}, {}, FINCH_NOT_FINITE},
      {{"c", "a", "d"}, {1, 1, 2, 2, 1, -kInfinity}, {}, FINCH_NOT_FINITE},
      {{"c", "a", "d"}, {1, 1, 0, 0, 1, 1}, {}, FINCH_ZERO_VECTOR},
      {{"c", "a", "d"}, {1, 1, -0.0f, 0, 1, 1}, {}, FINCH_ZERO_VECTOR},
      {{"c", "d", "c"}, {1, 1, 2, 2, 3, 3}, {}, FINCH_DUPLICATE_ID},
      {{"c", "a", "a"}, {1, 1, 2, 2, 3, 3}, {}, FINCH_DUPLICATE_ID},
      {{"c", "", "d"}, {1, 1, 2, 2, 3, 3}, {}, FINCH_INVALID_ARGUMENT},
      {{"c", too_long, "d"}, {1, 1, 2, 2, 3, 3}, {}, FINCH_INVALID_ARGUMENT},
      {{"c", "a", "d"}, {1, 1, 2, 2, 3, 3}, {0.5f, 1.0001f, 0}, FINCH_INVALID_ARGUMENT},
      {{"c", "a", "d"}, {1, 1, 2, 2, 3, 3}, {0.5f, -0.1f, 0}, FINCH_INVALID_ARGUMENT},
      {{"c", "a", "d"}, {1, 1, 2, 2, 3, 3}, {0.5f, 0, kNan}, FINCH_INVALID_ARGUMENT},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(index.upsert(c.ids, c.vectors, c.priors.empty() ? nullptr : c.priors.data(), keys), c.status);
    EXPECT_NE(std::string(finch_last_error()), "");
    EXPECT_EQ(keys[0], 77u);
    const auto after = index.info();
    EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0);
    EXPECT_EQ(Snapshot(index).find("c"), FINCH_NO_KEY);
    EXPECT_EQ(Snapshot(index).search({1, 0}, 1, 2), old.search({1, 0}, 1, 2));
  }
  uint64_t key = 0;
  ASSERT_EQ(index.upsert({longest}, {1, 1}, nullptr, &key), FINCH_OK);
  EXPECT_EQ(key, 3u) << "failed calls use up no keys";
  EXPECT_EQ(Snapshot(index).find(longest), 3u);
}

TEST(Index, IdsAreOpaqueBytes) {
  Index index(1);
  const std::vector<std::string> ids{
      std::string("a\0b", 3), std::string("a\0c", 3), "a", "\xff\xfe", "\xc3\xa9", "e\xcc\x81"};
  ASSERT_EQ(index.upsert(ids, {1, 1, 1, 1, 1, 1}), FINCH_OK);
  Snapshot snapshot(index);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(snapshot.find(ids[i]), i + 1);
  const auto keys = snapshot.keys();
  std::vector<finch_string> out(keys.size());
  ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), keys.size(), out.data(), nullptr, nullptr), FINCH_OK);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(std::string(out[i].data, out[i].size), ids[i]);
}

TEST(Index, RemoveIsAllOrNothing) {
  Index index(1);
  ASSERT_EQ(index.upsert({"a", "b", "c"}, {1, 1, 1}), FINCH_OK);
  EXPECT_EQ(index.remove({"a", "z"}), FINCH_UNKNOWN_ID);
  EXPECT_EQ(index.remove({"a", "b", "a"}), FINCH_DUPLICATE_ID);
  EXPECT_EQ(index.info().count, 3u);
  EXPECT_EQ(index.info().version, 2u);
  EXPECT_EQ(index.remove({}), FINCH_OK);
  EXPECT_EQ(index.info().version, 2u) << "nothing to do is no change";
  EXPECT_EQ(index.remove({"c", "a"}), FINCH_OK);
  EXPECT_EQ(Snapshot(index).keys(), (std::vector<uint64_t>{2}));
}

TEST(Index, PriorsDefaultStayAndChange) {
  Index index(1);
  const float given[] = {0.25f, 1.0f};
  ASSERT_EQ(index.upsert({"a", "b"}, {1, 1}, given), FINCH_OK);
  ASSERT_EQ(index.upsert({"a", "c"}, {2, 2}), FINCH_OK);
  const auto priors = [&] {
    Snapshot snapshot(index);
    const auto keys = snapshot.keys();
    std::vector<float> out(keys.size());
    EXPECT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), keys.size(), nullptr, nullptr, out.data()), FINCH_OK);
    return out;
  };
  EXPECT_EQ(priors(), (std::vector<float>{0.25f, 1.0f, 0.5f}));
  const auto set = [&](const std::vector<std::string>& ids, const std::vector<float>& values) {
    const auto list = texts(ids);
    return finch_index_set_priors(index.get(), list.data(), values.data(), list.size());
  };
  EXPECT_EQ(set({"a", "z"}, {0, 0}), FINCH_UNKNOWN_ID);
  EXPECT_EQ(set({"a", "b", "a"}, {0, 0, 0}), FINCH_DUPLICATE_ID);
  EXPECT_EQ(set({"a", "b"}, {0, 1.5f}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(priors(), (std::vector<float>{0.25f, 1.0f, 0.5f}));
  EXPECT_EQ(set({"c", "a"}, {0.75f, 0}), FINCH_OK);
  EXPECT_EQ(priors(), (std::vector<float>{0, 1.0f, 0.75f}));
}

TEST(Index, ASnapshotStaysAsItWas) {
  Index index(4);
  Random random(3);
  std::vector<std::string> ids;
  for (int i = 0; i < 700; ++i) ids.push_back("tool-" + std::to_string(i));
  const auto vectors = gaussian(random, 4 * ids.size());
  ASSERT_EQ(index.upsert(ids, vectors), FINCH_OK);
  Snapshot old(index);
  const auto query = gaussian(random, 4);
  const auto before = old.search(query, 1, 700);
  uint64_t key = old.find("tool-5");
  finch_string id;
  ASSERT_EQ(finch_snapshot_rows(old.get(), &key, 1, &id, nullptr, nullptr), FINCH_OK);
  ASSERT_EQ(index.remove({ids.begin(), ids.begin() + 650}), FINCH_OK);
  ASSERT_EQ(index.upsert({"new"}, {1, 2, 3, 4}), FINCH_OK);
  ASSERT_EQ(index.upsert({"tool-699"}, {1, 2, 3, 4}), FINCH_OK);
  EXPECT_EQ(old.search(query, 1, 700), before);
  EXPECT_EQ(std::string(id.data, id.size), "tool-5");
  EXPECT_EQ(old.find("new"), FINCH_NO_KEY);
  EXPECT_EQ(finch_snapshot_count(old.get()), 700u);
  EXPECT_EQ(finch_snapshot_count(Snapshot(index).get()), 51u);
  EXPECT_GT(finch_snapshot_version(Snapshot(index).get()), finch_snapshot_version(old.get()));
}

TEST(Index, NullHandlesAreRefusedNotFollowed) {
  finch_index_info info{};
  info.size = sizeof(info);
  finch_snapshot* snapshot = nullptr;
  size_t count = 0;
  EXPECT_EQ(finch_index_upsert(nullptr, nullptr, nullptr, 0, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_remove(nullptr, nullptr, 0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_inspect(nullptr, &info), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_snapshot(nullptr, &snapshot), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_snapshot_keys(nullptr, nullptr, 0, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_build_ann(nullptr, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  finch_index_retain(nullptr);
  finch_index_release(nullptr);
  finch_snapshot_retain(nullptr);
  finch_snapshot_release(nullptr);
  Index index(2);
  const finch_string id{"a", 1};
  EXPECT_EQ(finch_index_upsert(index.get(), nullptr, nullptr, 1, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_index_upsert(index.get(), &id, nullptr, 1, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  info.size = 8;
  EXPECT_EQ(finch_index_inspect(index.get(), &info), FINCH_INVALID_ARGUMENT);
}

// Thousands of random steps against the model; every dimension stresses another chunk layout.
class Steps : public testing::TestWithParam<uint32_t> {};

TEST_P(Steps, AgreeWithTheModel) {
  const uint32_t d = GetParam();
  Random random(d);
  Index index(d);
  Model model;
  const std::string path = testing::TempDir() + "steps-" + std::to_string(d) + ".finch";
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const int steps = d > 1000 ? 150 : 1500;
  const size_t names = d > 1000 ? 40 : 900;
  for (int step = 0; step < steps; ++step) {
    const size_t action = pick(20);
    if (action < 9) {
      const size_t count = 1 + pick(action == 0 ? 300 : 4);
      std::set<std::string> chosen;
      for (size_t i = 0; i < count; ++i) chosen.insert("t" + std::to_string(pick(names)));
      const std::vector<std::string> ids(chosen.begin(), chosen.end());
      const auto vectors = gaussian(random, d * ids.size());
      std::vector<float> priors;
      for (size_t i = 0; i < ids.size(); ++i) priors.push_back(static_cast<float>(pick(1001)) / 1000);
      std::vector<uint64_t> keys(ids.size());
      ASSERT_EQ(index.upsert(ids, vectors, priors.data(), keys.data()), FINCH_OK);
      for (size_t i = 0; i < ids.size(); ++i) {
        model.upsert(ids[i], vectors.data() + i * d, d, priors[i]);
        ASSERT_EQ(keys[i], model.rows[ids[i]].key);
      }
    } else if (action < 15 && !model.rows.empty()) {
      std::set<std::string> chosen;
      for (size_t i = 0, count = 1 + pick(action == 9 ? 100 : 3); i < count; ++i) {
        chosen.insert(std::next(model.rows.begin(), static_cast<long>(pick(model.rows.size())))->first);
      }
      ASSERT_EQ(index.remove({chosen.begin(), chosen.end()}), FINCH_OK);
      for (const auto& id : chosen) model.rows.erase(id);
    } else if (action < 19) {
      Snapshot snapshot(index);
      const auto queries = gaussian(random, d * 3);
      const uint32_t k = 1 + static_cast<uint32_t>(pick(20));
      const auto hits = snapshot.search(queries, 3, k);
      for (size_t q = 0; q < 3; ++q) expect_ranking(hits[q], model.ranking(queries.data() + q * d, d), k, d);
      if (HasFatalFailure()) return;
    } else if (pick(5) == 0) {
      ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK) << finch_last_error();
      finch_index* opened = nullptr;
      ASSERT_EQ(finch_index_open(path.c_str(), nullptr, &opened), FINCH_OK) << finch_last_error();
      index.adopt(opened);
    }
    ASSERT_EQ(index.info().count, model.rows.size());
    if (step % 100 != 99) continue;
    Snapshot snapshot(index);
    std::set<uint64_t> keys;
    for (const auto& [id, row] : model.rows) {
      ASSERT_EQ(snapshot.find(id), row.key);
      keys.insert(row.key);
      finch_string name;
      float prior;
      ASSERT_EQ(finch_snapshot_rows(snapshot.get(), &row.key, 1, &name, nullptr, &prior), FINCH_OK);
      ASSERT_EQ(std::string(name.data, name.size), id);
      ASSERT_EQ(prior, row.prior);
    }
    ASSERT_EQ(snapshot.keys(), std::vector<uint64_t>(keys.begin(), keys.end()));
  }
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Dimensions, Steps, testing::Values(1u, 3u, 17u, 129u, 1500u, 20000u));

// Writers replace all rows at once with a value that all share; a reader must never see two values, nor a wrong count.
TEST(Index, ReadersNeverSeeHalfAChange) {
  constexpr uint32_t kDimension = 8;
  constexpr size_t kRows = 300;
  Index index(kDimension);
  std::vector<std::string> ids;
  for (size_t i = 0; i < kRows; ++i) ids.push_back(std::to_string(i));
  const auto vectors_of = [&](size_t axis) {
    std::vector<float> out(kRows * kDimension);
    for (size_t i = 0; i < kRows; ++i) out[i * kDimension + axis] = 1;
    return out;
  };
  ASSERT_EQ(index.upsert(ids, vectors_of(0)), FINCH_OK);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&, w] {
      for (size_t i = 0; i < 60; ++i) {
        EXPECT_EQ(index.upsert(ids, vectors_of((i + static_cast<size_t>(w) * 3) % kDimension)), FINCH_OK);
        const std::string own = "extra-" + std::to_string(w);
        EXPECT_EQ(index.upsert({own}, {1, 1, 1, 1, 1, 1, 1, 1}), FINCH_OK);
        EXPECT_EQ(index.remove({own}), FINCH_OK);
      }
      done = true;
    });
  }
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&] {
      while (!done) {
        Snapshot snapshot(index);
        std::vector<float> query(kDimension);
        std::set<size_t> axes;
        for (size_t axis = 0; axis < kDimension; ++axis) {
          query.assign(kDimension, 0);
          query[axis] = 1;
          const auto hits = snapshot.search(query, 1, kRows)[0];
          EXPECT_EQ(hits.size(), kRows);
          size_t ones = 0;
          for (const auto& hit : hits) ones += hit.score == 1.0f;
          if (ones > 0) {
            axes.insert(axis);
            EXPECT_EQ(ones, kRows) << "some rows of one change and some of another";
          }
        }
        EXPECT_EQ(axes.size(), 1u);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(index.info().count, kRows);
}

}  // namespace
}  // namespace finch_test
