// Queries as the scan kernels read them; the same code for every instruction set, in each one's own unit.
#pragma once

#include <cstring>

#include "kernels/scan/rounding.hpp"
#include "kernels/scan/scan.hpp"

namespace finch {
namespace {

constexpr size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// What a panel's elements are made of: kElements consecutive dimensions of a query in one 32-bit word.
struct PackF32 {
  static constexpr size_t kElements = 1;
  static uint32_t word(const float* x, size_t) { return std::bit_cast<uint32_t>(x[0]); }
};
struct PackBf16 {
  static constexpr size_t kElements = 2;
  static uint32_t word(const float* x, size_t left) {
    return to_bf16(x[0]) | (left > 1 ? static_cast<uint32_t>(to_bf16(x[1])) << 16 : 0u);
  }
};

// words(d) words of `lanes` queries each, word by word.
template <typename Pack>
void pack_words(const float* queries, size_t count, size_t d, size_t lanes, uint32_t* out) {
  const size_t words = (d + Pack::kElements - 1) / Pack::kElements;
  if (count < lanes) std::memset(out, 0, words * lanes * sizeof(uint32_t));
  for (size_t q = 0; q < count; ++q) {
    const float* x = queries + q * d;
    for (size_t w = 0, i = 0; w < words; ++w, i += Pack::kElements) out[w * lanes + q] = Pack::word(x + i, d - i);
  }
}

// The codes of a query in int8, as int8 or int16. Returns what its sums with biased rows start from:
// sum (r + 128) q - 128 sum q = sum r q.
template <typename Element>
int32_t codes_i8(const StepsI8& steps, const float* x, size_t d, Element* out) {
  int32_t sum = 0;
  for (size_t i = 0; i < d; ++i) {
    const int32_t code = steps.code(x[i]);
    out[i] = static_cast<Element>(code);
    sum += code;
  }
  return -128 * sum;
}

// Panel header: one int32 per lane; then words.
template <typename Element>
void pack_i8(const float* queries, size_t count, size_t d, size_t lanes, void* out) {
  constexpr size_t kPerWord = sizeof(uint32_t) / sizeof(Element);
  constexpr size_t kBlock = 64;  // elements: whole words
  const size_t words = (d + kPerWord - 1) / kPerWord;
  auto* starts = static_cast<int32_t*>(out);
  int32_t* const elements = starts + lanes;
  if (count < lanes) std::memset(out, 0, (1 + words) * lanes * sizeof(uint32_t));
  for (size_t q = 0; q < count; ++q) {
    const float* x = queries + q * d;
    const StepsI8 steps(x, d);
    int32_t start = 0;
    for (size_t first = 0; first < d; first += kBlock) {
      const size_t n = d - first < kBlock ? d - first : kBlock;
      Element codes[kBlock] = {};
      start += codes_i8(steps, x + first, n, codes);
      int32_t* to = elements + first / kPerWord * lanes + q;
      for (size_t i = 0; i < n; i += kPerWord, to += lanes) std::memcpy(to, codes + i, sizeof(*to));
    }
    starts[q] = start;
  }
}

// A `few` query in int8 or int16: 64 bytes whose first int32 is the start, then `length` elements.
template <typename Element>
void prepare_i8(const float* query, size_t d, size_t length, void* out) {
  std::memset(out, 0, 64 + length * sizeof(Element));
  auto* elements = reinterpret_cast<Element*>(static_cast<char*>(out) + 64);
  const int32_t start = codes_i8(StepsI8(query, d), query, d, elements);
  std::memcpy(out, &start, sizeof(start));
}

// The score of a sum over such a query and a biased row.
inline float score_i8(int32_t sum, const void* query, float scale) {
  int32_t start;
  std::memcpy(&start, query, sizeof(start));
  return static_cast<float>(sum + start) * scale;
}

inline size_t prepared_f32_bytes(size_t d) { return d * sizeof(float); }
inline void prepare_f32(const float* query, size_t d, void* out) { std::memcpy(out, query, d * sizeof(float)); }

// float32, filled up with zeros to the length of the rows' codes (64 bytes of 2-byte elements).
inline size_t padded_f32_bytes(size_t d) { return round_up(d, 32) * sizeof(float); }
inline void prepare_padded_f32(const float* query, size_t d, void* out) {
  std::memset(out, 0, padded_f32_bytes(d));
  std::memcpy(out, query, d * sizeof(float));
}

// bf16, filled up with zeros to whole 64 bytes.
inline size_t prepared_bf16_bytes(size_t d) { return round_up(d, 32) * sizeof(uint16_t); }
inline void prepare_bf16(const float* query, size_t d, void* out) {
  std::memset(out, 0, prepared_bf16_bytes(d));
  auto* codes = static_cast<uint16_t*>(out);
  for (size_t i = 0; i < d; ++i) codes[i] = to_bf16(query[i]);
}

}  // namespace
}  // namespace finch
