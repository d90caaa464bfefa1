#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/unit.hpp"
#include "kernels/kernels.hpp"

namespace finch {
namespace {

std::vector<size_t> dimensions() {
  std::vector<size_t> all = {0};
  for (size_t d = 1; d <= 130; ++d) all.push_back(d);
  for (const size_t d : {255, 257, 383, 384, 768, 769, 1025, 4097}) all.push_back(d);
  return all;
}

TEST(UnitKernel, SquareSumAndScaleAreTheSameInEveryTableAtAnyAlignment) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t d : dimensions()) {
    std::vector<float> x(d);
    for (float& v : x) v = normal(random) * std::exp2(static_cast<float>(random() % 60) - 30.0f);
    long double sum = 0.0L;
    for (const float v : x) sum += static_cast<long double>(v) * static_cast<long double>(v);
    std::vector<char> odd(d * sizeof(float) + 3);
    if (d > 0) std::memcpy(odd.data() + 3, x.data(), d * sizeof(float));
    const auto* unaligned = reinterpret_cast<const float*>(odd.data() + 3);
    const double factor = 0.3141592653589793;
    double first = -1.0;
    for (const Kernels* k : available_kernels()) {
      const double got = k->square_sum(x.data(), d);
      if (first < 0.0) first = got;
      EXPECT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(first)) << k->name << " d=" << d;
      EXPECT_LE(std::fabs(static_cast<double>(got - sum)), 2.3e-16 * (6.0 + static_cast<double>(d) / 32.0) * first)
          << k->name << " d=" << d;
      EXPECT_EQ(k->square_sum(unaligned, d), got) << k->name << " d=" << d;
      std::vector<char> out(d * sizeof(float) + 5, 'z');
      k->scale(unaligned, factor, d, reinterpret_cast<float*>(out.data() + 1));
      for (size_t i = 0; i < d; ++i) {
        float y;
        std::memcpy(&y, out.data() + 1 + i * sizeof(float), sizeof(y));
        ASSERT_EQ(y, static_cast<float>(static_cast<double>(x[i]) * factor)) << k->name << " d=" << d << " " << i;
      }
      EXPECT_EQ(out.front(), 'z');
      for (size_t i = out.size() - 4; i < out.size(); ++i) EXPECT_EQ(out[i], 'z') << k->name << " d=" << d;
      std::vector<float> same = x;
      k->scale(same.data(), factor, d, same.data());
      for (size_t i = 0; i < d; ++i) EXPECT_EQ(same[i], static_cast<float>(static_cast<double>(x[i]) * factor));
    }
  }
}

TEST(UnitKernel, SumsOfExtremesNeitherOverflowNorVanish) {
  for (const Kernels* k : available_kernels()) {
    const std::vector<float> large(1000, std::numeric_limits<float>::max());
    const std::vector<float> small(1000, std::numeric_limits<float>::denorm_min());
    EXPECT_TRUE(std::isfinite(k->square_sum(large.data(), large.size()))) << k->name;
    EXPECT_GT(k->square_sum(small.data(), small.size()), 0.0) << k->name;
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      for (size_t at = 0; at < 70; ++at) {
        std::vector<float> x(70, 1.0f);
        x[at] = bad;
        EXPECT_FALSE(std::isfinite(k->square_sum(x.data(), x.size()))) << k->name << " at " << at;
      }
    }
  }
}

TEST(Unit, LengthIsOneWhateverTheScale) {
  for (const float scale : {1e-40f, 1e-20f, 1.0f, 1e20f, 3e38f}) {
    std::vector<float> x(100, 0.0f);
    for (size_t i = 0; i < x.size(); ++i) x[i] = scale * (i % 2 == 0 ? 1.0f : -0.5f);
    ASSERT_EQ(to_unit(x.data(), x.size(), x.data()), FINCH_OK);
    double sum = 0.0;
    for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
  std::vector<float> zero(5, 0.0f);
  EXPECT_EQ(to_unit(zero.data(), zero.size(), zero.data()), FINCH_ZERO_VECTOR);
  double factor = 7.0;
  EXPECT_EQ(unit_factor(zero.data(), zero.size(), &factor), FINCH_ZERO_VECTOR);
  EXPECT_EQ(factor, 7.0);
}

}  // namespace
}  // namespace finch
