#include "allow.hpp"

#include <memory>
#include <string_view>

#include "error.hpp"
#include "snapshot.hpp"
#include "state.hpp"

using finch::fail;

extern "C" {

finch_status finch_allow_create(const finch_snapshot* snapshot, const finch_string* ids, size_t count,
                                finch_allow** out, size_t* matched) {
  return finch::guarded([&]() -> finch_status {
    if (snapshot == nullptr || out == nullptr)
      return fail(FINCH_INVALID_ARGUMENT, "snapshot and out must not be NULL.");
    if (ids == nullptr && count > 0) return fail(FINCH_INVALID_ARGUMENT, "ids is NULL but count is %zu.", count);
    const finch::State& state = snapshot->state;
    auto allow = std::make_unique<finch_allow>();
    allow->index_id = state.index_id;
    allow->version = state.version;
    allow->count = 0;
    allow->bits.resize(state.rows.size() * finch::RowChunk::kWords);
    for (size_t i = 0; i < count; ++i) {
      if (ids[i].data == nullptr) {
        if (ids[i].size == 0) continue;
        return fail(FINCH_INVALID_ARGUMENT, "ids[%zu] has no data but size %zu.", i, ids[i].size);
      }
      if (ids[i].size > FINCH_MAX_ID_BYTES) continue;
      const std::string_view id(ids[i].data, ids[i].size);
      const uint32_t slot = state.find_id(id, finch::hash_id(id));
      if (slot == finch::kNoSlot) continue;
      const uint64_t bit = uint64_t{1} << (slot % 64);
      allow->count += (allow->bits[slot / 64] & bit) == 0;
      allow->bits[slot / 64] |= bit;
    }
    if (matched != nullptr) *matched = allow->count;
    *out = allow.release();
    return FINCH_OK;
  });
}

void finch_allow_release(finch_allow* allow) { delete allow; }

}  // extern "C"
