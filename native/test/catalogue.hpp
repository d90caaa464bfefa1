// What the core's tests share: indexes of random rows, called through the C ABI, and a brute-force reference in
// float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "toolfinch.h"

namespace finch_test {

inline finch_string text(const std::string& s) { return {s.data(), s.size()}; }

inline std::vector<finch_string> texts(const std::vector<std::string>& strings) {
  std::vector<finch_string> out;
  for (const std::string& s : strings) out.push_back(text(s));
  return out;
}

std::vector<finch_string> texts(std::vector<std::string>&&) = delete;  // they would point to what is gone

using Random = std::mt19937;

inline std::vector<float> gaussian(Random& random, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

class Index {
 public:
  explicit Index(uint32_t dimension, finch_storage storage = FINCH_STORAGE_F32) {
    finch_index_options options{sizeof(options), dimension, storage};
    EXPECT_EQ(finch_index_create(&options, &handle_), FINCH_OK) << finch_last_error();
  }
  explicit Index(finch_index* adopted) : handle_(adopted) {}
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;
  ~Index() { finch_index_release(handle_); }

  finch_index* get() const { return handle_; }
  void adopt(finch_index* other) {
    finch_index_release(handle_);
    handle_ = other;
  }

  finch_status upsert(const std::vector<std::string>& ids, const std::vector<float>& vectors,
                      const float* priors = nullptr, uint64_t* keys = nullptr) {
    const auto list = texts(ids);
    return finch_index_upsert(handle_, list.data(), vectors.data(), list.size(), priors, keys);
  }
  finch_status remove(const std::vector<std::string>& ids) {
    const auto list = texts(ids);
    return finch_index_remove(handle_, list.data(), list.size());
  }
  finch_index_info info() const {
    finch_index_info out{};
    out.size = sizeof(out);
    EXPECT_EQ(finch_index_inspect(handle_, &out), FINCH_OK);
    return out;
  }

 private:
  finch_index* handle_ = nullptr;
};

struct Hit {
  uint64_t key;
  float score;
  bool operator==(const Hit&) const = default;
};

class Snapshot {
 public:
  explicit Snapshot(const Index& index) { EXPECT_EQ(finch_index_snapshot(index.get(), &handle_), FINCH_OK); }
  explicit Snapshot(const finch_index* index) { EXPECT_EQ(finch_index_snapshot(index, &handle_), FINCH_OK); }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() { finch_snapshot_release(handle_); }

  finch_snapshot* get() const { return handle_; }

  std::vector<std::vector<Hit>> search(const std::vector<float>& queries, size_t count, uint32_t k,
                                       finch_search_mode mode = FINCH_SEARCH_EXACT, const finch_allow* allow = nullptr,
                                       finch_status expected = FINCH_OK) const {
    finch_search_options options{};
    options.size = sizeof(options);
    options.k = k;
    options.mode = mode;
    options.allow = allow;
    std::vector<uint64_t> keys(count * k);
    std::vector<float> scores(count * k);
    std::vector<uint32_t> counts(count);
    const finch_status status =
        finch_search(handle_, queries.data(), count, &options, keys.data(), scores.data(), counts.data());
    EXPECT_EQ(status, expected) << finch_last_error();
    std::vector<std::vector<Hit>> out(count);
    for (size_t q = 0; q < count && status == FINCH_OK; ++q) {
      for (size_t i = 0; i < counts[q]; ++i) out[q].push_back({keys[q * k + i], scores[q * k + i]});
    }
    return out;
  }

  std::vector<uint64_t> keys() const {
    size_t count = 0;
    EXPECT_EQ(finch_snapshot_keys(handle_, nullptr, 0, &count), FINCH_OK);
    std::vector<uint64_t> out(count);
    EXPECT_EQ(finch_snapshot_keys(handle_, out.data(), out.size(), &count), FINCH_OK);
    return out;
  }

  uint64_t find(const std::string& id) const {
    uint64_t key = 0;
    const finch_string s = text(id);
    EXPECT_EQ(finch_snapshot_find(handle_, &s, 1, &key), FINCH_OK);
    return key;
  }

 private:
  finch_snapshot* handle_ = nullptr;
};

// What an index should be, in the plainest form: float64, linear search, no reuse of anything.
class Model {
 public:
  struct Row {
    uint64_t key;
    std::vector<double> unit;
    float prior;
  };

  void upsert(const std::string& id, const float* vector, size_t d, float prior) {
    double norm = 0;
    for (size_t i = 0; i < d; ++i) norm += double{vector[i]} * vector[i];
    norm = std::sqrt(norm);
    auto [at, added] = rows.try_emplace(id);
    if (added) at->second.key = next_key++;
    at->second.unit.assign(vector, vector + d);
    for (double& x : at->second.unit) x /= norm;
    at->second.prior = prior;
  }

  // All rows, best first: what exact search must agree with up to rounding.
  std::vector<std::pair<double, uint64_t>> ranking(const float* query, size_t d) const {
    double norm = 0;
    for (size_t i = 0; i < d; ++i) norm += double{query[i]} * query[i];
    norm = std::sqrt(norm);
    std::vector<std::pair<double, uint64_t>> out;
    for (const auto& [id, row] : rows) {
      double dot = 0;
      for (size_t i = 0; i < d; ++i) dot += row.unit[i] * (query[i] / norm);
      out.emplace_back(dot, row.key);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    return out;
  }

  std::map<std::string, Row> rows;
  uint64_t next_key = 1;
};

// Rounding of a float32 dot product of unit vectors, with room: (d + 2) ulp bounds any order of summation.
inline double tolerance(size_t d) { return (static_cast<double>(d) + 8) * 6e-8; }

// `hits` is a top k of `ranking` in which only rows within rounding of each other may have changed places.
inline void expect_ranking(const std::vector<Hit>& hits, const std::vector<std::pair<double, uint64_t>>& ranking,
                           size_t k, size_t d) {
  ASSERT_EQ(hits.size(), std::min(k, ranking.size()));
  std::map<uint64_t, double> truth;
  for (const auto& [score, key] : ranking) truth[key] = score;
  const double rounding = tolerance(d);
  for (size_t i = 0; i < hits.size(); ++i) {
    ASSERT_TRUE(truth.count(hits[i].key)) << "a key that is not there";
    EXPECT_NEAR(hits[i].score, truth[hits[i].key], rounding);
    EXPECT_NEAR(hits[i].score, ranking[i].first, 2 * rounding);
    truth.erase(hits[i].key);  // each once
    if (i == 0) continue;
    const bool in_order =
        hits[i - 1].score > hits[i].score || (hits[i - 1].score == hits[i].score && hits[i - 1].key < hits[i].key);
    EXPECT_TRUE(in_order) << "at " << i;
  }
}

}  // namespace finch_test
