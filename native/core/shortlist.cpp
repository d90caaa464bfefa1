#include "shortlist.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace finch {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Room beside the `want` best: enough that lists are seldom pruned, little enough that they stay in the first caches.
constexpr size_t kRoom = 64;

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

// The k-th largest of n scores, 1 <= k <= n. By halving the range of values: counting is a straight loop that the
// compiler vectorises, where selecting branches at random.
float kth_largest(const float* scores, size_t n, size_t k) noexcept {
  float least = scores[0];
  float most = scores[0];
  for (size_t i = 1; i < n; ++i) {
    least = std::min(least, scores[i]);
    most = std::max(most, scores[i]);
  }
  // At least k scores reach `low`, fewer reach `high`.
  int64_t low = ordered(least);
  int64_t high = int64_t{ordered(most)} + 1;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    const float bar = unordered(static_cast<int32_t>(middle));
    const size_t reach = count_from(scores, n, bar);
    if (reach == k) {
      // The least of those that reach it.
      float kth = kInfinity;
      for (size_t i = 0; i < n; ++i) kth = scores[i] >= bar ? std::min(kth, scores[i]) : kth;
      return kth;
    }
    (reach > k ? low : high) = middle;
  }
  return unordered(static_cast<int32_t>(low));
}

}  // namespace

size_t Shortlists::capacity_for(size_t want, uint64_t most) noexcept {
  // One more than can come: never full, never pruned.
  return static_cast<size_t>(std::min<uint64_t>(2 * uint64_t{want} + kRoom, most + 1));
}

size_t Shortlists::bytes_per_query(size_t want, uint64_t most) noexcept {
  return capacity_for(want, most) * (sizeof(float) + sizeof(uint32_t));
}

void Shortlists::reset(const State& state, const CanonicalScore& canonical, size_t queries, size_t lanes, size_t want,
                       uint64_t most, float bound) {
  state_ = &state;
  canonical_ = &canonical;
  want_ = want;
  bound_ = bound;
  pruning_cost_ = 0;
  capacity_ = capacity_for(want, most);
  scores_.resize(queries * capacity_);
  slots_.resize(queries * capacity_);
  contenders_.resize(capacity_);
  sizes_.assign(queries, 0);
  bars_.assign(lanes, kInfinity);
  std::fill_n(bars_.begin(), queries, -kInfinity);
}

bool Shortlists::ahead(const Contender& a, const Contender& b) const noexcept {
  if (a.canonical != b.canonical) return a.canonical > b.canonical;
  const auto key = [&](uint32_t slot) { return state_->chunk_of(slot).keys[State::row_of(slot)]; };
  return key(a.slot) < key(b.slot);
}

void Shortlists::drop_hopeless(size_t query) noexcept {
  float* const scores = scores_.data() + query * capacity_;
  uint32_t* const slots = slots_.data() + query * capacity_;
  uint32_t& size = sizes_[query];
  if (size <= want_) return;
  // `want` rows have a canonical score of at least the `want`-th - bound; who is below that - bound is behind them all.
  const float bar = kth_largest(scores, size, want_) - 2 * bound_;
  bars_[query] = std::max(bars_[query], bar);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < size; ++i) {
    scores[kept] = scores[i];
    slots[kept] = slots[i];
    kept += scores[i] >= bar ? 1u : 0u;
  }
  size = kept;
}

size_t Shortlists::choose(size_t query, bool all, std::vector<Contender>* workspace) noexcept {
  std::vector<Contender>& contenders = *workspace;
  float* const scores = scores_.data() + query * capacity_;
  uint32_t* const slots = slots_.data() + query * capacity_;
  uint32_t& size = sizes_[query];
  if (size <= want_ && !all) return 0;
  // A row that is ahead of the `want`-th by more than twice the bound is in, whoever else is.
  const float wanted = all || size <= want_ ? kInfinity : kth_largest(scores, size, want_);
  const float certain = wanted + 2 * bound_;
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
  for (size_t i = 0; i < open; ++i) {
    contenders[i].canonical = (*canonical_)(query, contenders[i].slot);
  }
  const size_t places = std::min<size_t>(want_ - kept, open);
  if (places < open) {
    std::nth_element(contenders.begin(), contenders.begin() + static_cast<ptrdiff_t>(places),
                     contenders.begin() + static_cast<ptrdiff_t>(open),
                     [&](const Contender& a, const Contender& b) { return ahead(a, b); });
  }
  float last = kInfinity;
  for (size_t i = 0; i < places; ++i) {
    last = std::min(last, contenders[i].canonical);
    scores[kept] = all ? contenders[i].canonical : contenders[i].scanned;
    slots[kept++] = contenders[i].slot;
  }
  size = kept;
  // The `want`-th canonical score is a contender's or, of the certain ones, at least wanted + bound.
  if (size == want_ && places > 0) bars_[query] = std::max(bars_[query], std::min(last, wanted + bound_) - bound_);
  return open;
}

void Shortlists::prune(size_t query, std::vector<Contender>* contenders) noexcept {
  drop_hopeless(query);
  // Many ties, or as good as: their canonical scores and keys decide.
  if (sizes_[query] > capacity_ - kRoom / 2) {
    const size_t scored = choose(query, false, contenders);
    if (contenders == &contenders_) pruning_cost_ += scored;
  }
}

void Shortlists::tighten(float bound) noexcept {
  for (size_t query = 0; query < sizes_.size(); ++query) choose(query, true, &contenders_);
  bound_ = bound;
}

void Shortlists::share_bars(std::atomic<float>* floors) noexcept {
  // Rounded down, so that no bar is raised by rounding.
  const auto below = [](float x) { return std::nextafter(x, -kInfinity); };
  for (size_t query = 0; query < sizes_.size(); ++query) {
    const float floor = below(bars_[query] + bound_);
    float shared = floors[query].load(std::memory_order_relaxed);
    while (shared < floor && !floors[query].compare_exchange_weak(shared, floor, std::memory_order_relaxed)) {
    }
    if (shared > floor) bars_[query] = std::max(bars_[query], below(shared - bound_));
  }
}

void Shortlists::take_from(const Shortlists& other, size_t query, Shortlists* workspace) noexcept {
  const size_t from = query * other.capacity_;
  for (uint32_t i = 0; i < other.sizes_[query]; ++i) {
    const float score = other.scores_[from + i];
    if (score < bars_[query]) continue;
    const size_t at = query * capacity_ + sizes_[query];
    scores_[at] = score;
    slots_[at] = other.slots_[from + i];
    if (++sizes_[query] == capacity_) prune(query, &workspace->contenders_);
  }
}

size_t Shortlists::finish(size_t query, Shortlists* workspace, const uint32_t** slots) noexcept {
  drop_hopeless(query);
  choose(query, false, &workspace->contenders_);
  *slots = slots_.data() + query * capacity_;
  return sizes_[query];
}

}  // namespace finch
