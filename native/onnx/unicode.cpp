#include "unicode.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace finch {
namespace {

struct Start {
  char32_t first;
  uint8_t kind;
};
struct Single {
  char32_t from, to;
};
struct Several {
  char32_t from;
  uint16_t at;
  uint8_t size;
};

#include "unicode_tables.inc"

constexpr size_t kPages = 0x110000 >> 8;

}  // namespace

Unicode::Unicode() : kinds_(kKinds), pages_(new uint8_t[kPages]) {
  std::vector<uint8_t> blocks;
  uint8_t page[256];
  size_t start = 0;
  for (size_t p = 0; p < kPages; p++) {
    for (size_t i = 0; i < 256; i++) {
      const auto c = static_cast<char32_t>((p << 8) | i);
      while (start + 1 < std::size(kStarts) && kStarts[start + 1].first <= c) start++;
      page[i] = kStarts[start].kind;
    }
    size_t block = 0;
    while (block < blocks.size() / 256 && std::memcmp(blocks.data() + block * 256, page, 256) != 0) block++;
    if (block == blocks.size() / 256) blocks.insert(blocks.end(), page, page + 256);
    // 4,352 pages share fewer than 256 different blocks; the unit test walks every code point.
    pages_[p] = static_cast<uint8_t>(block);
  }
  blocks_.reset(new uint8_t[blocks.size()]);
  std::copy(blocks.begin(), blocks.end(), blocks_.get());
}

const Unicode& Unicode::instance() {
  static const Unicode* const unicode = new Unicode;
  return *unicode;
}

std::span<const char32_t> Unicode::decomposition(char32_t c) noexcept {
  const auto* single = std::lower_bound(std::begin(kSingles), std::end(kSingles), c,
                                        [](const Single& entry, char32_t wanted) { return entry.from < wanted; });
  if (single != std::end(kSingles) && single->from == c) return {&single->to, 1};
  const auto* several = std::lower_bound(std::begin(kSeverals), std::end(kSeverals), c,
                                         [](const Several& entry, char32_t wanted) { return entry.from < wanted; });
  if (several != std::end(kSeverals) && several->from == c) return {kParts + several->at, several->size};
  return {};
}

char32_t decode_utf8(const char* text, size_t size, size_t* at) noexcept {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text);
  size_t i = *at;
  const unsigned char first = bytes[i++];
  if (first < 0x80) {
    *at = i;
    return first;
  }
  size_t more = 0;
  unsigned char low = 0x80, high = 0xBF;  // the range of the second byte
  char32_t c = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1;
    c = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2;
    c = first & 0x0F;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3;
    c = first & 0x07;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    *at = i;
    return kReplacement;
  }
  for (; more > 0; more--) {
    if (i >= size || bytes[i] < low || bytes[i] > high) {
      *at = i;
      return kReplacement;
    }
    c = (c << 6) | (bytes[i++] & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  *at = i;
  return c;
}

size_t encode_utf8(char32_t c, char* out) noexcept {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<char>(0xC0 | (c >> 6));
    out[1] = static_cast<char>(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xE0 | (c >> 12));
    out[1] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out[2] = static_cast<char>(0x80 | (c & 0x3F));
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | (c >> 18));
  out[1] = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
  out[2] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  out[3] = static_cast<char>(0x80 | (c & 0x3F));
  return 4;
}

bool valid_utf8(const char* text, size_t size) noexcept {
  for (size_t at = 0; at < size;) {
    const size_t before = at;
    // U+FFFD itself is three bytes long and starts with 0xEF; anything else that decodes to it is ill-formed.
    if (decode_utf8(text, size, &at) == kReplacement) {
      if (at - before != 3 || static_cast<unsigned char>(text[before]) != 0xEF) return false;
    }
  }
  return true;
}

}  // namespace finch
