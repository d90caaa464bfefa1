// Hash to slot, copy-on-write by shard: one insertion into a million copies a few kilobytes. Open addressing with
// 8-byte entries; the caller's predicate confirms a match, since only 32 bits of the hash are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "cow.hpp"

namespace finch {

constexpr uint32_t kNoSlot = 0xFFFFFFFFu;

class SlotMap {
 public:
  SlotMap() { shards_.resize(size_t{1} << kShardBits, 0); }

  template <typename Matches>
  uint32_t find(uint64_t hash, Matches&& matches) const noexcept {
    const Shard* shard = shards_.get(shard_of(hash));
    if (shard == nullptr || shard->count == 0) return kNoSlot;
    const uint32_t tag = static_cast<uint32_t>(hash);
    const size_t mask = shard->table.size() - 1;
    for (size_t i = tag & mask;; i = (i + 1) & mask) {
      const Entry entry = shard->table[i];
      if (entry.slot == kNoSlot) return kNoSlot;
      if (entry.tag == tag && matches(entry.slot)) return entry.slot;
    }
  }

  // The caller knows that it is not there yet.
  void insert(uint64_t hash, uint32_t slot, uint64_t edit) {
    Shard& shard = shards_.edit(shard_of(hash), edit);
    if ((shard.count + 1) * 3 > shard.table.size() * 2) grow(shard);
    place(shard.table, {static_cast<uint32_t>(hash), slot});
    ++shard.count;
  }

  // The caller knows that it is there.
  void erase(uint64_t hash, uint32_t slot, uint64_t edit) {
    Shard& shard = shards_.edit(shard_of(hash), edit);
    std::vector<Entry>& table = shard.table;
    const size_t mask = table.size() - 1;
    size_t hole = static_cast<uint32_t>(hash) & mask;
    while (table[hole].slot != slot) hole = (hole + 1) & mask;
    // Entries behind the hole move up where their search would otherwise stop at it.
    for (size_t i = (hole + 1) & mask; table[i].slot != kNoSlot; i = (i + 1) & mask) {
      const size_t home = table[i].tag & mask;
      if (((i - home) & mask) >= ((i - hole) & mask)) {
        table[hole] = table[i];
        hole = i;
      }
    }
    table[hole] = Entry{};
    --shard.count;
  }

 private:
  static constexpr unsigned kShardBits = 10;
  static size_t shard_of(uint64_t hash) noexcept { return static_cast<size_t>(hash >> (64 - kShardBits)); }

  struct Entry {
    uint32_t tag = 0;
    uint32_t slot = kNoSlot;
  };
  struct Shard {
    uint64_t edit = 0;
    size_t count = 0;
    std::vector<Entry> table;  // a power of two long, never full
  };

  static void place(std::vector<Entry>& table, Entry entry) noexcept {
    const size_t mask = table.size() - 1;
    size_t i = entry.tag & mask;
    while (table[i].slot != kNoSlot) i = (i + 1) & mask;
    table[i] = entry;
  }

  static void grow(Shard& shard) {
    std::vector<Entry> bigger(shard.table.empty() ? 8 : shard.table.size() * 2);
    for (const Entry& entry : shard.table) {
      if (entry.slot != kNoSlot) place(bigger, entry);
    }
    shard.table.swap(bigger);
  }

  Cow<Shard> shards_;
};

}  // namespace finch
