// The best rows of each query so far, while a scan goes on.
//
// A scan's scores may differ from the canonical ones (kernels/scan/scan.hpp) by up to `bound`, because blocks of
// different shapes sum in different orders. What is wanted is fixed by canonical scores alone: of the `most` best (ties
// go to the lower key) those that reach the `least`-th best's score less the query's slack. A list keeps every row that
// could still be one of them, so what is taken from it at the end depends on nothing but the rows and the query: not on
// the number of threads, the batch or the order of rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "state.hpp"

namespace finch {

// The canonical scores of rows for one query.
class CanonicalScores {
 public:
  // `workspace` is the caller's alone meanwhile.
  virtual void operator()(size_t query, const uint32_t* slots, size_t count, float* scores,
                          void* workspace) const noexcept = 0;

 protected:
  ~CanonicalScores() = default;
};

struct Wanted {
  size_t least;
  size_t most;          // `least` or more
  const float* slacks;  // one per query; infinity: all of the `most` best
  uint64_t rows;        // how many can come at all
};

// Rows that may be wanted, in no order, with the scan's scores.
struct Candidates {
  const uint32_t* slots;
  const float* scores;
  size_t count;
  float certain;  // who reaches it is wanted for certain
};

class Shortlists {
 public:
  // `workspace`: for `canonical`. May throw std::bad_alloc; nothing else here does.
  void reset(const State& state, const CanonicalScores& canonical, size_t queries, size_t lanes, const Wanted& wanted,
             float bound, void* workspace);
  // Bytes that reset() would need for one query.
  static size_t bytes_per_query(size_t most, uint64_t rows) noexcept;

  // Below its bar a score has no chance. One per query; infinity for the lanes without one.
  const float* bars() const noexcept { return bars_.data(); }
  void add(size_t query, float score, uint32_t slot) noexcept {
    if (score < bars_[query]) return;
    List& list = lists_[query];
    const size_t at = query * capacity_ + list.size;
    scores_[at] = score;
    slots_[at] = slot;
    if (++list.size >= list.full) prune(query, this);
  }
  // Takes over what others that scan other rows for the same queries know of the least canonical score wanted, and
  // tells them. `floors`, one per query, begin at -infinity: bars of lists with different bounds cannot be compared.
  void share_bars(std::atomic<float>* floors) noexcept;
  // From here on the scan's scores are within `bound`, a smaller one.
  void tighten(float bound) noexcept;
  float bound() const noexcept { return bound_; }
  // How many canonical scores pruning has cost so far.
  uint64_t pruning_cost() const noexcept { return pruning_cost_; }

  // After the scan. Different queries may be finished by different threads at once, each with a `workspace` that is
  // nobody else's meanwhile (any lists after the same reset).
  void take_from(const Shortlists& other, size_t query, Shortlists* workspace) noexcept;
  // All wanted rows and a few that may not be.
  Candidates finish(size_t query) noexcept;
  // Just the wanted rows, with canonical scores.
  Candidates settle(size_t query, Shortlists* workspace) noexcept;

 private:
  struct List {
    uint32_t size;
    uint32_t full;  // when to prune
  };
  struct Contender {
    float canonical;
    float scanned;
    uint32_t slot;
  };
  static size_t capacity_for(size_t most, uint64_t rows) noexcept;
  // Keeps those that reach a bar, raised as far as the scan's scores allow; `exactly`, or nearly.
  void drop_hopeless(size_t query, bool exactly) noexcept;
  void raise(size_t query, float bar) noexcept;
  void keep(size_t query, float bar) noexcept;
  // Keeps the `most` best by canonical score. Only those too near to the last of them to tell are scored, unless `all`:
  // then every score left is canonical. Returns how many were scored.
  size_t choose(size_t query, bool all, Shortlists* workspace) noexcept;
  void prune(size_t query, Shortlists* workspace) noexcept;
  // The canonical scores of the first `count` contenders.
  void score(size_t query, size_t count) noexcept;
  bool ahead(const Contender& a, const Contender& b) const noexcept;

  const State* state_ = nullptr;
  const CanonicalScores* canonical_ = nullptr;
  void* workspace_ = nullptr;
  Wanted wanted_{};
  size_t capacity_ = 0;
  float bound_ = 0;
  uint64_t pruning_cost_ = 0;
  std::vector<float> bars_;
  std::vector<List> lists_;
  std::vector<float> scores_;  // capacity_ per query
  std::vector<uint32_t> slots_;
  std::vector<Contender> contenders_;
  std::vector<uint32_t> asked_;
  std::vector<float> answered_;
};

}  // namespace finch
