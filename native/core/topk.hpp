// The k best of a stream of (score, key), whatever its order: higher score first, then lower key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace finch {

struct Hit {
  float score;
  uint64_t key;
};

inline bool better(const Hit& a, const Hit& b) noexcept {
  return a.score != b.score ? a.score > b.score : a.key < b.key;
}

class TopK {
 public:
  // `most` bounds how many hits can come at all. May throw std::bad_alloc; nothing else here does.
  void reset(size_t k, size_t most) {
    k_ = std::min(k, most);
    heap_.reserve(k_);
    clear();
  }

  void push(float score, uint64_t key) noexcept {
    if (score < bar_ || k_ == 0) return;
    const Hit hit{score, key};
    if (heap_.size() < k_) {
      heap_.push_back(hit);
      std::push_heap(heap_.begin(), heap_.end(), better);
    } else {
      if (!better(hit, heap_.front())) return;
      replace_worst(hit);
    }
    if (heap_.size() == k_) bar_ = heap_.front().score;
  }

  size_t size() const noexcept { return heap_.size(); }
  // No score below it can enter.
  float bar() const noexcept { return bar_; }
  // Begins anew, for as many.
  void clear() noexcept {
    heap_.clear();
    bar_ = k_ == 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  }

  // Best first. Ends the stream.
  const std::vector<Hit>& sorted() noexcept {
    std::sort_heap(heap_.begin(), heap_.end(), better);
    return heap_;
  }

 private:
  void replace_worst(const Hit& hit) noexcept {
    const size_t n = heap_.size();
    size_t hole = 0;
    for (size_t child = 1; child < n; child = 2 * hole + 1) {
      if (child + 1 < n && better(heap_[child], heap_[child + 1])) ++child;
      if (better(heap_[child], hit)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = hit;
  }

  size_t k_ = 0;
  float bar_ = 0;          // below it nothing can enter
  std::vector<Hit> heap_;  // the worst in front
};

}  // namespace finch
