// What BERT's text cleaning needs to know of a code point. The tables come from scripts/unicode-tables.py, which
// matches them with Hugging Face's tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace finch {

// Kind::flags
enum : uint8_t {
  kRemove = 1,       // NUL, U+FFFD, control, format and private characters: dropped
  kSpace = 2,        // separates words
  kPunctuation = 4,  // a word of its own
  kMark = 8,         // a nonspacing mark: an accent
  kChinese = 16,     // may be a word of its own
  kDecomposes = 32,  // decomposition() has parts for it
};

struct Kind {
  uint8_t flags;
  uint8_t combining_class;
  int32_t to_lower;  // add to the code point to get its small letter (U+0130 apart, which has two)
};

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kDottedCapitalI = 0x130;

// Built once per process and never destroyed: safe on threads that outlive main().
class Unicode {
 public:
  static const Unicode& instance();

  // c < 0x110000.
  const Kind& kind(char32_t c) const noexcept { return kinds_[blocks_[(size_t{pages_[c >> 8]} << 8) | (c & 0xFF)]]; }

  // The canonical decomposition of a code point with kDecomposes, nonspacing marks left out. Points into static
  // storage.
  static std::span<const char32_t> decomposition(char32_t c) noexcept;

 private:
  Unicode();

  const Kind* kinds_;
  std::unique_ptr<uint8_t[]> pages_;
  std::unique_ptr<uint8_t[]> blocks_;
};

// The code point at text[*at] and *at moved behind it. Ill-formed UTF-8 gives U+FFFD and skips its longest well-begun
// part.
char32_t decode_utf8(const char* text, size_t size, size_t* at) noexcept;
// Writes 1 to 4 bytes and returns how many.
size_t encode_utf8(char32_t c, char* out) noexcept;
bool valid_utf8(const char* text, size_t size) noexcept;

}  // namespace finch
