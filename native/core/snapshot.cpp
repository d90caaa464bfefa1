#include "snapshot.hpp"

#include <algorithm>
#include <cstring>

#include "error.hpp"
#include "state.hpp"

using finch::fail;
using finch::RowChunk;
using finch::State;

namespace finch {

bool find_row(const finch_snapshot& snapshot, uint64_t key, Row* out) noexcept {
  const State& state = snapshot.state;
  const uint32_t slot = state.find_key(key);
  if (slot == kNoSlot) return false;
  const RowChunk& chunk = state.chunk_of(slot);
  const size_t row = State::row_of(slot);
  *out = {key, state.vector(slot), chunk.id(row), chunk.hashes[row], chunk.priors[row]};
  return true;
}

uint32_t snapshot_dimension(const finch_snapshot& snapshot) noexcept { return snapshot.state.dimension; }

}  // namespace finch

extern "C" {

void finch_snapshot_retain(finch_snapshot* snapshot) {
  if (snapshot != nullptr) snapshot->references.fetch_add(1, std::memory_order_relaxed);
}

void finch_snapshot_release(finch_snapshot* snapshot) {
  if (snapshot != nullptr && snapshot->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete snapshot;
}

uint64_t finch_snapshot_version(const finch_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->state.version;
}

uint64_t finch_snapshot_count(const finch_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->state.count;
}

finch_status finch_snapshot_keys(const finch_snapshot* snapshot, uint64_t* keys, size_t capacity, size_t* count) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr || count == nullptr)
      return fail(FINCH_INVALID_ARGUMENT, "snapshot and count must not be NULL.");
    const State& state = snapshot->state;
    if (keys != nullptr && capacity > 0) {
      std::vector<uint64_t> all;
      all.reserve(state.count);
      for (size_t c = 0; c < state.rows.size(); ++c) {
        const RowChunk* chunk = state.rows.get(c);
        for (size_t row = 0; chunk != nullptr && row < RowChunk::kRows; ++row) {
          if (chunk->holds(row)) all.push_back(chunk->keys[row]);
        }
      }
      // Slots are in insertion order until one is reused.
      if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
      std::copy_n(all.begin(), std::min(capacity, all.size()), keys);
    } else if (capacity > 0) {
      return fail(FINCH_INVALID_ARGUMENT, "keys is NULL but capacity is %zu.", capacity);
    }
    *count = state.count;
    return FINCH_OK;
  });
}

finch_status finch_snapshot_find(const finch_snapshot* snapshot, const finch_string* ids, size_t count,
                                 uint64_t* keys) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr) return fail(FINCH_INVALID_ARGUMENT, "snapshot must not be NULL.");
    if (count > 0 && (ids == nullptr || keys == nullptr)) {
      return fail(FINCH_INVALID_ARGUMENT, "ids and keys must not be NULL when count is %zu.", count);
    }
    for (size_t i = 0; i < count; ++i) {
      if (ids[i].data == nullptr && ids[i].size > 0) {
        return fail(FINCH_INVALID_ARGUMENT, "ids[%zu] has no data but size %zu.", i, ids[i].size);
      }
    }
    const State& state = snapshot->state;
    for (size_t i = 0; i < count; ++i) {
      keys[i] = FINCH_NO_KEY;
      if (ids[i].size == 0 || ids[i].size > FINCH_MAX_ID_BYTES) continue;
      const std::string_view id(ids[i].data, ids[i].size);
      const uint32_t slot = state.find_id(id, finch::hash_id(id));
      if (slot != finch::kNoSlot) keys[i] = state.chunk_of(slot).keys[State::row_of(slot)];
    }
    return FINCH_OK;
  });
}

finch_status finch_snapshot_rows(const finch_snapshot* snapshot, const uint64_t* keys, size_t count, finch_string* ids,
                                 float* vectors, float* priors) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr) return fail(FINCH_INVALID_ARGUMENT, "snapshot must not be NULL.");
    if (keys == nullptr && count > 0) return fail(FINCH_INVALID_ARGUMENT, "keys is NULL but count is %zu.", count);
    const State& state = snapshot->state;
    for (size_t i = 0; i < count; ++i) {
      if (state.find_key(keys[i]) == finch::kNoSlot) {
        return fail(FINCH_UNKNOWN_ID, "keys[%zu] is %llu, which is not in this snapshot.", i,
                    static_cast<unsigned long long>(keys[i]));
      }
    }
    const size_t row_bytes = state.dimension * sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      finch::Row row;
      finch::find_row(*snapshot, keys[i], &row);
      if (ids != nullptr) ids[i] = {row.id.data(), row.id.size()};
      if (vectors != nullptr) std::memcpy(reinterpret_cast<char*>(vectors) + i * row_bytes, row.vector, row_bytes);
      if (priors != nullptr) priors[i] = row.prior;
    }
    return FINCH_OK;
  });
}

}  // extern "C"
