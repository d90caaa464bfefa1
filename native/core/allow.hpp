// A set of slots that may be returned.
#pragma once

#include <cstdint>
#include <vector>

#include "toolfinch.h"

struct finch_allow {
  uint64_t index_id;
  uint64_t version;
  uint64_t count;              // bits set
  std::vector<uint64_t> bits;  // bit s % 64 of word s / 64: slot s; whole row chunks, so that no bound needs a check
};
