// finch_search and finch_cosine.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "allow.hpp"
#include "ann.hpp"
#include "cancel.hpp"
#include "error.hpp"
#include "kernels/kernels.hpp"
#include "sized.hpp"
#include "state.hpp"
#include "topk.hpp"
#include "unit.hpp"

namespace finch {
namespace {

// Queries that one pass over the rows serves: a stretch of rows is read once and scored against all of them.
constexpr size_t kQueryTile = 16;
constexpr size_t kWord = 64;

const float* row_at(const float* base, size_t row, size_t dimension) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(base) + row * dimension * sizeof(float));
}

struct Search {
  const State& state;
  uint32_t k;
  const finch_allow* allow;
  const finch_cancel* cancel;

  const uint64_t* bits() const { return allow == nullptr ? nullptr : allow->bits.data(); }
  uint64_t most() const { return allow == nullptr ? state.count : allow->count; }
};

// Every allowed row against every query of the tile. False when cancelled. Results do not depend on the order of the
// rows: a row's score is a matter of the row and the query alone, and TopK orders by score and key.
bool scan(const Search& search, const float* queries, size_t count, TopK* tops) {
  const State& state = search.state;
  const size_t d = state.dimension;
  const uint64_t* allow = search.bits();
  const Kernels& kernel = kernels();
  const uint32_t chunk_rows = uint32_t{1} << state.chunk_shift;
  float scores[kWord];
  for (size_t c = 0; c < state.rows.size(); ++c) {
    if (cancelled(search.cancel)) return false;
    const RowChunk& chunk = *state.rows.get(c);
    for (size_t w = 0; w < RowChunk::kWords; ++w) {
      uint64_t bits = chunk.present[w];
      if (allow != nullptr) bits &= allow[c * RowChunk::kWords + w];
      while (bits != 0) {
        // A run of wanted rows that lie one after another in memory.
        const auto first = static_cast<uint32_t>(std::countr_zero(bits));
        auto length = static_cast<uint32_t>(std::countr_one(bits >> first));
        const auto slot = static_cast<uint32_t>(c * RowChunk::kRows + w * kWord + first);
        length = std::min(length, chunk_rows - (slot & (chunk_rows - 1)));
        bits &= ~((length == kWord ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << first);
        const float* rows = state.vector(slot);
        const uint64_t* keys = chunk.keys + State::row_of(slot);
        for (size_t q = 0; q < count; ++q) {
          kernel.dot_rows(queries + q * d, rows, length, d, scores);
          for (uint32_t r = 0; r < length; ++r) tops[q].push(scores[r], keys[r]);
        }
      }
    }
  }
  return true;
}

// Whether scanning the allowed rows is less work than walking the graph: a walk looks at some tens of rows for each of
// the `expansion` candidates it keeps, and at the more the fewer of them are allowed.
bool scan_is_cheaper(const Search& search, size_t expansion) {
  const auto wanted = static_cast<double>(search.most());
  const auto all = static_cast<double>(search.state.count);
  return wanted * wanted <= 16.0 * static_cast<double>(expansion) * all || 4 * expansion >= search.most();
}

// The graph's candidates and the rows written since. False when there is reason to scan instead.
bool walk(const Search& search, const float* query, size_t expansion, TopK* top) {
  const State& state = search.state;
  const Ann& ann = *state.ann;
  size_t offered = ann.search(query, expansion, state, search.bits(), top);
  if (state.fresh != nullptr) {
    const uint64_t* allow = search.bits();
    const Kernels& kernel = kernels();
    for (const Fresh& fresh : *state.fresh) {
      if (!state.holds(fresh.slot, fresh.stamp)) continue;
      if (allow != nullptr && ((allow[fresh.slot / 64] >> (fresh.slot % 64)) & 1u) == 0) continue;
      top->push(kernel.dot(query, state.vector(fresh.slot), state.dimension),
                state.chunk_of(fresh.slot).keys[State::row_of(fresh.slot)]);
      ++offered;
    }
  }
  // A graph with parts that cannot be reached must not make results go missing.
  return offered >= std::min<uint64_t>(search.k, search.most());
}

finch_status refuse_query(finch_status status, const char* what, size_t i) {
  if (status == FINCH_NOT_FINITE) {
    return fail(status, "%s[%zu] holds NaN or infinity; every number must be finite.", what, i);
  }
  return fail(status, "%s[%zu] is all zeros: it has no direction.", what, i);
}

finch_status run(const Search& search, bool use_ann, const float* queries, size_t count, uint64_t* keys, float* scores,
                 uint32_t* counts) {
  const State& state = search.state;
  const size_t d = state.dimension;
  size_t expansion = 0;
  if (use_ann) {
    // More than k candidates: near the k-th place ties and near misses are common.
    expansion = std::max<size_t>(state.ann->config().expansion_search, search.k + search.k / 4 + 16);
    use_ann = !scan_is_cheaper(search, expansion);
  }

  const size_t tile = std::min(count, kQueryTile);
  std::vector<float> units(tile * d);
  std::vector<TopK> tops(tile);
  std::vector<Hit> hits;
  std::vector<uint32_t> found(count);
  for (size_t q = 0; q < count; q += tile) {
    const size_t n = std::min(tile, count - q);
    for (size_t i = 0; i < n; ++i) {
      const finch_status status = to_unit(row_at(queries, q + i, d), d, units.data() + i * d);
      if (status != FINCH_OK) return refuse_query(status, "queries", q + i);
      tops[i].reset(search.k, search.most());
    }
    bool finished = true;
    if (use_ann) {
      for (size_t i = 0; i < n && finished; ++i) {
        const float* unit = units.data() + i * d;
        finished = !cancelled(search.cancel);
        if (finished && !walk(search, unit, expansion, &tops[i])) {
          tops[i].reset(search.k, search.most());
          finished = scan(search, unit, 1, &tops[i]);
        }
      }
    } else {
      finished = scan(search, units.data(), n, tops.data());
    }
    if (!finished) return fail(FINCH_ABORTED, "the search was cancelled.");
    for (size_t i = 0; i < n; ++i) {
      const std::vector<Hit>& best = tops[i].sorted();
      found[q + i] = static_cast<uint32_t>(best.size());
      hits.insert(hits.end(), best.begin(), best.end());
    }
  }

  // Outputs last: a failed call leaves them untouched.
  const Hit* hit = hits.data();
  for (size_t q = 0; q < count; ++q) {
    counts[q] = found[q];
    for (uint32_t i = 0; i < found[q]; ++i, ++hit) {
      keys[q * search.k + i] = hit->key;
      scores[q * search.k + i] = hit->score;
    }
  }
  return FINCH_OK;
}

}  // namespace
}  // namespace finch

using finch::fail;

extern "C" {

finch_status finch_search(const finch_snapshot* snapshot, const float* queries, size_t count,
                          const finch_search_options* options, uint64_t* keys, float* scores, uint32_t* counts) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr || options == nullptr) {
      return fail(FINCH_INVALID_ARGUMENT, "snapshot and options must not be NULL.");
    }
    finch_search_options read;
    if (!finch::read_sized(options, sizeof(finch_search_options), &read)) {
      return fail(FINCH_INVALID_ARGUMENT, "options.size is %zu; set it to sizeof(finch_search_options).",
                  options->size);
    }
    if (read.k < 1 || read.k > FINCH_MAX_K) {
      return fail(FINCH_INVALID_ARGUMENT, "options.k is %u; k lies in 1 ... %u.", read.k, FINCH_MAX_K);
    }
    if (read.mode < FINCH_SEARCH_AUTO || read.mode > FINCH_SEARCH_ANN) {
      return fail(FINCH_INVALID_ARGUMENT, "options.mode is %d; use FINCH_SEARCH_AUTO, _EXACT or _ANN.", read.mode);
    }
    const finch::State& state = snapshot->state;
    if (read.mode == FINCH_SEARCH_ANN && state.ann == nullptr) {
      return fail(FINCH_INVALID_ARGUMENT, "this snapshot has no ANN graph; call finch_index_build_ann first.");
    }
    if (read.allow != nullptr && (read.allow->index_id != state.index_id || read.allow->version != state.version)) {
      return fail(FINCH_INVALID_ARGUMENT,
                  "the allow set was made from another snapshot; make it from the one searched.");
    }
    if (count == 0) return FINCH_OK;
    if (queries == nullptr || keys == nullptr || scores == nullptr || counts == nullptr) {
      return fail(FINCH_INVALID_ARGUMENT, "queries, keys, scores and counts must not be NULL when count is %zu.",
                  count);
    }
    const finch::Search search{state, read.k, read.allow, read.cancel};
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
