// finch_search and finch_cosine.
#include "search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "allow.hpp"
#include "ann_search.hpp"
#include "cancel.hpp"
#include "error.hpp"
#include "kernels/kernels.hpp"
#include "scan.hpp"
#include "sized.hpp"
#include "state.hpp"
#include "topk.hpp"
#include "unit.hpp"

namespace finch {
namespace {

const float* row_at(const float* base, size_t row, size_t dimension) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(base) + row * dimension * sizeof(float));
}

struct Search {
  const State& state;
  uint32_t k;
  const finch_allow* allow;
  const finch_cancel* cancel;
  uint32_t threads;
  uint32_t overfetch;
  bool rescore_all;
  uint32_t expansion;

  const uint64_t* bits() const { return allow == nullptr ? nullptr : allow->bits.data(); }
  uint64_t most() const { return allow == nullptr ? state.count : allow->count; }
  ScanRequest request() const { return {state, bits(), most(), k, overfetch, rescore_all, threads, cancel}; }
};

// Kept from call to call, so that a call of the same size allocates nothing.
struct Scratch {
  std::vector<float> units;
  std::vector<TopK> tops;
};

finch_status run(const Search& search, bool use_ann, const float* queries, size_t count, uint64_t* keys, float* scores,
                 uint32_t* counts) {
  const State& state = search.state;
  const size_t d = state.dimension;
  thread_local Scratch scratch;
  std::vector<float>& units = scratch.units;
  std::vector<TopK>& tops = scratch.tops;
  units.resize(count * d);
  if (tops.size() < count) tops.resize(count);
  for (size_t q = 0; q < count; ++q) {
    const finch_status status = to_unit(row_at(queries, q, d), d, units.data() + q * d);
    if (status != FINCH_OK) return refuse_query(status, "queries", q);
    tops[q].reset(search.k, search.most());
  }
  const bool finished = use_ann ? search_graph(search.request(), search.expansion, units.data(), count, tops.data())
                                : scan(search.request(), units.data(), count, tops.data());
  if (!finished) return fail(FINCH_ABORTED, "the search was cancelled.");

  // Outputs last: a failed call leaves them untouched.
  for (size_t q = 0; q < count; ++q) {
    const std::vector<Hit>& best = tops[q].sorted();
    counts[q] = static_cast<uint32_t>(best.size());
    for (size_t i = 0; i < best.size(); ++i) {
      keys[q * search.k + i] = best[i].key;
      scores[q * search.k + i] = best[i].score;
    }
  }
  return FINCH_OK;
}

}  // namespace

finch_status read_search_options(const finch_snapshot* snapshot, const finch_search_options* options,
                                 finch_search_options* out) noexcept {
  if (snapshot == nullptr || options == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "snapshot and options must not be NULL.");
  }
  if (!read_sized(options, sizeof(finch_search_options), out)) {
    return fail(FINCH_INVALID_ARGUMENT, "options.size is %zu; set it to sizeof(finch_search_options).", options->size);
  }
  if (out->k < 1 || out->k > FINCH_MAX_K) {
    return fail(FINCH_INVALID_ARGUMENT, "options.k is %u; k lies in 1 ... %u.", out->k, FINCH_MAX_K);
  }
  if (out->mode < FINCH_SEARCH_AUTO || out->mode > FINCH_SEARCH_ANN) {
    return fail(FINCH_INVALID_ARGUMENT, "options.mode is %d; use FINCH_SEARCH_AUTO, _EXACT or _ANN.", out->mode);
  }
  const State& state = snapshot->state;
  if (out->mode == FINCH_SEARCH_ANN && state.ann == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT,
                "this snapshot has no ANN graph; build one first (finch_index_build_ann, buildAnn()).");
  }
  if (out->allow != nullptr && (out->allow->index_id != state.index_id || out->allow->version != state.version)) {
    return fail(FINCH_INVALID_ARGUMENT, "the allow set was made from another snapshot; make it from the one searched.");
  }
  if (out->overfetch != 0 && out->overfetch < out->k) {
    return fail(FINCH_INVALID_ARGUMENT, "options.overfetch is %u; expected at least k = %u, or none for the default.",
                out->overfetch, out->k);
  }
  if (out->expansion != 0 && (out->expansion < out->k || out->expansion > AnnConfig::kMostExpansion)) {
    return fail(FINCH_INVALID_ARGUMENT, "options.expansion is %u; it lies in k = %u ... %u, or none for the default.",
                out->expansion, out->k, AnnConfig::kMostExpansion);
  }
  return FINCH_OK;
}

finch_status refuse_query(finch_status status, const char* what, size_t i) noexcept {
  if (status == FINCH_NOT_FINITE) {
    return fail(status, "%s[%zu] holds NaN or infinity; every number must be finite.", what, i);
  }
  return fail(status, "%s[%zu] is all zeros: it has no direction.", what, i);
}

}  // namespace finch

using finch::fail;

extern "C" {

finch_status finch_search(const finch_snapshot* snapshot, const float* queries, size_t count,
                          const finch_search_options* options, uint64_t* keys, float* scores, uint32_t* counts) {
  return finch::guarded([&]() -> finch_status {
    finch_search_options read;
    if (const finch_status status = finch::read_search_options(snapshot, options, &read)) return status;
    if (count == 0) return FINCH_OK;
    if (queries == nullptr || keys == nullptr || scores == nullptr || counts == nullptr) {
      return fail(FINCH_INVALID_ARGUMENT, "queries, keys, scores and counts must not be NULL when count is %zu.",
                  count);
    }
    const finch::State& state = snapshot->state;
    // An int8 code's score is off by about ten times what a bf16 one's is; deeper in the list rows lie closer.
    const uint32_t usual = state.storage == FINCH_STORAGE_I8 ? read.k + read.k / 4 + 24 : read.k + read.k / 16 + 16;
    const uint32_t overfetch = read.overfetch != 0 ? read.overfetch : usual;
    const finch::Search search{state,        read.k,    read.allow,          read.cancel,
                               read.threads, overfetch, read.overfetch != 0, read.expansion};
    const bool use_ann = read.mode != FINCH_SEARCH_EXACT && state.ann != nullptr;
    return finch::run(search, use_ann, queries, count, keys, scores, counts);
  });
}

finch_status finch_cosine(const float* a, const float* b, size_t count, uint32_t dimension, float* out) {
  return finch::guarded([&]() -> finch_status {
    if (dimension < 1 || dimension > FINCH_MAX_DIMENSION) {
      return fail(FINCH_DIMENSION, "dimension is %u; it lies in 1 ... %u.", dimension, FINCH_MAX_DIMENSION);
    }
    if (count == 0) return FINCH_OK;
    if (a == nullptr || b == nullptr || out == nullptr) {
      return fail(FINCH_INVALID_ARGUMENT, "a, b and out must not be NULL when count is %zu.", count);
    }
    std::vector<float> unit(2 * size_t{dimension});
    std::vector<float> results(count);
    for (size_t i = 0; i < count; ++i) {
      finch_status status = finch::to_unit(finch::row_at(a, i, dimension), dimension, unit.data());
      if (status != FINCH_OK) return finch::refuse_query(status, "a", i);
      status = finch::to_unit(finch::row_at(b, i, dimension), dimension, unit.data() + dimension);
      if (status != FINCH_OK) return finch::refuse_query(status, "b", i);
      results[i] = finch::kernels().dot(unit.data(), unit.data() + dimension, dimension);
    }
    std::memcpy(out, results.data(), count * sizeof(float));
    return FINCH_OK;
  });
}

}  // extern "C"
