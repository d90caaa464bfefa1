// Approximate search: an immutable HNSW graph (Malkov and Yashunin) over the rows of one state.
//
// usearch builds it; what is kept is the links alone, packed, so that searching takes no locks, needs no reserved
// thread contexts and cannot fail halfway, however many threads search. A snapshot names the graph it is searched with;
// rows written since are listed in State::fresh and scanned exactly; rows removed or replaced since are recognised by
// their stamps.
//
// The walk reads int8 codes of the entries, a quarter of the memory traffic that float32 vectors would be, and what it
// finds is scored again from the vectors.
//
// Memory: per entry 4 (2M + 1) bytes of base links, about 4 (M + 1) / (M - 1) bytes of upper links, 24 bytes of
// references (M = 16: about 160 bytes) and a code (the dimension, in whole 64 bytes, and 4). Vectors are shared with
// the state that the graph was made from; as later changes copy chunks, up to one more copy of the vectors is held
// until the next merge.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "huge_pages.hpp"
#include "state.hpp"
#include "topk.hpp"

namespace finch {

struct AnnConfig {
  uint32_t connectivity = 16;      // M; 2M in the base level
  uint32_t expansion_add = 128;    // efConstruction
  uint32_t expansion_search = 96;  // ef

  static constexpr uint32_t kMostConnectivity = 128;
  static constexpr uint32_t kMostExpansion = 65536;
};

// The links: entry e's neighbours at level 0 are base[e (2M + 1) + 1 ...], their number base[e (2M + 1)]; at level l >
// 0 the same with stride M + 1 from upper[upper_start[e] + (l - 1) (M + 1)].
struct AnnLinks {
  uint32_t size = 0;
  uint32_t entry = 0;
  uint32_t top_level = 0;
  std::vector<uint8_t> levels;
  HugeVector<uint32_t> base;
  std::vector<uint64_t> upper_start;
  std::vector<uint32_t> upper;

  // From levels: upper_start and room for the links.
  void lay_out(uint32_t connectivity);
  // Whether every link leads to an entry of at least its level: what a file must prove.
  bool sound(uint32_t connectivity) const noexcept;
  uint64_t bytes() const noexcept;
};

class Ann {
 public:
  static constexpr uint32_t kMostLevels = 32;

  Ann(const AnnConfig& config, const State& state, uint64_t covers);
  ~Ann();
  Ann(const Ann&) = delete;
  Ann& operator=(const Ann&) = delete;

  const AnnConfig& config() const noexcept { return config_; }
  const AnnLinks& links() const noexcept { return links_; }
  uint32_t size() const noexcept { return links_.size; }
  uint64_t bytes() const noexcept;
  // Rows whose stamp is greater are not in the graph.
  uint64_t covers() const noexcept { return covers_; }
  // The row that entry e stands for, kNoSlot when it is not in `state` (any more).
  uint32_t slot_in(const State& state, uint32_t e) const noexcept {
    return state.holds(slots_[e], stamps_[e]) ? slots_[e] : kNoSlot;
  }
  const float* vector(uint32_t e) const noexcept { return vectors_[e]; }

  // Finds the `expansion` best entries that are in `state` and in `allow` (bits by slot, may be NULL) by their codes,
  // and offers `top` the `rescored` best of those by their vectors. Returns how many it offered. May throw
  // std::bad_alloc.
  size_t search(const float* query, size_t expansion, size_t rescored, const State& state, const uint64_t* allow,
                TopK* top) const;
  // Makes the codes, which the first search would do otherwise. May throw std::bad_alloc.
  void encode() const;

 private:
  friend class AnnBuilder;
  class Walk;
  struct Scratch;

  // One after another, code_stride apart, and a scale each.
  struct Codes {
    size_t stride = 0;
    HugeVector<uint8_t> data;
    std::vector<float> scales;
  };

  std::unique_ptr<Scratch> borrow() const;
  void give_back(std::unique_ptr<Scratch> scratch) const noexcept;

  const AnnConfig config_;
  const uint64_t covers_;
  AnnLinks links_;
  std::vector<uint64_t> stamps_;
  std::vector<uint32_t> slots_;
  std::vector<const float*> vectors_;
  Cow<VectorChunk> pinned_;  // what vectors_ points into, and
  Piece<float> stale_;       // copies of vectors that no row has any more

  uint32_t dimension_ = 0;
  mutable std::once_flag encoded_;
  mutable Codes codes_;

  mutable std::mutex scratch_mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> scratch_;  // one per search at the same time
};

// Makes a graph step by step, on one thread at a time. All may throw std::bad_alloc; then drop the builder.
class AnnBuilder {
 public:
  // Over the rows of `state`: from nothing or, with `base`, from that graph plus what it does not cover.
  AnnBuilder(const State& state, const AnnConfig& config, const Ann* base);
  ~AnnBuilder();

  // Adds up to `rows` rows; true when all are in.
  bool step(size_t rows);
  std::shared_ptr<const Ann> finish();

  // From a file: links and, for each entry, its slot in `state` or kNoSlot, when its vector is the next of `stale`.
  static std::shared_ptr<const Ann> restore(const State& state, const AnnConfig& config, AnnLinks links,
                                            std::vector<uint32_t> slots, Piece<float> stale, uint64_t covers);

 private:
  struct Graph;

  void add_reference(uint32_t slot);

  const State state_;
  std::shared_ptr<Ann> ann_;
  std::unique_ptr<Graph> graph_;
  std::vector<uint32_t> pending_;  // slots by key
  size_t next_ = 0;
};

}  // namespace finch
