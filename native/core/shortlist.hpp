// The best rows of each query so far, while a scan goes on.
//
// A scan's scores may differ from the canonical ones (kernels/scan/scan.hpp) by up to `bound`, because blocks of
// different shapes sum in different orders. A list keeps every row that could still be among the `want` best by
// canonical score, so what is chosen from it at the end depends on nothing but the rows and the query: not on the
// number of threads, the batch or the order of rows. Ties go to the lower key.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "state.hpp"

namespace finch {

// The canonical score of rows for one query.
class CanonicalScore {
 public:
  virtual float operator()(size_t query, uint32_t slot) const noexcept = 0;

 protected:
  ~CanonicalScore() = default;
};

class Shortlists {
 public:
  // `most`: how many rows can come at all. May throw std::bad_alloc; nothing else here does.
  void reset(const State& state, const CanonicalScore& canonical, size_t queries, size_t lanes, size_t want,
             uint64_t most, float bound);
  // Bytes that reset() would need for one query.
  static size_t bytes_per_query(size_t want, uint64_t most) noexcept;

  // Below its bar a score has no chance. One per query; infinity for the lanes without one.
  const float* bars() const noexcept { return bars_.data(); }
  void add(size_t query, float score, uint32_t slot) noexcept {
    if (score < bars_[query]) return;
    uint32_t& size = sizes_[query];
    const size_t at = query * capacity_ + size;
    scores_[at] = score;
    slots_[at] = slot;
    if (++size == capacity_) prune(query, &contenders_);
  }
  // Takes over what others that scan other rows for the same queries know of the `want`-th canonical score, and tells
  // them. `floors`, one per query, begin at -infinity: bars of lists with different bounds cannot be compared.
  void share_bars(std::atomic<float>* floors) noexcept;
  // From here on the scan's scores are within `bound`, a smaller one.
  void tighten(float bound) noexcept;
  float bound() const noexcept { return bound_; }
  // How many canonical scores pruning has cost so far.
  uint64_t pruning_cost() const noexcept { return pruning_cost_; }

  // After the scan. Different queries may be finished by different threads at once, each with a `workspace` that is
  // nobody else's meanwhile (any lists after the same reset).
  void take_from(const Shortlists& other, size_t query, Shortlists* workspace) noexcept;
  // The rows of the `want` best canonical scores, or of all there are, in no order. Returns how many.
  size_t finish(size_t query, Shortlists* workspace, const uint32_t** slots) noexcept;

 private:
  static size_t capacity_for(size_t want, uint64_t most) noexcept;
  struct Contender {
    float canonical;
    float scanned;
    uint32_t slot;
  };
  // Keeps those that the bar of the `want`-th by the scan's score lets through.
  void drop_hopeless(size_t query) noexcept;
  // Keeps the `want` best by canonical score. Only those too near to the `want`-th to tell are scored, unless `all`:
  // then every score left is canonical. Returns how many were scored.
  size_t choose(size_t query, bool all, std::vector<Contender>* contenders) noexcept;
  void prune(size_t query, std::vector<Contender>* contenders) noexcept;
  bool ahead(const Contender& a, const Contender& b) const noexcept;

  const State* state_ = nullptr;
  const CanonicalScore* canonical_ = nullptr;
  size_t want_ = 0;
  size_t capacity_ = 0;
  float bound_ = 0;
  uint64_t pruning_cost_ = 0;
  std::vector<float> bars_;
  std::vector<uint32_t> sizes_;
  std::vector<float> scores_;  // capacity_ per query
  std::vector<uint32_t> slots_;
  std::vector<Contender> contenders_;
};

}  // namespace finch
