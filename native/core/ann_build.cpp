// Making graphs: usearch's HNSW does the insertion, over vectors that stay where they are.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ann.hpp"
#include "kernels/kernels.hpp"

#if !defined(USEARCH_USE_NUMKONG)
#define USEARCH_USE_NUMKONG 0
#endif
#if !defined(USEARCH_USE_OPENMP)
#define USEARCH_USE_OPENMP 0
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#endif
#include <usearch/index.hpp>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace finch {
namespace {

namespace usearch = unum::usearch;

// usearch allocates inside noexcept functions, so an allocator that throws would end the process. It also overlooks
// some allocations that fail: this flag does not, and a graph made under it is thrown away.
thread_local bool allocation_failed = false;

template <typename T>
struct Allocator {
  using value_type = T;
  Allocator() noexcept = default;
  template <typename U>
  Allocator(const Allocator<U>&) noexcept {}

  T* allocate(size_t count) noexcept {
    void* p = nullptr;
    if (count <= SIZE_MAX / sizeof(T)) p = ::operator new(count * sizeof(T), kAlignment, std::nothrow);
    if (p == nullptr) allocation_failed = true;
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) noexcept { ::operator delete(p, kAlignment); }

  friend bool operator==(const Allocator&, const Allocator&) noexcept { return true; }

 private:
  static constexpr std::align_val_t kAlignment{std::max<size_t>(alignof(T), __STDCPP_DEFAULT_NEW_ALIGNMENT__)};
};

using Hnsw = usearch::index_gt<float, uint64_t, uint32_t, Allocator<char>, Allocator<char>>;

struct Metric {
  const std::vector<const float*>& vectors;
  size_t dimension;
  float (*dot)(const float*, const float*, size_t);

  float between(const float* a, const float* b) const noexcept { return 1.0f - dot(a, b, dimension); }
  template <typename Entry>
  float operator()(const float* value, const Entry& entry) const noexcept {
    return between(value, vectors[get_slot(entry)]);
  }
  template <typename Entry>
  float operator()(const Entry& a, const Entry& b) const noexcept {
    return between(vectors[get_slot(a)], vectors[get_slot(b)]);
  }
};

// A node as usearch writes and reads it: key, level, then for each level a count and room for the level's connectivity.
constexpr size_t kNodeHead = sizeof(uint64_t) + sizeof(int16_t);

}  // namespace

struct AnnBuilder::Graph {
  Hnsw hnsw;

  static void check(bool done) {
    if (!done || allocation_failed) throw std::bad_alloc();
  }

  static Hnsw make(const AnnConfig& config) {
    allocation_failed = false;
    return Hnsw(usearch::index_config_t(config.connectivity, 2 * config.connectivity));
  }

  explicit Graph(const AnnConfig& config) : hnsw(make(config)) {}

  void reserve(size_t members) {
    allocation_failed = false;
    check(hnsw.reserve(usearch::index_limits_t(members, 1)));
  }

  // The packed links, handed to usearch in the form of its own stream.
  void load(const AnnLinks& links, uint32_t connectivity) {
    allocation_failed = false;
    const size_t base_words = 2 * size_t{connectivity} + 1;
    const size_t upper_words = size_t{connectivity} + 1;
    uint32_t part = 0;  // the header, all levels, then node after node
    const auto read = [&](void* to, size_t bytes) noexcept {
      if (to == nullptr || allocation_failed) return false;
      char* target = static_cast<char*>(to);
      if (part == 0) {
        usearch::index_serialized_header_t header;
        header.size = links.size;
        header.connectivity = connectivity;
        header.connectivity_base = 2 * connectivity;
        header.max_level = links.top_level;
        header.entry_slot = links.entry;
        std::memcpy(target, &header, sizeof(header));
      } else if (part == 1) {
        for (uint32_t e = 0; e < links.size; ++e) {
          const int16_t level = links.levels[e];
          std::memcpy(target + e * sizeof(level), &level, sizeof(level));
        }
      } else {
        const uint32_t e = part - 2;
        const uint64_t key = e;
        const int16_t level = links.levels[e];
        std::memcpy(target, &key, sizeof(key));
        std::memcpy(target + sizeof(key), &level, sizeof(level));
        std::memcpy(target + kNodeHead, links.base.data() + e * base_words, base_words * sizeof(uint32_t));
        if (level > 0) {
          std::memcpy(target + kNodeHead + base_words * sizeof(uint32_t), links.upper.data() + links.upper_start[e],
                      static_cast<size_t>(level) * upper_words * sizeof(uint32_t));
        }
      }
      ++part;
      return bytes > 0;
    };
    auto result = hnsw.load_from_stream(read);
    check(result.error.release() == nullptr);
  }

  AnnLinks pack(uint32_t connectivity) const {
    AnnLinks links;
    links.size = static_cast<uint32_t>(hnsw.size());
    links.levels.resize(links.size);
    const size_t base_words = 2 * size_t{connectivity} + 1;
    const size_t upper_words = size_t{connectivity} + 1;
    uint64_t part = 0;  // the header, level after level, then node after node
    bool laid_out = false;
    bool failed = false;
    const auto write = [&](const void* from, size_t) noexcept {
      const char* source = static_cast<const char*>(from);
      if (part == 0) {
        usearch::index_serialized_header_t header;
        std::memcpy(&header, source, sizeof(header));
        links.entry = static_cast<uint32_t>(header.entry_slot);
        links.top_level = links.size == 0 ? 0 : static_cast<uint32_t>(header.max_level);
      } else if (part <= links.size) {
        int16_t level;
        std::memcpy(&level, source, sizeof(level));
        links.levels[part - 1] = static_cast<uint8_t>(level);
      } else {
        if (!laid_out) {
          try {
            links.lay_out(connectivity);
          } catch (...) {
            failed = true;
            return false;
          }
          laid_out = true;
        }
        const size_t e = static_cast<size_t>(part) - 1 - links.size;
        std::memcpy(links.base.data() + e * base_words, source + kNodeHead, base_words * sizeof(uint32_t));
        if (links.levels[e] > 0) {
          std::memcpy(links.upper.data() + links.upper_start[e], source + kNodeHead + base_words * sizeof(uint32_t),
                      links.levels[e] * upper_words * sizeof(uint32_t));
        }
      }
      ++part;
      return true;
    };
    auto result = hnsw.save_to_stream(write);
    check(result.error.release() == nullptr && !failed);
    return links;
  }
};

AnnBuilder::AnnBuilder(const State& state, const AnnConfig& config, const Ann* base)
    : state_(state),
      ann_(std::make_shared<Ann>(config, state, state.version)),
      graph_(std::make_unique<Graph>(config)) {
  std::vector<std::pair<uint64_t, uint32_t>> rows;
  for (size_t c = 0; c < state.rows.size(); ++c) {
    const RowChunk& chunk = *state.rows.get(c);
    for (size_t row = 0; row < RowChunk::kRows; ++row) {
      if (!chunk.holds(row) || (base != nullptr && chunk.stamps[row] <= base->covers())) continue;
      rows.emplace_back(chunk.keys[row], static_cast<uint32_t>(c * RowChunk::kRows + row));
    }
  }
  std::sort(rows.begin(), rows.end());  // in the order of keys: equal states give equal graphs
  pending_.reserve(rows.size());
  for (const auto& [key, slot] : rows) pending_.push_back(slot);

  Ann& ann = *ann_;
  const size_t old = base == nullptr ? 0 : base->size();
  const size_t total = old + pending_.size();
  ann.stamps_.reserve(total);
  ann.slots_.reserve(total);
  ann.vectors_.reserve(total);
  ann.pinned_ = state.vectors;
  if (old > 0) {
    // Entries still in force point into the new state; vectors that only the old graph knew move into a block of their
    // own.
    size_t stale = 0;
    for (uint32_t e = 0; e < old; ++e) stale += base->slot_in(state, e) == kNoSlot;
    const size_t d = state.dimension;
    if (stale > 0) {
      ann.stale_ = make_piece<float>(stale * d, 0);
    }
    float* next = ann.stale_.get();
    for (uint32_t e = 0; e < old; ++e) {
      const uint32_t slot = base->slot_in(state, e);
      ann.slots_.push_back(slot);
      ann.stamps_.push_back(base->stamps_[e]);
      if (slot != kNoSlot) {
        ann.vectors_.push_back(state.vector(slot));
      } else {
        std::memcpy(next, base->vectors_[e], d * sizeof(float));
        ann.vectors_.push_back(next);
        next += d;
      }
    }
    graph_->load(base->links(), config.connectivity);
  }
  if (total > 0) graph_->reserve(total);
}

AnnBuilder::~AnnBuilder() = default;

void AnnBuilder::add_reference(uint32_t slot) {
  ann_->slots_.push_back(slot);
  ann_->stamps_.push_back(state_.chunk_of(slot).stamps[State::row_of(slot)]);
  ann_->vectors_.push_back(state_.vector(slot));
}

bool AnnBuilder::step(size_t rows) {
  const Metric metric{ann_->vectors_, state_.dimension, kernels().dot};
  usearch::index_update_config_t config;
  config.expansion = ann_->config().expansion_add;
  allocation_failed = false;
  for (; rows > 0 && next_ < pending_.size(); --rows, ++next_) {
    add_reference(pending_[next_]);
    const size_t e = ann_->vectors_.size() - 1;
    auto result = graph_->hnsw.add(e, ann_->vectors_[e], metric, config);
    Graph::check(result.error.release() == nullptr);
  }
  return next_ == pending_.size();
}

std::shared_ptr<const Ann> AnnBuilder::finish() {
  ann_->links_ = graph_->pack(ann_->config().connectivity);
  graph_.reset();
  ann_->encode();
  return std::move(ann_);
}

std::shared_ptr<const Ann> AnnBuilder::restore(const State& state, const AnnConfig& config, AnnLinks links,
                                               std::vector<uint32_t> slots, Piece<float> stale, uint64_t covers) {
  auto ann = std::make_shared<Ann>(config, state, covers);
  ann->links_ = std::move(links);
  ann->slots_ = std::move(slots);
  ann->stale_ = std::move(stale);
  ann->pinned_ = state.vectors;
  ann->stamps_.reserve(ann->slots_.size());
  ann->vectors_.reserve(ann->slots_.size());
  const float* next = ann->stale_.get();
  for (const uint32_t slot : ann->slots_) {
    ann->stamps_.push_back(slot == kNoSlot ? 0 : state.chunk_of(slot).stamps[State::row_of(slot)]);
    ann->vectors_.push_back(slot == kNoSlot ? next : state.vector(slot));
    if (slot == kNoSlot) next += state.dimension;
  }
  // Opening a mapped file must not read its vectors.
  if (state.mapped_bytes == 0) ann->encode();
  return ann;
}

}  // namespace finch
