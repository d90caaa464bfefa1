#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "golden.hpp"
#include "toolfinch.h"

namespace finch::test {
namespace {

finch_cut_options options_of(const Json& json) {
  finch_cut_options o{};
  o.size = sizeof(o);
  o.min_k = json.value("min_k", 0u);
  o.max_k = json.value("max_k", 0u);
  o.signals = json.value("signals", 0u);
  o.after = json.value("after", 0u);
  return o;
}

finch_cut empty_cut() {
  finch_cut cut{};
  cut.size = sizeof(cut);
  return cut;
}

struct List {
  std::vector<float> scores, embeddings;
  uint32_t dimension;

  size_t size() const { return scores.size(); }
};

List random_list(std::mt19937* random, size_t n, uint32_t d) {
  std::normal_distribution<float> normal;
  List list{{}, {}, d};
  for (size_t i = 0; i < n; ++i) list.scores.push_back(normal(*random));
  std::sort(list.scores.begin(), list.scores.end(), std::greater<>());
  for (size_t i = 0; i < n * d; ++i) list.embeddings.push_back(normal(*random));
  return list;
}

finch_cut cut_of(const List& list, const finch_cut_options* options = nullptr) {
  finch_cut cut = empty_cut();
  EXPECT_EQ(
      finch_truncate(list.scores.data(), list.embeddings.data(), list.size(), list.dimension, options, &cut, nullptr),
      FINCH_OK)
      << finch_last_error();
  return cut;
}

void expect_cut(const finch_cut& cut, const Json& expected, double tolerance, const std::string& name) {
  EXPECT_EQ(cut.k, expected.at("k").get<uint32_t>()) << name;
  EXPECT_EQ(cut.k_score, expected.at("k_score").get<uint32_t>()) << name;
  EXPECT_EQ(cut.k_similarity, expected.at("k_similarity").get<uint32_t>()) << name;
  EXPECT_EQ(cut.signal, expected.at("signal").get<uint32_t>()) << name;
  expect_close(cut.gap_score, expected.at("gap_score").get<double>(), tolerance, name + ": gap_score");
  expect_close(cut.gap_similarity, expected.at("gap_similarity").get<double>(), tolerance, name + ": gap_similarity");
}

TEST(Truncate, Golden) {
  const Json golden = read_golden("truncate.json");
  const double tolerance = golden.at("tolerance");
  for (const Json& c : golden.at("cases")) {
    const std::string name = c.at("name");
    const std::vector<float> scores = floats(c.at("scores")), embeddings = floats(c.at("embeddings"));
    const finch_cut_options options = options_of(c.at("options"));
    finch_cut cut = empty_cut();
    std::vector<float> similarities(scores.size());
    ASSERT_EQ(finch_truncate(scores.data(), embeddings.data(), scores.size(), c.at("dimension"), &options, &cut,
                             similarities.data()),
              FINCH_OK)
        << name << ": " << finch_last_error();
    expect_cut(cut, c.at("expected"), tolerance, name);
    EXPECT_EQ(cut.n, scores.size()) << name;
    for (size_t i = 0; i + 1 < scores.size(); ++i) {
      expect_close(similarities[i], c.at("similarities").at(i).get<double>(), tolerance, name + ": similarity");
    }
  }
}

TEST(Truncate, GoldenBatch) {
  const Json golden = read_golden("truncate.json");
  const Json& batch = golden.at("batch");
  std::vector<float> scores, embeddings;
  std::vector<uint64_t> offsets = {0};
  for (const Json& list : batch.at("lists")) {
    for (const float s : floats(list.at("scores"))) scores.push_back(s);
    for (const float e : floats(list.at("embeddings"))) embeddings.push_back(e);
    offsets.push_back(scores.size());
  }
  const size_t lists = offsets.size() - 1;
  std::vector<finch_cut> cuts(lists, empty_cut());
  ASSERT_EQ(finch_truncate_batch(scores.data(), embeddings.data(), offsets.data(), lists, batch.at("dimension"),
                                 nullptr, cuts.data()),
            FINCH_OK)
      << finch_last_error();
  for (size_t j = 0; j < lists; ++j) {
    expect_cut(cuts[j], batch.at("lists").at(j).at("expected"), golden.at("tolerance"), "list " + std::to_string(j));
  }
}

TEST(Truncate, GoldenErrorsLeaveOutputsAlone) {
  const Json golden = read_golden("truncate.json");
  for (const Json& c : golden.at("errors")) {
    const std::string name = c.at("name");
    const std::vector<float> scores = floats(c.at("scores")), embeddings = floats(c.at("embeddings"));
    const finch_cut_options options = options_of(c.value("options", Json::object()));
    finch_cut cut = empty_cut();
    cut.k = 77;
    std::vector<float> similarities(scores.size(), 5.0f);
    const finch_status status = finch_truncate(scores.data(), embeddings.data(), scores.size(), c.at("dimension"),
                                               &options, &cut, similarities.data());
    EXPECT_EQ(finch_status_name(status), c.at("code").get<std::string>()) << name;
    EXPECT_STRNE(finch_last_error(), "");
    EXPECT_EQ(cut.k, 77u) << name;
    for (const float s : similarities) EXPECT_EQ(s, 5.0f) << name;
  }
}

TEST(Truncate, ArgumentErrors) {
  std::mt19937 random(4);
  const List list = random_list(&random, 4, 3);
  const float* s = list.scores.data();
  const float* e = list.embeddings.data();
  finch_cut cut = empty_cut();
  finch_cut unset{};
  finch_cut_options options{};  // size not set
  EXPECT_EQ(finch_truncate(s, e, 4, 3, &options, &cut, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate(s, e, 4, 3, nullptr, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate(s, e, 4, 3, nullptr, &unset, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate(nullptr, e, 4, 3, nullptr, &cut, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate(s, nullptr, 4, 3, nullptr, &cut, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate(s, e, 4, 0, nullptr, &cut, nullptr), FINCH_DIMENSION);
  EXPECT_EQ(finch_truncate(s, e, 4, FINCH_MAX_DIMENSION + 1, nullptr, &cut, nullptr), FINCH_DIMENSION);
  const uint64_t down[] = {0, 3, 2}, late[] = {1, 3};
  finch_cut two[2] = {empty_cut(), empty_cut()};
  EXPECT_EQ(finch_truncate_batch(s, e, down, 2, 3, nullptr, two), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate_batch(s, e, late, 1, 3, nullptr, two), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate_batch(s, e, nullptr, 1, 3, nullptr, two), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate_batch(s, e, down, 2, 3, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_truncate_batch(nullptr, nullptr, nullptr, 0, 3, nullptr, nullptr), FINCH_OK);
  EXPECT_EQ(finch_truncate(nullptr, nullptr, 0, 0, nullptr, &cut, nullptr), FINCH_OK);
  EXPECT_EQ(cut.k, 0u);
}

TEST(Truncate, BatchFailsWholeAndNamesTheList) {
  const float scores[] = {2, 1, 1, 2};
  const float embeddings[] = {1, 1, 1, 1};
  const uint64_t offsets[] = {0, 2, 4};
  finch_cut cuts[2] = {empty_cut(), empty_cut()};
  cuts[0].k = cuts[1].k = 9;
  EXPECT_EQ(finch_truncate_batch(scores, embeddings, offsets, 2, 1, nullptr, cuts), FINCH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(finch_last_error()).find("list 1"), std::string::npos) << finch_last_error();
  EXPECT_EQ(cuts[0].k, 9u);
  EXPECT_EQ(cuts[1].k, 9u);
}

TEST(Truncate, ScoresAloneNeedNoEmbeddings) {
  const float scores[] = {0.9f, 0.8f, 0.1f};
  finch_cut_options options{};
  options.size = sizeof(options);
  options.signals = FINCH_CUT_SCORE;
  finch_cut cut = empty_cut();
  ASSERT_EQ(finch_truncate(scores, nullptr, 3, 0, &options, &cut, nullptr), FINCH_OK);
  EXPECT_EQ(cut.k, 2u);
  EXPECT_EQ(cut.k_similarity, 0u);
  float similarities[2];  // asked for: then embeddings are needed after all
  EXPECT_EQ(finch_truncate(scores, nullptr, 3, 0, &options, &cut, similarities), FINCH_INVALID_ARGUMENT);
}

TEST(Truncate, AGapWiderThanFloat32StaysFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::vector<float> scores{kLargest, kLargest / 2, -kLargest};
  finch_cut cut = empty_cut();
  finch_cut_options options{};
  options.size = sizeof(options);
  options.signals = FINCH_CUT_SCORE;
  ASSERT_EQ(finch_truncate(scores.data(), nullptr, scores.size(), 1, &options, &cut, nullptr), FINCH_OK);
  EXPECT_EQ(cut.k_score, 2u);
  EXPECT_EQ(cut.gap_score, kLargest);
}

TEST(Truncate, OlderAndNewerCallersKeepTheirStructs) {
  struct NewerOptions {
    finch_cut_options known;
    uint64_t unknown;
  } options{};
  options.known.size = sizeof(options);
  options.known.max_k = 1;
  struct NewerCut {
    finch_cut known;
    uint64_t unknown;
  } cuts[2]{};
  for (NewerCut& c : cuts) {
    c.known.size = sizeof(c);
    c.unknown = 42;
  }
  const float scores[] = {3, 2, 3, 2};
  const float embeddings[] = {1, 1, 1, 1};
  const uint64_t offsets[] = {0, 2, 4};
  ASSERT_EQ(finch_truncate_batch(scores, embeddings, offsets, 2, 1, &options.known, &cuts[0].known), FINCH_OK);
  for (const NewerCut& c : cuts) {
    EXPECT_EQ(c.known.k, 1u);
    EXPECT_EQ(c.known.size, sizeof(NewerCut));
    EXPECT_EQ(c.unknown, 42u);
  }
}

// The rule in float64, from the text of the paper.
uint32_t reference_k(const List& list, bool* close) {
  const size_t n = list.size();
  std::vector<double> similarities;
  for (size_t i = 0; i + 1 < n; ++i) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t j = 0; j < list.dimension; ++j) {
      const double a = list.embeddings[i * list.dimension + j], b = list.embeddings[(i + 1) * list.dimension + j];
      ab += a * b;
      aa += a * a;
      bb += b * b;
    }
    similarities.push_back(ab / std::sqrt(aa * bb));
  }
  *close = false;
  const auto argmax = [&](const auto& v) {
    size_t best = 0;
    double most = -1e300, second = -1e300;
    for (size_t i = 0; i + 1 < v.size(); ++i) {
      const double gap = static_cast<double>(v[i]) - static_cast<double>(v[i + 1]);
      if (gap > most) {
        second = most;
        most = gap;
        best = i + 1;
      } else {
        second = std::max(second, gap);
      }
    }
    if (v.size() > 2 && most - second < 1e-5) *close = true;
    return best;
  };
  const size_t k = std::max(argmax(list.scores), argmax(similarities));
  return static_cast<uint32_t>(n < 2 ? n : k);
}

TEST(Truncate, AgreesWithTheReferenceForEveryDimension) {
  std::mt19937 random(5);
  size_t compared = 0;
  for (uint32_t d = 1; d <= 131; ++d) {
    const uint32_t dimension = d == 131 ? 1537 : d;
    for (const size_t n : {0, 1, 2, 3, 5, 20}) {
      const List list = random_list(&random, n, dimension);
      bool close = false;
      const uint32_t expected = reference_k(list, &close);
      const finch_cut cut = cut_of(list);
      EXPECT_LE(cut.k, n);
      if (n > 0) {
        EXPECT_GE(cut.k, 1u);
      }
      if (close) continue;
      ++compared;
      EXPECT_EQ(cut.k, expected) << "n=" << n << " d=" << dimension;
    }
  }
  EXPECT_GT(compared, 600u);
}

TEST(Truncate, ScalingEmbeddingsByPowersOfTwoChangesNothing) {
  std::mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    const List list = random_list(&random, 12, 9);
    const finch_cut cut = cut_of(list);
    List scaled = list;
    std::uniform_int_distribution<int> exponent(-40, 40);
    for (size_t i = 0; i < scaled.size(); ++i) {
      const int by = exponent(random);
      for (size_t j = 0; j < 9; ++j) scaled.embeddings[i * 9 + j] = std::ldexp(list.embeddings[i * 9 + j], by);
    }
    const finch_cut again = cut_of(scaled);
    EXPECT_EQ(std::memcmp(&cut, &again, sizeof(cut)), 0);
  }
}

TEST(Truncate, PermutingComponentsKeepsTheCut) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const List list = random_list(&random, 10, 21);
    bool close = false;
    reference_k(list, &close);
    if (close) continue;
    std::vector<size_t> order(21);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    List permuted = list;
    for (size_t i = 0; i < list.embeddings.size(); ++i) {
      permuted.embeddings[i / 21 * 21 + order[i % 21]] = list.embeddings[i];
    }
    EXPECT_EQ(cut_of(list).k, cut_of(permuted).k);
  }
}

TEST(Truncate, DuplicateRowsHaveSimilarityOne) {
  std::mt19937 random(8);
  for (uint32_t d = 1; d <= 130; ++d) {
    List list = random_list(&random, 1, d);
    const std::vector<float> row = list.embeddings;
    list.scores = {1, 1, 1};
    list.embeddings.insert(list.embeddings.end(), row.begin(), row.end());
    list.embeddings.insert(list.embeddings.end(), row.begin(), row.end());
    float similarities[2];
    finch_cut cut = empty_cut();
    ASSERT_EQ(finch_truncate(list.scores.data(), list.embeddings.data(), 3, d, nullptr, &cut, similarities), FINCH_OK);
    EXPECT_EQ(similarities[0], 1.0f);
    EXPECT_EQ(similarities[1], 1.0f);
    EXPECT_EQ(cut.k, 1u);
  }
}

TEST(Truncate, UnalignedEmbeddings) {
  std::mt19937 random(9);
  const List list = random_list(&random, 8, 13);
  std::vector<char> odd(list.embeddings.size() * sizeof(float) + 1);
  std::memcpy(odd.data() + 1, list.embeddings.data(), odd.size() - 1);
  finch_cut cut = empty_cut();
  ASSERT_EQ(
      finch_truncate(list.scores.data(), reinterpret_cast<const float*>(odd.data() + 1), 8, 13, nullptr, &cut, nullptr),
      FINCH_OK);
  const finch_cut expected = cut_of(list);
  EXPECT_EQ(std::memcmp(&cut, &expected, sizeof(cut)), 0);
}

TEST(Truncate, BoundsHold) {
  std::mt19937 random(10);
  std::uniform_int_distribution<uint32_t> bound(0, 14);
  for (int round = 0; round < 300; ++round) {
    const List list = random_list(&random, 1 + round % 12, 5);
    finch_cut_options options{};
    options.size = sizeof(options);
    options.min_k = bound(random);
    options.max_k = options.min_k + bound(random);
    options.after = bound(random) % 2;
    options.signals = bound(random) % 4;
    const finch_cut cut = cut_of(list, &options);
    EXPECT_GE(cut.k, 1u);
    EXPECT_LE(cut.k, list.size());
    EXPECT_GE(cut.k, std::min<size_t>(options.min_k, list.size()));
    if (options.max_k != 0) {
      EXPECT_LE(cut.k, options.max_k);
    }
  }
}

}  // namespace
}  // namespace finch::test
