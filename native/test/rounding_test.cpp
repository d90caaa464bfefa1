#include "kernels/scan/rounding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

// IEEE 754 spelled out: the value of a code with `fraction_bits` and an exponent of the given bias; finite codes only.
double value_of(uint32_t code, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto fraction = static_cast<double>(code & ((1u << fraction_bits) - 1));
  const int exponent = static_cast<int>((code >> fraction_bits) & ((1u << exponent_bits) - 1));
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp(fraction + std::ldexp(1.0, fraction_bits), exponent - bias - fraction_bits);
  return (code >> (exponent_bits + fraction_bits)) != 0 ? -magnitude : magnitude;
}

// The codes of finite non-negative values ascend: the nearest, and of two the even one.
uint16_t nearest(float x, const std::vector<double>& values) {
  const double magnitude = std::abs(double{x});
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  auto code = static_cast<uint16_t>(above - values.begin());
  if (above == values.end()) {
    --code;
  } else if (*above != magnitude) {
    const double up = *above - magnitude, down = magnitude - *(above - 1);
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<uint16_t>(code | (std::signbit(x) ? 0x8000u : 0u));
}

std::vector<double> values(int exponent_bits, int fraction_bits) {
  std::vector<double> out;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  for (uint32_t code = 0; code < infinity; ++code) out.push_back(value_of(code, exponent_bits, fraction_bits));
  return out;
}

// All magnitudes below `largest`, subnormal ones too, and every value's neighbours and ties with the next.
template <typename Check>
void for_many_floats(const std::vector<double>& values, float largest, Check&& check) {
  std::mt19937 random(5);
  for (int i = 0; i < 1'000'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::abs(x) <= largest) check(x);
  }
  std::uniform_real_distribution<float> unit(-1.0f, 1.0f);
  for (int i = 0; i < 200'000; ++i) check(unit(random));
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const auto exact = static_cast<float>(values[code]);
    const auto tie = static_cast<float>((values[code] + values[code + 1]) / 2);
    for (const float x : {exact, tie}) {
      for (const float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, largest)}) {
        check(y);
        check(-y);
      }
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) uint16_t machine_to_f16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
__attribute__((target("f16c"))) float machine_from_f16(uint16_t x) { return _cvtsh_ss(x); }
bool machine_has_f16() { return finch::available_kernels().size() > 1; }
#elif defined(__aarch64__)
uint16_t machine_to_f16(float x) { return std::bit_cast<uint16_t>(static_cast<__fp16>(x)); }
float machine_from_f16(uint16_t x) { return static_cast<float>(std::bit_cast<__fp16>(x)); }
bool machine_has_f16() { return true; }
#else
uint16_t machine_to_f16(float x) { return finch::to_f16(x); }
float machine_from_f16(uint16_t x) { return finch::from_f16(x); }
bool machine_has_f16() { return false; }
#endif

TEST(Rounding, ReadsEveryHalf) {
  for (uint32_t code = 0; code < 0x10000u; ++code) {
    if ((code & 0x7C00u) == 0x7C00u) continue;  // infinities and NaN are never stored
    const float x = finch::from_f16(static_cast<uint16_t>(code));
    ASSERT_EQ(x, value_of(code, 5, 10)) << code;
    ASSERT_EQ(std::signbit(x), code >= 0x8000u) << code;
    ASSERT_EQ(finch::to_f16(x), code);
    if (machine_has_f16()) {
      ASSERT_EQ(x, machine_from_f16(static_cast<uint16_t>(code))) << code;
    }
  }
}

TEST(Rounding, RoundsToTheNearestHalf) {
  const auto halves = values(5, 10);
  for_many_floats(halves, 65519.0f, [&](float x) {
    ASSERT_EQ(finch::to_f16(x), nearest(x, halves)) << x;
    if (machine_has_f16()) {
      ASSERT_EQ(finch::to_f16(x), machine_to_f16(x)) << x;
    }
  });
}

TEST(Rounding, ReadsEveryBf16) {
  for (uint32_t code = 0; code < 0x10000u; ++code) {
    if ((code & 0x7F80u) == 0x7F80u) continue;
    const float x = finch::from_bf16(static_cast<uint16_t>(code));
    ASSERT_EQ(x, value_of(code, 8, 7)) << code;
    ASSERT_EQ(finch::to_bf16(x), code);
  }
}

TEST(Rounding, RoundsToTheNearestBf16) {
  const auto all = values(8, 7);
  for_many_floats(all, static_cast<float>(all.back()),
                  [&](float x) { ASSERT_EQ(finch::to_bf16(x), nearest(x, all)) << x; });
}

void check_i8(const std::vector<float>& x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  std::vector<int32_t> codes(x.size());
  const float scale = finch::quantize_i8(x.data(), x.size(), [&](size_t i, int32_t code) { codes[i] = code; });
  ASSERT_TRUE(std::isfinite(scale) && scale > 0) << largest;
  int32_t most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(codes[i]));
    ASSERT_LE(std::abs(codes[i]), 127) << x[i];
    // Half a step, and what rounding the scale and the quotient adds.
    ASSERT_LE(std::abs(x[i] - double{scale} * codes[i]), double{scale} * (0.5 + 127 * 0x1p-22)) << x[i];
    if (x[i] == 0) {
      ASSERT_EQ(codes[i], 0);
    }
  }
  if (largest >= 0x1p-100f) {
    ASSERT_EQ(most, 127) << largest;
  }
}

TEST(Rounding, SpreadsVectorsOverInt8) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (int exponent = -170; exponent <= 120; ++exponent) {
    for (const size_t d : {1, 2, 7, 64, 385}) {
      std::vector<float> x(d);
      for (float& v : x) v = std::ldexp(normal(random), exponent);
      check_i8(x);
      x[d / 2] = std::ldexp(5.0f, exponent);  // one element that dwarfs the rest
      check_i8(x);
      std::fill(x.begin(), x.end(), -x[d / 2]);
      check_i8(x);
    }
  }
  check_i8({0.0f, -0.0f, 0.0f});
  check_i8({std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(), 1.0f});
  check_i8({std::numeric_limits<float>::denorm_min(), 0.0f});
  check_i8({1.0f, -1.0f, 0.5f / 127.0f, 1.5f / 127.0f, 126.5f / 127.0f});
}

TEST(Rounding, KeepsInt8CodesThatAreExact) {
  for (int32_t code = -127; code <= 127; ++code) {
    const float x[2] = {127.0f, static_cast<float>(code)};
    const float scale = finch::quantize_i8(x, 2, [&](size_t i, int32_t got) { EXPECT_EQ(got, i == 0 ? 127 : code); });
    EXPECT_EQ(scale, 1.0f);
  }
}

}  // namespace
