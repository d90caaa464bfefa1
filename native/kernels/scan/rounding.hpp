// float32 to the storage formats and back, one number at a time: for inserting, for queries and for tests. Plain
// integer arithmetic, so every instruction set's file gets the same bits. Finite input only.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace finch {
namespace {

// To nearest, ties to even.
[[maybe_unused]] uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

[[maybe_unused]] float from_bf16(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

// To nearest, ties to even; |x| < 65,520.
[[maybe_unused]] uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude < 0x38800000u) {
    // Below 2^-14 half precision counts in steps of 2^-24: adding 0.5 makes float32 round to just those.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

[[maybe_unused]] float from_f16(uint16_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x8000u) << 16;
  const uint32_t exponent = (x >> 10) & 0x1Fu;
  const uint32_t fraction = x & 0x3FFu;
  const float value = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                                    : std::bit_cast<float>(((exponent + 112) << 23) | (fraction << 13));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// round(x / scale) with scale = max |x| / 127, so that the codes fill -127 ... 127. Returns the scale. Vectors within
// 2^-100 of zero are counted in steps of that: the inverse of their own would overflow.
template <typename Write>
float quantize_i8(const float* x, size_t d, Write&& write) {
  float largest = 0x1p-100f;
  for (size_t i = 0; i < d; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  const float scale = largest / 127.0f;
  const float inverse = 127.0f / largest;
  for (size_t i = 0; i < d; ++i) {
    // Adding 1.5 * 2^23 rounds to the nearest whole number, ties to even.
    const float rounded = (x[i] * inverse + 12582912.0f) - 12582912.0f;
    write(i, static_cast<int32_t>(rounded));
  }
  return scale;
}

}  // namespace
}  // namespace finch
