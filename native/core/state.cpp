#include "state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hash.hpp"
#include "snapshot.hpp"

namespace finch {
namespace {

// Small enough to copy for one changed row, large enough that scans run over long stretches.
constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kMostChunkRows = 1024;

uint32_t chunk_shift_of(uint32_t dimension) {
  const size_t rows = std::clamp<size_t>(kChunkBytes / (dimension * sizeof(float)), 1, kMostChunkRows);
  return static_cast<uint32_t>(std::bit_width(rows)) - 1;
}

}  // namespace

RowChunk::RowChunk(const RowChunk& other) {
  std::copy_n(other.present, kWords, present);
  std::copy_n(other.keys, kRows, keys);
  std::copy_n(other.stamps, kRows, stamps);
  std::copy_n(other.hashes, kRows, hashes);
  std::copy_n(other.priors, kRows, priors);
  std::copy_n(other.id_offset, kRows, id_offset);
  std::copy_n(other.id_size, kRows, id_size);
  if (other.dead_bytes * 2 <= other.ids.size()) {
    ids = other.ids;
    dead_bytes = other.dead_bytes;
    return;
  }
  ids.reserve(other.ids.size() - other.dead_bytes);
  for (size_t row = 0; row < kRows; ++row) {
    if (!other.holds(row)) continue;
    const std::string_view text = other.id(row);
    id_offset[row] = static_cast<uint32_t>(ids.size());
    ids.insert(ids.end(), text.begin(), text.end());
  }
}

std::shared_ptr<VectorChunk> VectorChunk::make(size_t rows, uint32_t dimension, size_t together) {
  auto chunk = std::make_shared<VectorChunk>();
  chunk->own = make_piece<float>(rows * dimension, together);
  chunk->data = chunk->own.get();
  chunk->rows = rows;
  return chunk;
}

std::shared_ptr<VectorChunk> VectorChunk::borrow(const float* data, size_t rows, std::shared_ptr<const void> owner) {
  auto chunk = std::make_shared<VectorChunk>();
  chunk->data = data;
  chunk->rows = rows;
  chunk->used = rows;
  chunk->owner = std::move(owner);
  return chunk;
}

State::State(uint32_t d, finch_storage s, uint64_t id)
    : dimension(d), chunk_shift(chunk_shift_of(d)), storage(s), stride(code_stride(s, d)), index_id(id) {}

uint32_t State::find_id(std::string_view id, uint64_t hash) const noexcept {
  return by_id.find(hash, [&](uint32_t slot) {
    const RowChunk& chunk = chunk_of(slot);
    return chunk.hashes[row_of(slot)] == hash && chunk.id(row_of(slot)) == id;
  });
}

uint32_t State::find_key(uint64_t key) const noexcept {
  return by_key.find(hash_key(key), [&](uint32_t slot) { return chunk_of(slot).keys[row_of(slot)] == key; });
}

void State::resize(uint64_t wanted, uint64_t edit) {
  const size_t chunk_rows = size_t{1} << chunk_shift;
  rows.resize((wanted + RowChunk::kRows - 1) >> RowChunk::kShift, edit);
  vectors.resize((wanted + chunk_rows - 1) >> chunk_shift, edit);
  if (stride > 0) codes.resize((wanted + CodeChunk::kRows - 1) >> CodeChunk::kShift, edit);
  slots = wanted;
}

float* State::edit_vector(uint32_t slot, uint64_t edit, uint64_t planned_slots) {
  const size_t chunk_rows = size_t{1} << chunk_shift;
  const size_t index = slot >> chunk_shift;
  const size_t row = slot & (chunk_rows - 1);
  const size_t planned = std::min<uint64_t>(chunk_rows, planned_slots - (uint64_t{index} << chunk_shift));
  const size_t capacity = std::bit_ceil(planned);  // at most chunk_rows, a power of two itself
  const size_t row_bytes = size_t{dimension} * sizeof(float);
  const auto make = [&](const VectorChunk* old) {
    const size_t most = old == nullptr ? capacity : std::max(capacity, old->rows);
    // The last chunk, while it is not whole, has a size of its own: no slab is worth it.
    const size_t together = most == chunk_rows ? static_cast<size_t>(planned_slots) * row_bytes : 0;
    auto chunk = VectorChunk::make(most, dimension, together);
    if (old != nullptr) {
      std::memcpy(chunk->own.get(), old->data, old->used * row_bytes);
      chunk->used = old->used;
      (old->borrowed() ? mapped_bytes : vector_bytes) -= old->rows * row_bytes;
    }
    vector_bytes += chunk->rows * row_bytes;
    return chunk;
  };
  VectorChunk* chunk = &vectors.edit(
      index, edit, [&](const VectorChunk& old) { return make(&old); }, [&] { return make(nullptr); });
  if (row >= chunk->rows) {
    auto bigger = make(chunk);
    bigger->edit = edit;
    chunk = bigger.get();
    vectors.replace(index, std::move(bigger));
  }
  chunk->used = std::max(chunk->used, row + 1);
  return chunk->own.get() + row * dimension;
}

void State::borrow_vectors(size_t index, const float* data, size_t count, std::shared_ptr<const void> owner,
                           uint64_t edit) {
  vectors.edit(
      index, edit, [](const VectorChunk&) { return std::make_shared<VectorChunk>(); },
      [&] { return VectorChunk::borrow(data, count, std::move(owner)); });
  mapped_bytes += count * dimension * sizeof(float);
}

void State::write_code(uint32_t slot, const float* vector, uint64_t edit) {
  if (stride == 0) return;
  CodeChunk& chunk = codes.edit(
      slot >> CodeChunk::kShift, edit,
      [&](const CodeChunk& old) {
        auto copied = CodeChunk::copy(old, stride, slots * stride);
        if (old.own == nullptr) {
          mapped_bytes -= CodeChunk::kRows * stride;
          code_bytes += CodeChunk::kRows * stride;
        }
        return copied;
      },
      [&] {
        auto made = CodeChunk::make(storage, stride, slots * stride);
        code_bytes += CodeChunk::kRows * stride;
        return made;
      });
  const size_t row = slot & (CodeChunk::kRows - 1);
  chunk.scales[row] = encode_vector(storage, vector, dimension, chunk.own.get() + row * stride);
}

void State::place(uint32_t slot, uint64_t key, std::string_view id, uint64_t hash, float prior, uint64_t edit) {
  RowChunk& chunk = edit_rows(slot, edit);
  const size_t row = row_of(slot);
  chunk.id_offset[row] = static_cast<uint32_t>(chunk.ids.size());
  chunk.id_size[row] = static_cast<uint16_t>(id.size());
  chunk.ids.insert(chunk.ids.end(), id.begin(), id.end());
  chunk.keys[row] = key;
  chunk.hashes[row] = hash;
  chunk.priors[row] = prior;
  chunk.stamps[row] = version;
  chunk.present[row / 64] |= uint64_t{1} << (row % 64);
  by_id.insert(hash, slot, edit);
  by_key.insert(hash_key(key), slot, edit);
  ++count;
}

void State::clear(uint32_t slot, uint64_t edit) {
  RowChunk& chunk = edit_rows(slot, edit);
  const size_t row = row_of(slot);
  by_id.erase(chunk.hashes[row], slot, edit);
  by_key.erase(hash_key(chunk.keys[row]), slot, edit);
  chunk.present[row / 64] &= ~(uint64_t{1} << (row % 64));
  chunk.dead_bytes += chunk.id_size[row];
  chunk.id_size[row] = 0;
  chunk.keys[row] = FINCH_NO_KEY;
  --count;
}

void State::clear_all(uint64_t edit) {
  rows = {};
  vectors = {};
  codes = {};
  by_id = {};
  by_key = {};
  count = 0;
  vector_bytes = 0;
  mapped_bytes = 0;
  code_bytes = 0;
  resize(0, edit);
}

}  // namespace finch
