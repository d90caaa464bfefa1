// Approximate search of a state that has a graph.
#pragma once

#include <cstdint>

#include "ann.hpp"
#include "scan.hpp"

namespace finch {

// Offers each query's best rows to its `tops` (reset to k by the caller): those found in the graph and among the rows
// written since, or a scan's where that is less work or the graph has too few. `expansion`: the candidates a walk keeps
// (ef), at least k, or 0 for the default. Scores are scan()'s, and the results the same bits whatever `count` and
// `threads`. False when cancelled. May throw std::bad_alloc.
bool search_graph(const ScanRequest& request, size_t expansion, const float* units, size_t count, TopK* tops);

}  // namespace finch
