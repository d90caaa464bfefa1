// The hot path in one call: reliability and prior, fusion, order, cut (finch_rank), and search before it
// (finch_select). Each stage is the function behind the separate call, so the results are the same bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bandit.hpp"
#include "error.hpp"
#include "fuse.hpp"
#include "sized.hpp"
#include "small_buffer.hpp"
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

// Candidates a call may have without allocating.
constexpr size_t kOrdinary = 64;

bool before(float a_score, uint64_t a_key, float b_score, uint64_t b_key) noexcept {
  return a_score != b_score ? a_score > b_score : a_key < b_key;
}

// A place in an order of candidates: what is sorted is small, the candidates stay where they are.
struct Place {
  float score;
  uint32_t at;
  uint64_t key;
};

void sort_places(Place* begin, Place* end) noexcept {
  const auto best_first = [](const Place& a, const Place& b) { return before(a.score, a.key, b.score, b.key); };
  if (!std::is_sorted(begin, end, best_first)) std::sort(begin, end, best_first);
}

// The candidates of one call, in the caller's order, and their order by fused score.
struct Candidates {
  explicit Candidates(size_t count) : rows(count), all(count), places(count) {}
  size_t size() const noexcept { return rows.size(); }

  SmallBuffer<Row, kOrdinary> rows;
  SmallBuffer<finch_candidate, kOrdinary> all;
  SmallBuffer<Place, kOrdinary> places;
};

finch_status find_candidates(const finch_snapshot& snapshot, const uint64_t* keys, const float* semantic,
                             Candidates* candidates) noexcept {
  const size_t count = candidates->size();
  for (size_t i = 0; i < count; ++i) {
    Row& row = candidates->rows[i];
    if (!find_row(snapshot, keys[i], &row)) {
      return fail(FINCH_UNKNOWN_ID, "key %llu (candidate %zu) is not in the snapshot; expected keys read from it.",
                  static_cast<unsigned long long>(keys[i]), i);
    }
    if (!std::isfinite(semantic[i])) {
      return fail(FINCH_NOT_FINITE, "semantic[%zu] is %g; expected a finite number.", i,
                  static_cast<double>(semantic[i]));
    }
    finch_candidate& candidate = candidates->all[i];
    candidate = finch_candidate{};
    candidate.key = row.key;
    candidate.id = {row.id.data(), row.id.size()};
    candidate.semantic = semantic[i];
    candidate.prior = row.prior;
    candidates->places[i] = {semantic[i], static_cast<uint32_t>(i), row.key};
  }
  Place* places = candidates->places.data();
  sort_places(places, places + count);
  for (size_t i = 0; i < count; ++i) candidates->all[places[i].at].semantic_rank = static_cast<uint32_t>(i);
  return FINCH_OK;
}

finch_status check_distinct(const uint64_t* keys, size_t count) {
  SmallBuffer<uint64_t, kOrdinary> sorted(count);
  std::copy_n(keys, count, sorted.data());
  std::sort(sorted.begin(), sorted.end());
  const uint64_t* twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return FINCH_OK;
  return fail(FINCH_DUPLICATE_ID, "key %llu is among the candidates twice; expected distinct keys.",
              static_cast<unsigned long long>(*twice));
}

finch_status score_candidates(const finch_bandit* bandit, const float* x, uint32_t dimension, const RankRule& rule,
                              Candidates* candidates) {
  const size_t count = candidates->size();
  if (bandit == nullptr) {
    for (finch_candidate& candidate : candidates->all) {
      candidate.arm.mean = candidate.prior;
      candidate.arm.availability = 1.0f;
      candidate.arm.last_outcome = std::numeric_limits<float>::quiet_NaN();
      candidate.arm.contrast = std::numeric_limits<float>::quiet_NaN();
    }
    return FINCH_OK;
  }
  if (bandit->rule.dimension != dimension) {
    return fail(FINCH_DIMENSION, "the bandit has dimension %u and the index %u; expected the same.",
                bandit->rule.dimension, dimension);
  }
  SmallBuffer<ScoredId, kOrdinary> ids(count);
  SmallBuffer<finch_arm_score, kOrdinary> arms(count);
  for (size_t i = 0; i < count; ++i) {
    const Row& row = candidates->rows[i];
    ids[i] = {row.id, row.id_hash, row.prior};
  }
  const finch_status status = score_ids(*bandit, ids.data(), count, x, rule.now, rule.explore != 0, arms.data());
  if (status != FINCH_OK) return status;
  for (size_t i = 0; i < count; ++i) candidates->all[i].arm = arms[i];
  return FINCH_OK;
}

// Fuses, and orders the healthy part, then the rest. Returns how many are healthy; all when none is.
size_t fuse_and_sort(const RankRule& rule, Candidates* candidates) noexcept {
  const size_t count = candidates->size();
  Place* places = candidates->places.data();
  size_t healthy = 0;
  for (const bool wanted : {true, false}) {
    size_t next = wanted ? 0 : healthy;
    for (size_t i = 0; i < count; ++i) {
      finch_candidate& c = candidates->all[i];
      if ((c.arm.availability >= rule.min_availability) != wanted) continue;
      c.score = fuse_one(c.semantic, c.arm.mean + c.arm.bonus, c.prior, c.arm.availability, rule.weights);
      places[next++] = {c.score, static_cast<uint32_t>(i), c.key};
    }
    if (wanted) healthy = next;
  }
  if (healthy == 0) healthy = count;
  sort_places(places, places + healthy);
  sort_places(places + healthy, places + count);
  return healthy;
}

finch_status cut_candidates(const finch_snapshot& snapshot, const RankRule& rule, const Candidates& candidates,
                            size_t healthy, finch_cut* cut, float* similarities) {
  SmallBuffer<float, kOrdinary> scores(healthy);
  SmallBuffer<const float*, kOrdinary> rows(healthy);
  for (size_t i = 0; i < healthy; ++i) {
    scores[i] = candidates.places[i].score;
    rows[i] = candidates.rows[candidates.places[i].at].vector;
  }
  const EmbeddingRows embeddings{nullptr, rows.data(), snapshot_dimension(snapshot)};
  return truncate(scores.data(), embeddings, healthy, rule.cut, -1, cut, similarities);
}

// finch_rank behind its checks of pointers, options and distinct keys.
finch_status rank(const finch_snapshot& snapshot, const finch_bandit* bandit, const uint64_t* keys,
                  const float* semantic, size_t count, const float* x, const RankRule& rule,
                  finch_candidate* candidates, finch_cut* cut, float* similarities) {
  Candidates found(count);
  finch_status status = find_candidates(snapshot, keys, semantic, &found);
  if (status == FINCH_OK) status = score_candidates(bandit, x, snapshot_dimension(snapshot), rule, &found);
  if (status != FINCH_OK) return status;
  const size_t healthy = fuse_and_sort(rule, &found);
  const size_t neighbours = similarities != nullptr && healthy > 1 ? healthy - 1 : 0;
  SmallBuffer<float, kOrdinary> computed(neighbours);
  status = cut_candidates(snapshot, rule, found, healthy, cut, neighbours > 0 ? computed.data() : nullptr);
  if (status != FINCH_OK) return status;
  for (size_t i = 0; i < count; ++i) candidates[i] = found.all[found.places[i].at];
  if (neighbours > 0) std::copy(computed.begin(), computed.end(), similarities);
  return FINCH_OK;
}

finch_status check_outputs(const finch_candidate* candidates, size_t count, const finch_cut* cut) noexcept {
  if (count > 0 && candidates == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "candidates is NULL; expected room for %zu.", count);
  }
  if (cut == nullptr || cut->size < sizeof(finch_cut)) {
    return fail(FINCH_INVALID_ARGUMENT, "cut must be a finch_cut whose size is sizeof(finch_cut) = %zu.",
                sizeof(finch_cut));
  }
  return FINCH_OK;
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
    finch::RankRule rule;
    finch_status status = finch::check_outputs(candidates, count, cut);
    if (status == FINCH_OK) status = finch::read_rank_options(options, &rule);
    if (status == FINCH_OK) status = finch::check_distinct(keys, count);
    if (status != FINCH_OK) return status;
    return finch::rank(*snapshot, bandit, keys, semantic, count, x, rule, candidates, cut, similarities);
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
    finch::RankRule rule;
    finch_status status = finch::read_rank_options(rank, &rule);
    if (status != FINCH_OK) return status;
    finch::SmallBuffer<uint64_t, finch::kOrdinary> keys(search->k);
    finch::SmallBuffer<float, finch::kOrdinary> scores(search->k);
    uint32_t found = 0;
    status = finch_search(snapshot, query, 1, search, keys.data(), scores.data(), &found);
    if (status == FINCH_OK) status = finch::check_outputs(candidates, found, cut);
    if (status != FINCH_OK) return status;
    status =
        finch::rank(*snapshot, bandit, keys.data(), scores.data(), found, query, rule, candidates, cut, similarities);
    if (status == FINCH_OK) *count = found;
    return status;
  });
}

}  // extern "C"
