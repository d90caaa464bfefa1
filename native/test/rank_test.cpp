#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bandit_fixture.hpp"

namespace finch::test {
namespace {

struct ReleaseIndex {
  void operator()(finch_index* index) const { finch_index_release(index); }
};
struct ReleaseSnapshot {
  void operator()(finch_snapshot* snapshot) const { finch_snapshot_release(snapshot); }
};

constexpr uint32_t kDimension = 24;

// 60 tools with priors, a third of them with feedback, some failing; two pairs of identical tools.
class Rank : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(11);
    finch_index_options options{sizeof(finch_index_options), kDimension, FINCH_STORAGE_F32};
    finch_index* index = nullptr;
    ASSERT_EQ(finch_index_create(&options, &index), FINCH_OK);
    index_.reset(index);
    std::vector<float> vectors = random_vector(&random, 60 * kDimension), priors;
    for (const size_t copy : {7, 30}) {
      std::copy_n(vectors.begin(), kDimension, vectors.begin() + static_cast<std::ptrdiff_t>(copy * kDimension));
    }
    std::vector<finch_string> ids;
    for (size_t i = 0; i < 60; ++i) names_.push_back("tool " + std::to_string(i));
    for (const std::string& name : names_) ids.push_back(as_string(name));
    for (size_t i = 0; i < 60; ++i) priors.push_back(static_cast<float>(i % 5) / 4.0f);
    priors[0] = priors[7] = priors[30] = 0.5f;
    ASSERT_EQ(finch_index_upsert(index, ids.data(), vectors.data(), 60, priors.data(), nullptr), FINCH_OK);
    finch_snapshot* snapshot = nullptr;
    ASSERT_EQ(finch_index_snapshot(index, &snapshot), FINCH_OK);
    snapshot_.reset(snapshot);
    bandit_ = make_bandit(bandit_options(kDimension));
    for (int i = 0; i < 200; ++i) {
      const size_t tool = 10 + random() % 20;
      ASSERT_EQ(report(bandit_, names_[tool], random_vector(&random, kDimension), priors[tool],
                       static_cast<float>(random() % 2), 100.0 * i),
                FINCH_OK);
    }
    query_ = random_vector(&random, kDimension);
    search_.size = sizeof(search_);
    search_.k = 20;
    weights_.size = sizeof(weights_);
    weights_.outage = 0.25f;
    cut_options_.size = sizeof(cut_options_);
    cut_options_.min_k = 2;
    options_.size = sizeof(options_);
    options_.now = 30000.0;
    options_.explore = 1;
    options_.weights = &weights_;
    options_.cut = &cut_options_;
    cut_.size = sizeof(cut_);
  }

  std::unique_ptr<finch_index, ReleaseIndex> index_;
  std::unique_ptr<finch_snapshot, ReleaseSnapshot> snapshot_;
  Bandit bandit_;
  std::vector<std::string> names_;
  std::vector<float> query_;
  finch_search_options search_{};
  finch_weights weights_{};
  finch_cut_options cut_options_{};
  finch_rank_options options_{};
  finch_cut cut_{};
};

bool same_candidates(const std::vector<finch_candidate>& a, const std::vector<finch_candidate>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(finch_candidate)) == 0;
}

TEST_F(Rank, SelectHasTheBitsOfTheSeparateStages) {
  for (const uint32_t k : {1u, 2u, 3u, 20u, 60u, 100u}) {
    for (const bool with_bandit : {true, false}) {
      search_.k = k;
      const finch_bandit* bandit = with_bandit ? bandit_.get() : nullptr;
      std::vector<finch_candidate> candidates(k);
      std::vector<float> similarities(k);
      size_t count = 0;
      ASSERT_EQ(finch_select(snapshot_.get(), bandit, query_.data(), &search_, &options_, candidates.data(), &count,
                             &cut_, similarities.data()),
                FINCH_OK)
          << finch_last_error();

      std::vector<uint64_t> keys(k);
      std::vector<float> semantic(k);
      uint32_t found = 0;
      ASSERT_EQ(finch_search(snapshot_.get(), query_.data(), 1, &search_, keys.data(), semantic.data(), &found),
                FINCH_OK);
      ASSERT_EQ(found, count);
      std::vector<finch_string> ids(found);
      std::vector<float> vectors(found * kDimension), priors(found), p(found), availability(found), fused(found);
      ASSERT_EQ(finch_snapshot_rows(snapshot_.get(), keys.data(), found, ids.data(), vectors.data(), priors.data()),
                FINCH_OK);
      std::vector<finch_arm_score> arms(found);
      if (with_bandit) {
        ASSERT_EQ(
            finch_bandit_score(bandit, ids.data(), priors.data(), found, query_.data(), options_.now, 1, arms.data()),
            FINCH_OK);
      }
      for (size_t i = 0; i < found; ++i) {
        p[i] = with_bandit ? arms[i].mean + arms[i].bonus : priors[i];
        availability[i] = with_bandit ? arms[i].availability : 1.0f;
      }
      ASSERT_EQ(
          finch_fuse(semantic.data(), p.data(), priors.data(), availability.data(), found, &weights_, fused.data()),
          FINCH_OK);
      std::vector<size_t> order(found);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](size_t a, size_t b) { return fused[a] != fused[b] ? fused[a] > fused[b] : keys[a] < keys[b]; });
      std::vector<float> scores, embeddings, separate(found);
      for (size_t i = 0; i < found; ++i) {
        const finch_candidate& c = candidates[i];
        const size_t j = order[i];
        EXPECT_EQ(c.key, keys[j]);
        EXPECT_EQ(std::string(c.id.data, c.id.size), std::string(ids[j].data, ids[j].size));
        EXPECT_EQ(c.semantic, semantic[j]);
        EXPECT_EQ(c.prior, priors[j]);
        EXPECT_EQ(c.score, fused[j]);
        EXPECT_EQ(c.semantic_rank, j);
        if (with_bandit) {
          EXPECT_EQ(std::memcmp(&c.arm, &arms[j], sizeof(finch_arm_score)), 0);
        }
        scores.push_back(fused[j]);
        embeddings.insert(embeddings.end(), vectors.begin() + static_cast<std::ptrdiff_t>(j * kDimension),
                          vectors.begin() + static_cast<std::ptrdiff_t>((j + 1) * kDimension));
      }
      finch_cut cut{};
      cut.size = sizeof(cut);
      ASSERT_EQ(
          finch_truncate(scores.data(), embeddings.data(), found, kDimension, &cut_options_, &cut, separate.data()),
          FINCH_OK);
      EXPECT_EQ(std::memcmp(&cut, &cut_, sizeof(cut)), 0);
      for (size_t i = 0; i + 1 < found; ++i) EXPECT_EQ(similarities[i], separate[i]);

      std::vector<finch_candidate> ranked(found);
      ASSERT_EQ(finch_rank(snapshot_.get(), bandit, keys.data(), semantic.data(), found, query_.data(), &options_,
                           ranked.data(), &cut, nullptr),
                FINCH_OK);
      candidates.resize(found);
      EXPECT_TRUE(same_candidates(ranked, candidates));
      EXPECT_EQ(std::memcmp(&cut, &cut_, sizeof(cut)), 0);
    }
  }
}

TEST_F(Rank, OrderOfCandidatesDoesNotMatter) {
  std::vector<uint64_t> keys(40);
  std::iota(keys.begin(), keys.end(), 1);
  std::vector<float> semantic(40);
  for (size_t i = 0; i < 40; ++i) semantic[i] = static_cast<float>(i % 4) / 4.0f;  // many ties
  std::vector<finch_candidate> first(40), again(40);
  ASSERT_EQ(finch_rank(snapshot_.get(), bandit_.get(), keys.data(), semantic.data(), 40, query_.data(), &options_,
                       first.data(), &cut_, nullptr),
            FINCH_OK)
      << finch_last_error();
  std::vector<size_t> order(40);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(12);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<uint64_t> k;
    std::vector<float> s;
    for (const size_t i : order) {
      k.push_back(keys[i]);
      s.push_back(semantic[i]);
    }
    finch_cut cut = cut_;
    ASSERT_EQ(finch_rank(snapshot_.get(), bandit_.get(), k.data(), s.data(), 40, query_.data(), &options_, again.data(),
                         &cut, nullptr),
              FINCH_OK);
    EXPECT_TRUE(same_candidates(first, again));
    EXPECT_EQ(std::memcmp(&cut, &cut_, sizeof(cut)), 0);
  }
}

TEST_F(Rank, EqualToolsKeepInsertionOrder) {
  const uint64_t keys[] = {31, 8, 1};  // copies of tool 0
  const float semantic[] = {0.5f, 0.5f, 0.5f};
  finch_candidate out[3];
  ASSERT_EQ(finch_rank(snapshot_.get(), nullptr, keys, semantic, 3, nullptr, nullptr, out, &cut_, nullptr), FINCH_OK)
      << finch_last_error();
  EXPECT_EQ(out[0].key, 1u);
  EXPECT_EQ(out[1].key, 8u);
  EXPECT_EQ(out[2].key, 31u);
  EXPECT_TRUE(std::isnan(out[0].arm.last_outcome));
  EXPECT_EQ(cut_.k, 1u);
}

TEST_F(Rank, FailuresRankDownAndRecoveryRanksUp) {
  search_.k = 10;
  finch_candidate candidates[10];
  size_t count = 0;
  const auto best = [&](double now) {
    options_.now = now;
    EXPECT_EQ(finch_select(snapshot_.get(), bandit_.get(), query_.data(), &search_, &options_, candidates, &count,
                           &cut_, nullptr),
              FINCH_OK)
        << finch_last_error();
    return candidates[0].key;
  };
  const double start = 1e6;
  weights_.outage = 1.0f;
  const uint64_t first = best(start);
  const std::string id(candidates[0].id.data, candidates[0].id.size);
  for (int i = 0; i < 3; ++i) report(bandit_, id, query_, 0.5f, 0.0f, start + i);
  EXPECT_NE(best(start + 3), first);
  for (int i = 0; i < 60; ++i) report(bandit_, id, query_, 0.5f, 1.0f, start + 10 + i);
  EXPECT_EQ(best(start + 100), first);
}

TEST_F(Rank, ErrorsLeaveOutputsAlone) {
  const uint64_t keys[] = {1, 2}, unknown[] = {1, 999}, twice[] = {1, 1};
  const float semantic[] = {0.5f, 0.25f}, nan[] = {0.5f, NAN};
  const std::vector<float> zero(kDimension, 0.0f);
  finch_candidate out[2]{};
  out[0].key = out[1].key = 77;
  cut_.k = 77;
  const auto rank = [&](const uint64_t* k, const float* s, const float* x) {
    return finch_rank(snapshot_.get(), bandit_.get(), k, s, 2, x, &options_, out, &cut_, nullptr);
  };
  EXPECT_EQ(rank(unknown, semantic, query_.data()), FINCH_UNKNOWN_ID);
  EXPECT_EQ(rank(twice, semantic, query_.data()), FINCH_DUPLICATE_ID);
  EXPECT_EQ(rank(keys, nan, query_.data()), FINCH_NOT_FINITE);
  EXPECT_EQ(rank(keys, semantic, zero.data()), FINCH_ZERO_VECTOR);
  EXPECT_EQ(rank(keys, semantic, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(rank(nullptr, semantic, query_.data()), FINCH_INVALID_ARGUMENT);
  options_.now = NAN;
  EXPECT_EQ(rank(keys, semantic, query_.data()), FINCH_NOT_FINITE);
  options_.now = 0.0;
  weights_.outage = 2.0f;
  EXPECT_EQ(rank(keys, semantic, query_.data()), FINCH_INVALID_ARGUMENT);
  weights_.outage = 0.0f;
  cut_options_.after = 2;
  EXPECT_EQ(rank(keys, semantic, query_.data()), FINCH_INVALID_ARGUMENT);
  cut_options_.after = 0;
  const Bandit other = make_bandit(bandit_options(kDimension + 1));
  EXPECT_EQ(finch_rank(snapshot_.get(), other.get(), keys, semantic, 2, query_.data(), &options_, out, &cut_, nullptr),
            FINCH_DIMENSION);
  EXPECT_EQ(finch_rank(nullptr, nullptr, keys, semantic, 2, query_.data(), &options_, out, &cut_, nullptr),
            FINCH_INVALID_ARGUMENT);
  size_t count = 55;
  search_.k = 0;
  EXPECT_EQ(finch_select(snapshot_.get(), nullptr, query_.data(), &search_, &options_, out, &count, &cut_, nullptr),
            FINCH_INVALID_ARGUMENT);
  search_.k = 2;
  EXPECT_EQ(finch_select(snapshot_.get(), nullptr, zero.data(), &search_, &options_, out, &count, &cut_, nullptr),
            FINCH_ZERO_VECTOR);
  EXPECT_EQ(count, 55u);
  EXPECT_EQ(out[0].key, 77u);
  EXPECT_EQ(out[1].key, 77u);
  EXPECT_EQ(cut_.k, 77u);
}

TEST_F(Rank, UnhealthyCandidatesGoBehindAndTheCutDoesNotSeeThem) {
  std::vector<uint64_t> keys(30);
  std::iota(keys.begin(), keys.end(), 1);
  std::vector<float> semantic(30, 0.5f), similarities(30, 5.0f);
  for (const size_t tool : {2, 3, 5}) {
    for (int i = 0; i < 4; ++i) report(bandit_, names_[tool], query_, 0.5f, 0.0f, options_.now);
  }
  semantic[2] = semantic[3] = 1.0f;  // the best but for their health
  options_.min_availability = 0.2f;
  std::vector<finch_candidate> out(30);
  const auto rank = [&](size_t count) {
    return finch_rank(snapshot_.get(), bandit_.get(), keys.data(), semantic.data(), count, query_.data(), &options_,
                      out.data(), &cut_, similarities.data());
  };
  ASSERT_EQ(rank(30), FINCH_OK) << finch_last_error();
  ASSERT_GE(cut_.n, 20u);
  ASSERT_LE(cut_.n, 27u);
  EXPECT_LE(cut_.k, cut_.n);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(out[i].arm.availability >= 0.2f, i < cut_.n) << i;
    if (i > 0 && i != cut_.n) {
      EXPECT_GE(out[i - 1].score, out[i].score) << i;
    }
  }
  EXPECT_LE(similarities[cut_.n - 2], 1.0f);
  EXPECT_EQ(similarities[cut_.n - 1], 5.0f);  // only those of the healthy part are written

  // None healthy: the rule is off. Without the rule, all are looked at.
  std::swap(keys[0], keys[2]);
  ASSERT_EQ(rank(1), FINCH_OK);
  EXPECT_EQ(cut_.n, 1u);
  EXPECT_EQ(cut_.k, 1u);
  options_.min_availability = 0.0f;
  ASSERT_EQ(rank(30), FINCH_OK);
  EXPECT_EQ(cut_.n, 30u);
  for (const float bad : {-0.1f, 1.1f, NAN}) {
    options_.min_availability = bad;
    EXPECT_EQ(rank(30), FINCH_INVALID_ARGUMENT);
  }
}

TEST_F(Rank, NothingToRank) {
  ASSERT_EQ(finch_rank(snapshot_.get(), bandit_.get(), nullptr, nullptr, 0, query_.data(), &options_, nullptr, &cut_,
                       nullptr),
            FINCH_OK)
      << finch_last_error();
  EXPECT_EQ(cut_.k, 0u);
}

}  // namespace
}  // namespace finch::test
