#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ann.hpp"
#include "error.hpp"
#include "hash.hpp"
#include "sized.hpp"
#include "snapshot.hpp"
#include "unit.hpp"

using finch::fail;
using finch::kNoSlot;
using finch::RowChunk;
using finch::SnapshotRef;
using finch::State;

finch_index::finch_index(State state) : current(new finch_snapshot(std::move(state))) {}

finch_index::~finch_index() { finch_snapshot_release(current); }

SnapshotRef finch_index::snapshot() const noexcept {
  std::lock_guard lock(current_mutex);
  finch_snapshot_retain(current);
  return SnapshotRef(current);
}

void finch_index::publish(SnapshotRef next) noexcept {
  finch_snapshot* old;
  {
    std::lock_guard lock(current_mutex);
    old = std::exchange(current, next.release());
  }
  finch_snapshot_release(old);  // outside: it may free much
}

namespace finch {

uint64_t next_index_id() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {

// Ids in messages are cut: 4096 bytes would leave no room for the rest.
#define FINCH_ID "\"%.*s%s\""
#define FINCH_ID_ARGUMENTS(id) static_cast<int>(std::min<size_t>((id).size, 80)), (id).data, (id).size > 80 ? "..." : ""

finch_status check_ids(const finch_index* index, const finch_string* ids, size_t count) {
  if (index == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index must not be NULL.");
  if (ids == nullptr && count > 0) return fail(FINCH_INVALID_ARGUMENT, "ids is NULL but count is %zu.", count);
  for (size_t i = 0; i < count; ++i) {
    if (ids[i].data == nullptr || ids[i].size == 0 || ids[i].size > FINCH_MAX_ID_BYTES) {
      return fail(FINCH_INVALID_ARGUMENT, "ids[%zu] is %zu bytes long; an id has 1 to %u bytes.", i, ids[i].size,
                  FINCH_MAX_ID_BYTES);
    }
  }
  return FINCH_OK;
}

finch_status check_priors(const float* priors, size_t count) {
  for (size_t i = 0; priors != nullptr && i < count; ++i) {
    if (!(priors[i] >= 0.0f && priors[i] <= 1.0f)) {
      return fail(FINCH_INVALID_ARGUMENT, "priors[%zu] is %g; a prior lies in [0, 1].", i,
                  static_cast<double>(priors[i]));
    }
  }
  return FINCH_OK;
}

finch_status write_unit(const float* vectors, size_t i, const finch_string& id, uint32_t dimension, float* out) {
  const char* row = reinterpret_cast<const char*>(vectors) + i * dimension * sizeof(float);
  switch (to_unit(reinterpret_cast<const float*>(row), dimension, out)) {
    case FINCH_OK:
      return FINCH_OK;
    case FINCH_NOT_FINITE:
      return fail(FINCH_NOT_FINITE,
                  "vectors[%zu] (id " FINCH_ID ") holds NaN or infinity; every number must be finite.", i,
                  FINCH_ID_ARGUMENTS(id));
    default:
      return fail(FINCH_ZERO_VECTOR,
                  "vectors[%zu] (id " FINCH_ID ") is all zeros: it has no direction. Leave that row out.", i,
                  FINCH_ID_ARGUMENTS(id));
  }
}

finch_status duplicate(const finch_string& id, size_t i) {
  return fail(FINCH_DUPLICATE_ID, "ids[%zu], " FINCH_ID ", appears twice in this call; give each id once.", i,
              FINCH_ID_ARGUMENTS(id));
}

finch_status unknown(const finch_string& id, size_t i) {
  return fail(FINCH_UNKNOWN_ID, "ids[%zu], " FINCH_ID ", is not in the index.", i, FINCH_ID_ARGUMENTS(id));
}

finch_status upsert(finch_index* index, const finch_string* ids, const float* vectors, size_t count,
                    const float* priors, uint64_t* keys) {
  std::lock_guard lock(index->writer);
  const SnapshotRef before = index->snapshot();
  State state = before.state();
  if (count > kMostRows) return fail(FINCH_INVALID_ARGUMENT, "%zu rows in one call; at most 2^31.", count);
  const uint64_t edit = next_edit();
  const uint64_t version = ++state.version;

  // First the places, so that the last chunk is allocated at its final size; then the vectors.
  std::vector<uint32_t> slots(count);
  std::vector<uint64_t> row_keys(count);
  size_t reused = 0;  // taken from the end of free_slots
  uint64_t end = state.slots;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view id(ids[i].data, ids[i].size);
    const uint64_t hash = hash_id(id);
    uint32_t slot = state.find_id(id, hash);
    if (slot != kNoSlot) {
      RowChunk& chunk = state.edit_rows(slot, edit);
      const size_t row = State::row_of(slot);
      if (chunk.stamps[row] == version) return duplicate(ids[i], i);
      chunk.stamps[row] = version;
      if (priors != nullptr) chunk.priors[row] = priors[i];
      row_keys[i] = chunk.keys[row];
    } else {
      if (reused < index->free_slots.size()) {
        slot = index->free_slots[index->free_slots.size() - 1 - reused++];
      } else {
        if (end >= kMostRows) return fail(FINCH_INVALID_ARGUMENT, "the index is full: it holds at most 2^31 rows.");
        slot = static_cast<uint32_t>(end++);
        if (end > state.slots) state.resize(end, edit);
      }
      if (state.next_key > kLastKey) return fail(FINCH_INVALID_ARGUMENT, "the index has used up its 2^53 keys.");
      row_keys[i] = state.next_key++;
      state.place(slot, row_keys[i], id, hash, priors == nullptr ? kNeutralPrior : priors[i], edit);
    }
    slots[i] = slot;
  }
  for (size_t i = 0; i < count; ++i) {
    float* row = state.edit_vector(slots[i], edit, end);
    if (const finch_status status = write_unit(vectors, i, ids[i], state.dimension, row)) return status;
    state.write_code(slots[i], row, edit);
  }
  if (state.ann != nullptr) {
    auto fresh = std::make_shared<std::vector<Fresh>>();
    fresh->reserve((state.fresh == nullptr ? 0 : state.fresh->size()) + count);
    if (state.fresh != nullptr) fresh->assign(state.fresh->begin(), state.fresh->end());
    for (const uint32_t slot : slots) fresh->push_back({version, slot});
    state.fresh = std::move(fresh);
  }
  SnapshotRef after(new finch_snapshot(std::move(state)));
  index->free_slots.resize(index->free_slots.size() - reused);  // from here on nothing fails
  index->publish(std::move(after));
  if (keys != nullptr) std::copy(row_keys.begin(), row_keys.end(), keys);
  maintain_ann(index);
  return FINCH_OK;
}

finch_status set_priors(finch_index* index, const finch_string* ids, const float* priors, size_t count) {
  std::lock_guard lock(index->writer);
  const SnapshotRef before = index->snapshot();
  State state = before.state();
  const uint64_t edit = next_edit();
  ++state.version;
  std::vector<uint32_t> slots(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view id(ids[i].data, ids[i].size);
    slots[i] = state.find_id(id, hash_id(id));
    if (slots[i] == kNoSlot) return unknown(ids[i], i);
    state.edit_rows(slots[i], edit).priors[State::row_of(slots[i])] = priors[i];
  }
  std::vector<uint32_t> sorted = slots;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    const size_t first = static_cast<size_t>(std::find(slots.begin(), slots.end(), *twice) - slots.begin());
    return duplicate(ids[first], first);
  }
  index->publish(SnapshotRef(new finch_snapshot(std::move(state))));
  return FINCH_OK;
}

finch_status remove(finch_index* index, const finch_string* ids, size_t count) {
  std::lock_guard lock(index->writer);
  const SnapshotRef before = index->snapshot();
  State state = before.state();
  const uint64_t edit = next_edit();
  ++state.version;
  std::vector<uint32_t> freed(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view id(ids[i].data, ids[i].size);
    const uint64_t hash = hash_id(id);
    freed[i] = state.find_id(id, hash);
    if (freed[i] == kNoSlot) {
      return before.state().find_id(id, hash) == kNoSlot ? unknown(ids[i], i) : duplicate(ids[i], i);
    }
    state.clear(freed[i], edit);
  }
  const bool empty = state.count == 0;
  if (empty) state.clear_all(edit);
  index->free_slots.reserve(index->free_slots.size() + count);
  SnapshotRef after(new finch_snapshot(std::move(state)));
  if (empty) {
    index->free_slots.clear();
  } else {
    index->free_slots.insert(index->free_slots.end(), freed.begin(), freed.end());
  }
  index->publish(std::move(after));
  maintain_ann(index);
  return FINCH_OK;
}

}  // namespace
}  // namespace finch

extern "C" {

finch_status finch_index_create(const finch_index_options* options, finch_index** out) {
  return finch::guarded([&]() -> finch_status {
    if (options == nullptr || out == nullptr) return fail(FINCH_INVALID_ARGUMENT, "options and out must not be NULL.");
    finch_index_options read;
    if (!finch::read_sized(options, sizeof(finch_index_options), &read)) {
      return fail(FINCH_INVALID_ARGUMENT, "options.size is %zu; set it to sizeof(finch_index_options).", options->size);
    }
    if (read.dimension < 1 || read.dimension > FINCH_MAX_DIMENSION) {
      return fail(FINCH_INVALID_ARGUMENT, "options.dimension is %u; a dimension lies in 1 ... %u.", read.dimension,
                  FINCH_MAX_DIMENSION);
    }
    if (read.storage < FINCH_STORAGE_F32 || read.storage > FINCH_STORAGE_I8) {
      return fail(FINCH_INVALID_ARGUMENT, "options.storage is %d; use FINCH_STORAGE_F32, _BF16, _F16 or _I8.",
                  read.storage);
    }
    *out = new finch_index(State(read.dimension, read.storage, finch::next_index_id()));
    return FINCH_OK;
  });
}

void finch_index_retain(finch_index* index) {
  if (index != nullptr) index->references.fetch_add(1, std::memory_order_relaxed);
}

void finch_index_release(finch_index* index) {
  if (index != nullptr && index->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete index;
}

finch_status finch_index_upsert(finch_index* index, const finch_string* ids, const float* vectors, size_t count,
                                const float* priors, uint64_t* keys) {
  return finch::guarded([&]() -> finch_status {
    if (const finch_status status = finch::check_ids(index, ids, count)) return status;
    if (count == 0) return FINCH_OK;
    if (vectors == nullptr) return fail(FINCH_INVALID_ARGUMENT, "vectors is NULL but count is %zu.", count);
    if (const finch_status status = finch::check_priors(priors, count)) return status;
    return finch::upsert(index, ids, vectors, count, priors, keys);
  });
}

finch_status finch_index_set_priors(finch_index* index, const finch_string* ids, const float* priors, size_t count) {
  return finch::guarded([&]() -> finch_status {
    if (const finch_status status = finch::check_ids(index, ids, count)) return status;
    if (count == 0) return FINCH_OK;
    if (priors == nullptr) return fail(FINCH_INVALID_ARGUMENT, "priors is NULL but count is %zu.", count);
    if (const finch_status status = finch::check_priors(priors, count)) return status;
    return finch::set_priors(index, ids, priors, count);
  });
}

finch_status finch_index_remove(finch_index* index, const finch_string* ids, size_t count) {
  return finch::guarded([&]() -> finch_status {
    if (const finch_status status = finch::check_ids(index, ids, count)) return status;
    return count == 0 ? FINCH_OK : finch::remove(index, ids, count);
  });
}

finch_status finch_index_inspect(const finch_index* index, finch_index_info* out) {
  return finch::guarded([&]() -> finch_status {
    if (index == nullptr || out == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index and out must not be NULL.");
    if (out->size < sizeof(finch_index_info)) {
      return fail(FINCH_INVALID_ARGUMENT, "out.size is %zu; set it to sizeof(finch_index_info).", out->size);
    }
    const SnapshotRef snapshot = index->snapshot();
    const State& state = snapshot.state();
    finch_index_info info{};
    info.count = state.count;
    info.slots = state.slots;
    info.version = state.version;
    info.vector_bytes = state.vector_bytes;
    info.mapped_bytes = state.mapped_bytes;
    info.dimension = state.dimension;
    info.storage = state.storage;
    info.code_bytes = state.code_bytes;
    if (state.ann != nullptr) {
      info.ann_bytes = state.ann->bytes();
      info.ann_count = state.ann->size();
    }
    finch::write_sized(info, out);
    return FINCH_OK;
  });
}

finch_status finch_index_snapshot(const finch_index* index, finch_snapshot** out) {
  return finch::guarded([&]() -> finch_status {
    if (index == nullptr || out == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index and out must not be NULL.");
    *out = index->snapshot().release();
    return FINCH_OK;
  });
}

finch_status finch_index_blob(const finch_index* index, finch_string name, const void** data, size_t* size) {
  return finch::guarded([&]() -> finch_status {
    if (index == nullptr || data == nullptr || size == nullptr || (name.data == nullptr && name.size > 0)) {
      return fail(FINCH_INVALID_ARGUMENT, "index, name, data and size must not be NULL.");
    }
    for (const finch::Blob& blob : index->blobs) {
      if (std::string_view(blob.name) != std::string_view(name.data, name.size)) continue;
      *data = blob.data.data();
      *size = blob.data.size();
      return FINCH_OK;
    }
    return fail(FINCH_UNKNOWN_ID, "the file that this index was opened from has no section " FINCH_ID ".",
                FINCH_ID_ARGUMENTS(name));
  });
}

}  // extern "C"
