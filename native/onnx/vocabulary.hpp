// WordPiece's vocabulary: a hash from bytes to ids that finds the longest token at a place of a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finch {

// Rolling hashes of a word's prefixes, so that the hash of any part of it costs one multiplication.
class PrefixHashes {
 public:
  void reset(const char* word, size_t size);
  uint64_t part(size_t from, size_t to) const noexcept { return prefixes_[to] - prefixes_[from] * powers_[to - from]; }

 private:
  std::vector<uint64_t> prefixes_;
  std::vector<uint64_t> powers_{1};
};

// Tokens of one position: those a word may start with, or those that may continue it. Built once, then read by any
// thread.
class TokenTable {
 public:
  void reserve(size_t count);
  void insert(std::string_view token, int32_t id);

  // The longest token that is a prefix of word[from, size): its id and where it ends, or -1. Never splits a character,
  // since tokens and words are whole UTF-8.
  int32_t longest(const char* word, size_t from, size_t size, const PrefixHashes& hashes, size_t* end) const noexcept;

 private:
  struct Entry {
    uint64_t hash;
    uint32_t at;    // in bytes_
    uint32_t size;  // 0: an empty place
    int32_t id;
  };
  static size_t spread(uint64_t hash) noexcept { return static_cast<size_t>((hash * 0x9E3779B97F4A7C15u) >> 32); }

  std::vector<Entry> entries_;
  std::string bytes_;
  size_t longest_ = 0;
};

}  // namespace finch
