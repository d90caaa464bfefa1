#include "vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace finch {
namespace {

constexpr uint64_t kBase = 0x100000001B3u;

inline uint64_t append(uint64_t hash, char byte) noexcept {
  // 1 is added so that zero bytes count.
  return hash * kBase + static_cast<unsigned char>(byte) + 1;
}

}  // namespace

void PrefixHashes::reset(const char* word, size_t size) {
  while (powers_.size() <= size) powers_.push_back(powers_.back() * kBase);
  if (prefixes_.size() <= size) prefixes_.resize(size + 1);
  uint64_t hash = 0;
  prefixes_[0] = 0;
  for (size_t i = 0; i < size; i++) prefixes_[i + 1] = hash = append(hash, word[i]);
}

void TokenTable::reserve(size_t count) { entries_.assign(std::bit_ceil(count * 2 + 8), Entry{}); }

void TokenTable::insert(std::string_view token, int32_t id) {
  if (token.empty()) return;
  uint64_t hash = 0;
  for (const char byte : token) hash = append(hash, byte);
  const size_t mask = entries_.size() - 1;
  size_t place = spread(hash) & mask;
  while (entries_[place].size != 0) place = (place + 1) & mask;
  entries_[place] = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size()), id};
  bytes_.append(token);
  longest_ = std::max(longest_, token.size());
}

int32_t TokenTable::longest(const char* word, size_t from, size_t size, const PrefixHashes& hashes,
                            size_t* end) const noexcept {
  const size_t mask = entries_.size() - 1;
  for (size_t to = std::min(size, from + longest_); to > from; to--) {
    if (to < size && (static_cast<unsigned char>(word[to]) & 0xC0) == 0x80) continue;  // inside a character
    const uint64_t hash = hashes.part(from, to);
    for (size_t place = spread(hash) & mask; entries_[place].size != 0; place = (place + 1) & mask) {
      const Entry& entry = entries_[place];
      if (entry.hash == hash && entry.size == to - from &&
          std::memcmp(bytes_.data() + entry.at, word + from, to - from) == 0) {
        *end = to;
        return entry.id;
      }
    }
  }
  return -1;
}

}  // namespace finch
