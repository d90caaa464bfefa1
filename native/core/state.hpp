// One state of an index: rows in slots, found by id and by key. Immutable once published (finch_snapshot); a writer
// copies it (cheap: see cow.hpp), edits the copy under an edit number of its own, and publishes or drops it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "codes.hpp"
#include "cow.hpp"
#include "pieces.hpp"
#include "slot_map.hpp"
#include "toolfinch.h"

namespace finch {

class Ann;

constexpr uint64_t kLastKey = (uint64_t{1} << 53) - 1;  // what a JavaScript number holds exactly
constexpr uint64_t kMostRows = uint64_t{1} << 31;
constexpr float kNeutralPrior = 0.5f;

// What belongs to a row besides its vector, for kRows slots. Ids lie packed in `ids`.
struct RowChunk {
  static constexpr size_t kShift = 8;
  static constexpr size_t kRows = size_t{1} << kShift;
  static constexpr size_t kWords = kRows / 64;

  RowChunk() = default;
  RowChunk(const RowChunk& other);  // packs the ids anew when removals left gaps

  std::string_view id(size_t row) const noexcept { return {ids.data() + id_offset[row], id_size[row]}; }
  bool holds(size_t row) const noexcept { return (present[row / 64] >> (row % 64)) & 1u; }

  uint64_t edit = 0;
  uint64_t present[kWords] = {};
  uint64_t keys[kRows] = {};
  uint64_t stamps[kRows] = {};  // the version that wrote the vector
  uint64_t hashes[kRows] = {};  // hash_id
  float priors[kRows] = {};
  uint32_t id_offset[kRows] = {};
  uint16_t id_size[kRows] = {};
  std::vector<char> ids;
  size_t dead_bytes = 0;
};

// Vectors of up to 2^chunk_shift slots, row after row without padding. A chunk at the end of the index starts small.
// A chunk either owns its memory or borrows it, read-only, from a mapped file; an edit copies a borrowed one.
struct VectorChunk {
  // `together`: bytes of all vectors of the index (allocate_piece).
  static std::shared_ptr<VectorChunk> make(size_t rows, uint32_t dimension, size_t together);
  static std::shared_ptr<VectorChunk> borrow(const float* data, size_t rows, std::shared_ptr<const void> owner);

  bool borrowed() const noexcept { return own == nullptr; }

  uint64_t edit = 0;
  size_t rows = 0;  // capacity
  size_t used = 0;  // rows written so far
  const float* data = nullptr;
  Piece<float> own;                   // what `data` points to, null when borrowed
  std::shared_ptr<const void> owner;  // keeps borrowed memory alive
};

// A row written since the ANN graph was made; stale once the slot's stamp is another.
struct Fresh {
  uint64_t stamp;
  uint32_t slot;
};

struct State {
  State(uint32_t dimension, finch_storage storage, uint64_t index_id);

  const RowChunk& chunk_of(uint32_t slot) const noexcept { return *rows.get(slot >> RowChunk::kShift); }
  static size_t row_of(uint32_t slot) noexcept { return slot & (RowChunk::kRows - 1); }
  const float* vector(uint32_t slot) const noexcept {
    const VectorChunk* chunk = vectors.get(slot >> chunk_shift);
    return chunk->data + (slot & ((size_t{1} << chunk_shift) - 1)) * dimension;
  }
  bool holds(uint32_t slot, uint64_t stamp) const noexcept {
    if (slot >= slots) return false;
    const RowChunk& chunk = chunk_of(slot);
    return chunk.holds(row_of(slot)) && chunk.stamps[row_of(slot)] == stamp;
  }
  uint32_t find_id(std::string_view id, uint64_t hash) const noexcept;
  uint32_t find_key(uint64_t key) const noexcept;

  // Editing. `edit` is the change's number; `planned_slots` how many slots there will be at its end, so that chunks are
  // made large enough at once. All may throw std::bad_alloc, after which the copy is only good for dropping.
  void resize(uint64_t slots, uint64_t edit);
  RowChunk& edit_rows(uint32_t slot, uint64_t edit) { return rows.edit(slot >> RowChunk::kShift, edit); }
  float* edit_vector(uint32_t slot, uint64_t edit, uint64_t planned_slots);
  // Encodes the vector written to `slot`, where the storage is not float32.
  void write_code(uint32_t slot, const float* vector, uint64_t edit);
  // Fills an empty slot with a new row (its vector is written apart).
  void place(uint32_t slot, uint64_t key, std::string_view id, uint64_t hash, float prior, uint64_t edit);
  void clear(uint32_t slot, uint64_t edit);
  // Puts read-only memory of `owner` in place of chunk `index`, made by resize() and not written yet.
  void borrow_vectors(size_t index, const float* data, size_t count, std::shared_ptr<const void> owner, uint64_t edit);
  // Without rows there is no reason to keep chunks.
  void clear_all(uint64_t edit);

  uint32_t dimension;
  uint32_t chunk_shift;
  finch_storage storage;
  size_t stride;      // code_stride
  uint64_t index_id;  // unique in the process: an allow set of one index is of no use with another
  uint64_t version = 1;
  uint64_t next_key = 1;
  uint64_t count = 0;
  uint64_t slots = 0;
  uint64_t vector_bytes = 0;  // in memory of our own
  uint64_t mapped_bytes = 0;  // borrowed from a mapped file
  Cow<RowChunk> rows;
  uint64_t code_bytes = 0;  // of `codes`, in memory of our own
  Cow<VectorChunk> vectors;
  Cow<CodeChunk> codes;  // empty with float32
  SlotMap by_id;
  SlotMap by_key;
  std::shared_ptr<const Ann> ann;
  std::shared_ptr<const std::vector<Fresh>> fresh;  // may be null; without a graph always null
};

}  // namespace finch

struct finch_snapshot {
  explicit finch_snapshot(finch::State s) : state(std::move(s)) {}
  std::atomic<uint32_t> references{1};
  finch::State state;
};

namespace finch {

// Holds one reference.
class SnapshotRef {
 public:
  explicit SnapshotRef(finch_snapshot* adopted) noexcept : snapshot_(adopted) {}
  SnapshotRef(SnapshotRef&& other) noexcept : snapshot_(other.release()) {}
  SnapshotRef& operator=(SnapshotRef&& other) noexcept {
    std::swap(snapshot_, other.snapshot_);
    return *this;
  }
  ~SnapshotRef() { finch_snapshot_release(snapshot_); }

  finch_snapshot* get() const noexcept { return snapshot_; }
  const State& state() const noexcept { return snapshot_->state; }
  finch_snapshot* release() noexcept { return std::exchange(snapshot_, nullptr); }

 private:
  finch_snapshot* snapshot_;
};

}  // namespace finch
