// What the rest of the core may read of a snapshot: rows by key. The layout behind it is in state.hpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "toolfinch.h"

namespace finch {

// One row; the pointers stay valid as long as the snapshot is retained.
struct Row {
  uint64_t key;
  const float* vector;  // unit, `snapshot_dimension` long
  std::string_view id;
  uint64_t id_hash;  // hash_id(id), so that a table of ids need not hash again
  float prior;
};

// O(1). False, `out` untouched, when the snapshot has no such key.
bool find_row(const finch_snapshot& snapshot, uint64_t key, Row* out) noexcept;

uint32_t snapshot_dimension(const finch_snapshot& snapshot) noexcept;

// Keyed with a secret drawn once per process: hostile ids cannot be made to collide. Never stored.
uint64_t hash_id(std::string_view id) noexcept;

}  // namespace finch
