// The hot path in one call: reliability and prior, fusion, order, cut (finch_rank), and search before it
// (finch_select). Each stage is the function behind the separate call, so the results are the same bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bandit.hpp"
#include "error.hpp"
#include "fuse.hpp"
#include "sized.hpp"
#include "snapshot.hpp"
#include "truncate.hpp"

namespace finch {
namespace {

struct RankRule {
  double now = 0.0;
  int32_t explore = 0;
  finch_weights weights{};
  finch_cut_options cut{};
  float min_availability = 0.0f;
};

finch_status read_rank_options(const finch_rank_options* given, RankRule* out) noexcept {
  finch_rank_options options{};
  if (given != nullptr && !read_sized(given, sizeof(finch_rank_options), &options)) {
    return fail(FINCH_INVALID_ARGUMENT, "finch_rank_options.size = %zu; expected sizeof(finch_rank_options) = %zu.",
                given->size, sizeof(finch_rank_options));
  }
  out->now = options.now;
  out->explore = options.explore;
  out->min_availability = options.min_availability;
  if (!(out->min_availability >= 0.0f && out->min_availability <= 1.0f)) {
    return fail(FINCH_INVALID_ARGUMENT, "min_availability = %g; expected 0 to 1.",
                static_cast<double>(out->min_availability));
  }
  const finch_status status = read_weights(options.weights, &out->weights);
  return status == FINCH_OK ? read_cut_options(options.cut, &out->cut) : status;
}

struct Entry {
  finch_candidate candidate{};
  const float* vector = nullptr;
};

bool before(float a_score, uint64_t a_key, float b_score, uint64_t b_key) noexcept {
  return a_score != b_score ? a_score > b_score : a_key < b_key;
}

finch_status find_entries(const finch_snapshot& snapshot, const uint64_t* keys, const float* semantic,
                          std::vector<Entry>* entries) {
  for (size_t i = 0; i < entries->size(); ++i) {
    Row row;
    if (!find_row(snapshot, keys[i], &row)) {
      return fail(FINCH_UNKNOWN_ID, "key %llu (candidate %zu) is not in the snapshot; expected keys read from it.",
                  static_cast<unsigned long long>(keys[i]), i);
    }
    if (!std::isfinite(semantic[i])) {
      return fail(FINCH_NOT_FINITE, "semantic[%zu] is %g; expected a finite number.", i,
                  static_cast<double>(semantic[i]));
    }
    Entry& entry = (*entries)[i];
    entry.vector = row.vector;
    entry.candidate.key = row.key;
    entry.candidate.id = {row.id.data(), row.id.size()};
    entry.candidate.semantic = semantic[i];
    entry.candidate.prior = row.prior;
  }
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return before(a.candidate.semantic, a.candidate.key, b.candidate.semantic, b.candidate.key);
  });
  for (size_t i = 0; i < entries->size(); ++i) {
    (*entries)[i].candidate.semantic_rank = static_cast<uint32_t>(i);
  }
  return FINCH_OK;
}

finch_status check_distinct(const uint64_t* keys, size_t count) {
  std::vector<uint64_t> sorted(keys, keys + count);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return FINCH_OK;
  return fail(FINCH_DUPLICATE_ID, "key %llu is among the candidates twice; expected distinct keys.",
              static_cast<unsigned long long>(*twice));
}

finch_status score_entries(const finch_bandit* bandit, const float* x, uint32_t dimension, const RankRule& rule,
                           std::vector<Entry>* entries) {
  const size_t count = entries->size();
  if (bandit == nullptr) {
    for (Entry& entry : *entries) {
      entry.candidate.arm.mean = entry.candidate.prior;
      entry.candidate.arm.availability = 1.0f;
      entry.candidate.arm.last_outcome = std::numeric_limits<float>::quiet_NaN();
    }
    return FINCH_OK;
  }
  if (bandit->rule.dimension != dimension) {
    return fail(FINCH_DIMENSION, "the bandit has dimension %u and the index %u; expected the same.",
                bandit->rule.dimension, dimension);
  }
  std::vector<finch_string> ids(count);
  std::vector<float> priors(count);
  std::vector<finch_arm_score> arms(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = (*entries)[i].candidate.id;
    priors[i] = (*entries)[i].candidate.prior;
  }
  const finch_status status =
      finch_bandit_score(bandit, ids.data(), priors.data(), count, x, rule.now, rule.explore, arms.data());
  if (status != FINCH_OK) return status;
  for (size_t i = 0; i < count; ++i) (*entries)[i].candidate.arm = arms[i];
  return FINCH_OK;
}

// Fuses, and orders the healthy part, then the rest. Returns how many are healthy; all when none is.
size_t fuse_and_sort(const RankRule& rule, std::vector<Entry>* entries) {
  for (Entry& entry : *entries) {
    finch_candidate& c = entry.candidate;
    c.score = fuse_one(c.semantic, c.arm.mean + c.arm.bonus, c.prior, c.arm.availability, rule.weights);
  }
  const auto best_first = [](const Entry& a, const Entry& b) {
    return before(a.candidate.score, a.candidate.key, b.candidate.score, b.candidate.key);
  };
  auto rest = std::partition(entries->begin(), entries->end(), [&](const Entry& entry) {
    return entry.candidate.arm.availability >= rule.min_availability;
  });
  if (rest == entries->begin()) rest = entries->end();
  std::sort(entries->begin(), rest, best_first);
  std::sort(rest, entries->end(), best_first);
  return static_cast<size_t>(rest - entries->begin());
}

finch_status cut_entries(const finch_snapshot& snapshot, const RankRule& rule, const std::vector<Entry>& entries,
                         size_t healthy, finch_cut* cut, std::vector<float>* similarities) {
  std::vector<float> scores(healthy);
  std::vector<const float*> rows(healthy);
  for (size_t i = 0; i < healthy; ++i) {
    scores[i] = entries[i].candidate.score;
    rows[i] = entries[i].vector;
  }
  const EmbeddingRows embeddings{nullptr, rows.data(), snapshot_dimension(snapshot)};
  return truncate(scores.data(), embeddings, healthy, rule.cut, -1, cut,
                  similarities->empty() ? nullptr : similarities->data());
}

}  // namespace
}  // namespace finch

extern "C" {

finch_status finch_rank(const finch_snapshot* snapshot, const finch_bandit* bandit, const uint64_t* keys,
                        const float* semantic, size_t count, const float* x, const finch_rank_options* options,
                        finch_candidate* candidates, finch_cut* cut, float* similarities) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "snapshot is NULL; expected a handle.");
    if (count > 0 && (keys == nullptr || semantic == nullptr || candidates == nullptr)) {
      return finch::fail(FINCH_INVALID_ARGUMENT,
                         "keys, semantic and candidates must not be NULL; expected %zu of each.", count);
    }
    if (cut == nullptr || cut->size < sizeof(finch_cut)) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "cut must be a finch_cut whose size is sizeof(finch_cut) = %zu.",
                         sizeof(finch_cut));
    }
    finch::RankRule rule;
    finch_status status = finch::read_rank_options(options, &rule);
    if (status == FINCH_OK) status = finch::check_distinct(keys, count);
    if (status != FINCH_OK) return status;
    std::vector<finch::Entry> entries(count);
    status = finch::find_entries(*snapshot, keys, semantic, &entries);
    if (status == FINCH_OK)
      status = finch::score_entries(bandit, x, finch::snapshot_dimension(*snapshot), rule, &entries);
    if (status != FINCH_OK) return status;
    const size_t healthy = finch::fuse_and_sort(rule, &entries);
    std::vector<float> computed(similarities != nullptr && healthy > 1 ? healthy - 1 : 0);
    status = finch::cut_entries(*snapshot, rule, entries, healthy, cut, &computed);
    if (status != FINCH_OK) return status;
    for (size_t i = 0; i < count; ++i) candidates[i] = entries[i].candidate;
    std::copy(computed.begin(), computed.end(), similarities);
    return FINCH_OK;
  });
}

finch_status finch_select(const finch_snapshot* snapshot, const finch_bandit* bandit, const float* query,
                          const finch_search_options* search, const finch_rank_options* rank,
                          finch_candidate* candidates, size_t* count, finch_cut* cut, float* similarities) {
  return finch::guarded([&]() -> finch_status {
    if (count == nullptr)
      return finch::fail(FINCH_INVALID_ARGUMENT, "count is NULL; pass where to put the number found.");
    if (search == nullptr || search->size < sizeof(finch_search_options)) {
      return finch::fail(FINCH_INVALID_ARGUMENT,
                         "search must be a finch_search_options whose size is sizeof(finch_search_options) = %zu.",
                         sizeof(finch_search_options));
    }
    if (search->k == 0 || search->k > FINCH_MAX_K) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "k = %u; expected 1 to %u.", search->k, FINCH_MAX_K);
    }
    std::vector<uint64_t> keys(search->k);
    std::vector<float> scores(search->k);
    uint32_t found = 0;
    finch_status status = finch_search(snapshot, query, 1, search, keys.data(), scores.data(), &found);
    if (status != FINCH_OK) return status;
    status =
        finch_rank(snapshot, bandit, keys.data(), scores.data(), found, query, rank, candidates, cut, similarities);
    if (status == FINCH_OK) *count = found;
    return status;
  });
}

}  // extern "C"
