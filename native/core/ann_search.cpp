#include "ann_search.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "cancel.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"
#include "toolfinch.h"

namespace finch {
namespace {

// A walk scores some 15 rows' codes for each candidate that it keeps, and a code's elements are about this much quicker
// than a multiply-add of float32.
constexpr double kWalkWork = 15.0 / 4;
// As much work as is worth sharing a scan: about 100 us on one core.
constexpr double kWorthSharing = 4e6;

class Walks {
 public:
  Walks(const ScanRequest& request, size_t expansion, const float* units, size_t count, TopK* tops)
      : request_(request), state_(request.state), expansion_(expansion), units_(units), tops_(tops), short_(count) {}

  // False when cancelled.
  bool run() {
    state_.ann->encode();
    parallel_for(
        short_.size(), choose_threads(), [](void* self, uint32_t, size_t q) { static_cast<Walks*>(self)->answer(q); },
        this);
    if (stopped_) return false;
    if (out_of_memory_) throw std::bad_alloc();
    for (size_t q = 0; q < short_.size(); ++q) {
      if (!short_[q]) continue;
      tops_[q].reset(request_.k, request_.most);
      if (!scan(request_, units_ + q * state_.dimension, 1, &tops_[q])) return false;
    }
    return true;
  }

 private:
  uint32_t choose_threads() const noexcept {
    if (request_.threads == 1) return 1;
    const uint32_t pool = finch_pool_threads();
    if (request_.threads > 1) return std::min(request_.threads, pool);
    const double work = static_cast<double>(short_.size()) * static_cast<double>(expansion_) * state_.dimension;
    return kWalkWork * work < kWorthSharing ? 1 : pool;
  }

  void answer(size_t q) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    if (cancelled(request_.cancel)) {
      stopped_.store(true, std::memory_order_relaxed);
      return;
    }
    try {
      short_[q] = !walk(units_ + q * state_.dimension, &tops_[q]);
    } catch (...) {
      out_of_memory_.store(true, std::memory_order_relaxed);
    }
  }

  // The graph's candidates and the rows written since. False when there is reason to scan instead.
  bool walk(const float* query, TopK* top) const {
    // An int8 code's score is less sure than the vector's: more than k are scored again.
    const size_t rescored = std::max<size_t>(request_.overfetch, request_.k + request_.k / 4 + 24);
    size_t offered = state_.ann->search(query, expansion_, rescored, state_, request_.allow, top);
    if (state_.fresh != nullptr) {
      const Kernels& kernel = kernels();
      for (const Fresh& fresh : *state_.fresh) {
        if (!state_.holds(fresh.slot, fresh.stamp)) continue;
        if (request_.allow != nullptr && ((request_.allow[fresh.slot / 64] >> (fresh.slot % 64)) & 1u) == 0) continue;
        top->push(kernel.dot(query, state_.vector(fresh.slot), state_.dimension),
                  state_.chunk_of(fresh.slot).keys[State::row_of(fresh.slot)]);
        ++offered;
      }
    }
    // A graph with parts that cannot be reached must not make results go missing.
    return offered >= std::min<uint64_t>(request_.k, request_.most);
  }

  const ScanRequest& request_;
  const State& state_;
  const size_t expansion_;
  const float* units_;
  TopK* tops_;
  std::vector<char> short_;  // queries for which the graph had too few
  std::atomic<bool> stopped_{false};
  std::atomic<bool> out_of_memory_{false};
};

// Whether scanning the allowed rows is less work than walking the graph: a walk looks at some tens of rows for each of
// the `expansion` candidates it keeps, and at the more the fewer of them are allowed.
bool scan_is_cheaper(const ScanRequest& request, size_t expansion) noexcept {
  const auto wanted = static_cast<double>(request.most);
  const auto all = static_cast<double>(request.state.count);
  return wanted * wanted <= 16.0 * static_cast<double>(expansion) * all || 4 * expansion >= request.most;
}

}  // namespace

bool search_graph(const ScanRequest& request, size_t expansion, const float* units, size_t count, TopK* tops) {
  // More than k candidates: near the k-th place ties and near misses are common.
  if (expansion == 0) {
    expansion = std::max<size_t>(request.state.ann->config().expansion_search, request.k + request.k / 4 + 16);
  }
  if (scan_is_cheaper(request, expansion)) return scan(request, units, count, tops);
  return Walks(request, expansion, units, count, tops).run();
}

}  // namespace finch
