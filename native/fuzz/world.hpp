// What a fuzzed sequence of calls has made so far, and arguments drawn from it: handles that may be NULL, ids that may
// be hostile, vectors that may be of no length or of none at all.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "input.hpp"

namespace finch_fuzz {

constexpr uint32_t kMostDimension = 40;

inline void fill(Input& in, Room<float>* room, size_t count) {
  uint32_t state = in.word() | 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    room->set(i, i % 8 < 2 ? in.number() : static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
}

inline void fill_shares(Input& in, Room<float>* room, size_t count) {
  for (size_t i = 0; i < count; ++i) room->set(i, in.share());
}

inline size_t shift(Input& in) { return in.one_in(4) ? 1 + in.below(3) : 0; }

// Names of ids; some are as long as allowed, or longer.
inline finch_string draw_id(Input& in) {
  static const std::string kNames[] = {"a", "b", "c", "d", "e",  "f",  "g",     "h",
                                       "i", "j", "k", "l", "aa", "ab", "tool.x"};
  static const std::string kNul("\0z\0", 3);
  static const std::string kInvalid("\xC3\x28\xFF", 3);
  static const std::string kLongest(FINCH_MAX_ID_BYTES, 'L');
  static const std::string kTooLong(FINCH_MAX_ID_BYTES + 1, 'L');
  const uint8_t what = in.byte();
  if (what < 0xF0) return {kNames[what % 15].data(), kNames[what % 15].size()};
  switch (what) {
    case 0xFF:
      return {nullptr, 0};
    case 0xFE:
      return {nullptr, 5};
    case 0xFD:
      return {"", 0};
    case 0xFC:
      return {kTooLong.data(), kTooLong.size()};
    case 0xFB:
      return {kLongest.data(), kLongest.size()};
    case 0xFA:
      return {kInvalid.data(), kInvalid.size()};
    default:
      return {kNul.data(), kNul.size()};
  }
}

struct Ids {
  Ids(Input& in, size_t count, bool distinct) : room(count) {
    std::set<std::string> seen;
    for (size_t i = 0; i < count; ++i) {
      finch_string id = draw_id(in);
      for (int tries = 0; distinct && tries < 4 && id.data != nullptr && seen.count({id.data, id.size}) != 0; ++tries) {
        id = draw_id(in);
      }
      if (id.data != nullptr) seen.insert({id.data, id.size});
      room.set(i, id);
    }
  }
  Room<finch_string> room;
};

// A handful of handles of one kind; what is put in drops what was there.
template <typename T, void (*Release)(T*)>
class Handles {
 public:
  ~Handles() {
    for (T* handle : handles_) Release(handle);
  }
  size_t place(Input& in) const { return in.below(kMost); }
  T* at(size_t i) const { return handles_[i]; }
  void put(size_t i, T* handle) {
    Release(handles_[i]);
    handles_[i] = handle;
  }
  static constexpr size_t kMost = 3;

 private:
  std::array<T*, kMost> handles_{};
};

struct SnapshotNote {
  uint32_t dimension = 0;
  std::vector<uint64_t> keys;
  std::vector<float> vectors;
};

struct AllowNote {
  std::set<std::string> ids;
  size_t matched = 0;
};

struct World {
  Handles<finch_index, finch_index_release> indexes;
  Handles<finch_snapshot, finch_snapshot_release> snapshots;
  Handles<finch_allow, finch_allow_release> allows;
  Handles<finch_bandit, finch_bandit_release> bandits;
  std::array<uint32_t, 3> index_dimensions{};
  std::array<uint32_t, 3> bandit_dimensions{};
  std::array<finch_bandit_options, 3> bandit_options{};
  std::array<SnapshotNote, 3> snapshot_notes;
  std::array<AllowNote, 3> allow_notes;
};

inline std::vector<uint64_t> keys_of(const finch_snapshot* snapshot) {
  size_t count = 0;
  FUZZ_CHECK(finch_snapshot_keys(snapshot, nullptr, 0, &count) == FINCH_OK);
  Room<uint64_t> keys(count);
  FUZZ_CHECK(finch_snapshot_keys(snapshot, keys.get(), count, &count) == FINCH_OK);
  std::vector<uint64_t> out(keys.get(), keys.get() + count);
  FUZZ_CHECK(std::is_sorted(out.begin(), out.end()) && std::adjacent_find(out.begin(), out.end()) == out.end());
  return out;
}

inline std::vector<float> vectors_of(const finch_snapshot* snapshot, const std::vector<uint64_t>& keys, uint32_t d) {
  Room<float> vectors(keys.size() * d);
  FUZZ_CHECK(finch_snapshot_rows(snapshot, keys.data(), keys.size(), nullptr, vectors.get(), nullptr) == FINCH_OK);
  return {vectors.get(), vectors.get() + keys.size() * d};
}

}  // namespace finch_fuzz
