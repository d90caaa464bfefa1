// Exact search: every allowed row of a state against a batch of queries.
#pragma once

#include <cstdint>
#include <vector>

#include "cancel.hpp"
#include "state.hpp"
#include "topk.hpp"

namespace finch {

struct ScanRequest {
  const State& state;
  const uint64_t* allow;  // bits by slot, or null: all rows
  uint64_t most;          // how many rows that leaves
  size_t k;
  size_t overfetch;  // with codes: how many are rescored at most; at least k
  bool rescore_all;  // ... and those that have no chance as well
  uint32_t threads;  // 0: as finch_search_options.threads
  const finch_cancel* cancel;
};

// Offers each query's best rows, by float32 dot product, to its `tops` (reset to k by the caller). `units`: `count`
// unit vectors. The same bits whatever `count` and `threads`. False when cancelled. May throw std::bad_alloc.
bool scan(const ScanRequest& request, const float* units, size_t count, TopK* tops);

}  // namespace finch
