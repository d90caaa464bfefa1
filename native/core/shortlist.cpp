#include "shortlist.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace finch {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Room beside the `most` best: enough that lists are seldom pruned, little enough that they stay in the first caches.
constexpr size_t kRoom = 64;
// How many rows a list takes in before it is pruned again, at least: the bar rises with each pruning.
constexpr size_t kIntake = 32;

// Integers in the order of the floats.
int32_t ordered(float x) noexcept {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits < 0 ? std::numeric_limits<int32_t>::min() - bits : bits;
}
float unordered(int32_t x) noexcept {
  return std::bit_cast<float>(x < 0 ? std::numeric_limits<int32_t>::min() - x : x);
}

size_t count_from(const float* scores, size_t n, float bar) noexcept {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += scores[i] >= bar ? 1u : 0u;
  return count;
}

// Four at a time, which compilers make one instruction of; a chain of single ones waits for each.
float least_from(const float* scores, size_t n, float bar) noexcept {
  float least[4] = {kInfinity, kInfinity, kInfinity, kInfinity};
  size_t i = 0;
  const auto take = [&](float& to, float score) {
    const float reaching = score >= bar ? score : kInfinity;
    to = reaching < to ? reaching : to;
  };
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) take(least[j], scores[i + j]);
  }
  for (; i < n; ++i) take(least[0], scores[i]);
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}
float most_of(const float* scores, size_t n) noexcept {
  float most[4] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) most[j] = scores[i + j] > most[j] ? scores[i + j] : most[j];
  }
  for (; i < n; ++i) most[0] = std::max(most[0], scores[i]);
  return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
}

// The k-th largest of n scores, 1 <= k <= n, or a little less: a value that k to k + `spare` of them reach, where there
// is one. By halving the range of values: counting is a straight loop that the compiler vectorises, where selecting
// branches at random.
float kth_largest(const float* scores, size_t n, size_t k, size_t spare) noexcept {
  // At least k scores reach `low`, fewer reach `high`.
  int64_t low = ordered(least_from(scores, n, -kInfinity));
  int64_t high = int64_t{ordered(most_of(scores, n))} + 1;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    const float bar = unordered(static_cast<int32_t>(middle));
    const size_t reach = count_from(scores, n, bar);
    if (reach >= k && reach <= k + spare) {
      if (reach > k) return bar;
      // The least of those that reach it.
      return least_from(scores, n, bar);
    }
    (reach > k ? low : high) = middle;
  }
  return unordered(static_cast<int32_t>(low));
}

}  // namespace

size_t Shortlists::capacity_for(size_t most, uint64_t rows) noexcept {
  // One more than can come: never full, never pruned.
  return static_cast<size_t>(std::min<uint64_t>(2 * uint64_t{most} + kRoom, rows + 1));
}

size_t Shortlists::bytes_per_query(size_t most, uint64_t rows) noexcept {
  return capacity_for(most, rows) * (sizeof(float) + sizeof(uint32_t));
}

void Shortlists::reset(const State& state, const CanonicalScores& canonical, size_t queries, size_t lanes,
                       const Wanted& wanted, float bound, void* workspace) {
  state_ = &state;
  canonical_ = &canonical;
  workspace_ = workspace;
  wanted_ = wanted;
  bound_ = bound;
  pruning_cost_ = 0;
  capacity_ = capacity_for(wanted.most, wanted.rows);
  scores_.resize(queries * capacity_);
  slots_.resize(queries * capacity_);
  contenders_.resize(capacity_);
  asked_.resize(capacity_);
  answered_.resize(capacity_);
  lists_.assign(queries, {0, static_cast<uint32_t>(std::min(capacity_, wanted.least + kIntake))});
  bars_.assign(lanes, kInfinity);
  std::fill_n(bars_.begin(), queries, -kInfinity);
}

bool Shortlists::ahead(const Contender& a, const Contender& b) const noexcept {
  if (a.canonical != b.canonical) return a.canonical > b.canonical;
  const auto key = [&](uint32_t slot) { return state_->chunk_of(slot).keys[State::row_of(slot)]; };
  return key(a.slot) < key(b.slot);
}

void Shortlists::raise(size_t query, float bar) noexcept {
  bars_[query] = std::max(bars_[query], bar);
  keep(query, bars_[query]);
}

void Shortlists::keep(size_t query, float bar) noexcept {
  float* const scores = scores_.data() + query * capacity_;
  uint32_t* const slots = slots_.data() + query * capacity_;
  uint32_t& size = lists_[query].size;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < size; ++i) {
    scores[kept] = scores[i];
    slots[kept] = slots[i];
    kept += scores[i] >= bar ? 1u : 0u;
  }
  size = kept;
}

void Shortlists::drop_hopeless(size_t query, bool exactly) noexcept {
  const float* const scores = scores_.data() + query * capacity_;
  const uint32_t& size = lists_[query].size;
  // `n` rows have a canonical score of at least the n-th - bound; who is below that - bound is behind them all.
  const auto nth = [&](size_t n) { return kth_largest(scores, size, n, exactly ? 0 : n / 4) - 2 * bound_; };
  const float slack = wanted_.slacks[query];
  if (slack < kInfinity && size > wanted_.least) raise(query, nth(wanted_.least) - slack);
  if (size > wanted_.most) raise(query, nth(wanted_.most));
}

void Shortlists::score(size_t query, size_t count) noexcept {
  if (bound_ == 0) {
    for (size_t i = 0; i < count; ++i) contenders_[i].canonical = contenders_[i].scanned;
    return;
  }
  for (size_t i = 0; i < count; ++i) asked_[i] = contenders_[i].slot;
  (*canonical_)(query, asked_.data(), count, answered_.data(), workspace_);
  for (size_t i = 0; i < count; ++i) contenders_[i].canonical = answered_[i];
}

size_t Shortlists::choose(size_t query, bool all, Shortlists* workspace) noexcept {
  std::vector<Contender>& contenders = workspace->contenders_;
  float* const scores = scores_.data() + query * capacity_;
  uint32_t* const slots = slots_.data() + query * capacity_;
  uint32_t& size = lists_[query].size;
  const size_t want = wanted_.most;
  if (size <= want && !all) return 0;
  // A row that is ahead of the `want`-th by more than twice the bound is in, whoever else is.
  const float last = all || size <= want ? kInfinity : kth_largest(scores, size, want, 0);
  const float certain = last + 2 * bound_;
  uint32_t kept = 0;
  size_t open = 0;
  for (uint32_t i = 0; i < size; ++i) {
    if (scores[i] > certain) {
      scores[kept] = scores[i];
      slots[kept++] = slots[i];
    } else {
      contenders[open++] = {0.0f, scores[i], slots[i]};
    }
  }
  workspace->score(query, open);
  const size_t places = std::min<size_t>(want - kept, open);
  if (places < open) {
    std::nth_element(contenders.begin(), contenders.begin() + static_cast<ptrdiff_t>(places),
                     contenders.begin() + static_cast<ptrdiff_t>(open),
                     [&](const Contender& a, const Contender& b) { return ahead(a, b); });
  }
  float least = kInfinity;
  for (size_t i = 0; i < places; ++i) {
    least = std::min(least, contenders[i].canonical);
    scores[kept] = all ? contenders[i].canonical : contenders[i].scanned;
    slots[kept++] = contenders[i].slot;
  }
  size = kept;
  // The `want`-th canonical score is a contender's or, of the certain ones, at least last + bound.
  if (size == want && places > 0) bars_[query] = std::max(bars_[query], std::min(least, last + bound_) - bound_);
  return open;
}

void Shortlists::prune(size_t query, Shortlists* workspace) noexcept {
  drop_hopeless(query, false);
  List& list = lists_[query];
  // Many ties, or as good as: their canonical scores and keys decide.
  if (capacity_ <= wanted_.rows && list.size > capacity_ - kRoom / 2) {
    const size_t scored = choose(query, false, workspace);
    if (workspace == this) pruning_cost_ += scored;
  }
  list.full = static_cast<uint32_t>(std::min(capacity_, list.size + std::max<size_t>(list.size, kIntake)));
}

void Shortlists::tighten(float bound) noexcept {
  for (size_t query = 0; query < lists_.size(); ++query) choose(query, true, this);
  bound_ = bound;
}

void Shortlists::share_bars(std::atomic<float>* floors) noexcept {
  // Rounded down, so that no bar is raised by rounding.
  const auto below = [](float x) { return std::nextafter(x, -kInfinity); };
  for (size_t query = 0; query < lists_.size(); ++query) {
    const float floor = below(bars_[query] + bound_);
    float shared = floors[query].load(std::memory_order_relaxed);
    while (shared < floor && !floors[query].compare_exchange_weak(shared, floor, std::memory_order_relaxed)) {
    }
    if (shared > floor) bars_[query] = std::max(bars_[query], below(shared - bound_));
  }
}

void Shortlists::take_from(const Shortlists& other, size_t query, Shortlists* workspace) noexcept {
  const size_t from = query * other.capacity_;
  List& list = lists_[query];
  list.full = static_cast<uint32_t>(capacity_);
  for (uint32_t i = 0; i < other.lists_[query].size; ++i) {
    const float score = other.scores_[from + i];
    if (score < bars_[query]) continue;
    const size_t at = query * capacity_ + list.size;
    scores_[at] = score;
    slots_[at] = other.slots_[from + i];
    if (++list.size == capacity_) {
      prune(query, workspace);
      list.full = static_cast<uint32_t>(capacity_);
    }
  }
}

Candidates Shortlists::finish(size_t query) noexcept {
  float* const scores = scores_.data() + query * capacity_;
  const uint32_t size = lists_[query].size;
  const float slack = wanted_.slacks[query];
  Candidates found{slots_.data() + query * capacity_, scores, size, -kInfinity};
  if (size > wanted_.least && slack < kInfinity) {
    const float nth = kth_largest(scores, size, wanted_.least, 0);
    raise(query, nth - slack - 2 * bound_);
    // The `least`-th canonical score is at most nth + bound.
    found.certain = nth + 2 * bound_ - slack;
  }
  if (lists_[query].size > wanted_.most) {
    drop_hopeless(query, true);
    // Among so many, rank decides as well.
    found.certain = kInfinity;
  }
  found.count = lists_[query].size;
  return found;
}

Candidates Shortlists::settle(size_t query, Shortlists* workspace) noexcept {
  choose(query, true, workspace);
  float* const scores = scores_.data() + query * capacity_;
  const uint32_t& size = lists_[query].size;
  const float slack = wanted_.slacks[query];
  if (size > wanted_.least && slack < kInfinity) {
    keep(query, kth_largest(scores, size, wanted_.least, 0) - slack);
  }
  return {slots_.data() + query * capacity_, scores, size, -kInfinity};
}

}  // namespace finch
