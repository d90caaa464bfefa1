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

// The largest |x_i|, 0 for none.
[[maybe_unused]] float largest_magnitude(const float* x, size_t d) {
  // Bits without their sign have the order of magnitudes, and compilers take the largest of several integers at once.
  int32_t largest = 0;
  for (size_t i = 0; i < d; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

// round(x / scale) with scale = max |x| / 127, so that the codes fill -127 ... 127. Vectors within 2^-100 of zero are
// counted in steps of that: the inverse of their own would overflow.
struct StepsI8 {
  float scale;
  float inverse;

  StepsI8(const float* x, size_t d) {
    const float own = largest_magnitude(x, d);
    const float largest = own > 0x1p-100f ? own : 0x1p-100f;
    scale = largest / 127.0f;
    inverse = 127.0f / largest;
  }
  int32_t code(float x) const {
    // Adding 1.5 * 2^23 rounds to the nearest whole number, ties to even.
    const float rounded = (x * inverse + 12582912.0f) - 12582912.0f;
    return static_cast<int32_t>(rounded);
  }
};

// Returns the scale.
template <typename Write>
float quantize_i8(const float* x, size_t d, Write&& write) {
  const StepsI8 steps(x, d);
  for (size_t i = 0; i < d; ++i) write(i, steps.code(x[i]));
  return steps.scale;
}

}  // namespace
}  // namespace finch
