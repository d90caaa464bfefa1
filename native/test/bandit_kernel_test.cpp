#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/bandit/bandit.hpp"
#include "kernels/kernels.hpp"

namespace finch {
namespace {

uint32_t bits(float v) { return std::bit_cast<uint32_t>(v); }

std::vector<size_t> dimensions() {
  std::vector<size_t> all = {0};
  for (size_t d = 1; d <= 130; ++d) all.push_back(d);
  for (const size_t d : {255, 257, 383, 769, 1025, 4097}) all.push_back(d);
  return all;
}

struct State {
  std::vector<float> inverse_a, b, x;

  State(size_t d, size_t offset, std::mt19937* random) : inverse_a(d + offset), b(d + offset), x(d + offset) {
    std::normal_distribution<float> normal;
    for (float& v : inverse_a) v = std::exp(normal(*random));
    for (float& v : b) v = normal(*random);
    for (float& v : x) v = normal(*random);
  }
};

TEST(BanditKernel, ScoreAgreesWithFloat64AndIsTheSameInEveryTable) {
  std::mt19937 random(3);
  for (const size_t d : dimensions()) {
    for (size_t offset = 0; offset < 2; ++offset) {
      const State s(d, offset, &random);
      double mean = 0.0, variance = 0.0, size = 0.0;
      for (size_t i = offset; i < d + offset; ++i) {
        const double t = static_cast<double>(s.x[i]) * s.inverse_a[i];
        mean += s.b[i] * t;
        size += std::fabs(s.b[i] * t);
        variance += s.x[i] * t;
      }
      float first_mean = 0.0f, first_variance = 0.0f;
      for (const Kernels* k : available_kernels()) {
        float got_mean = -1.0f, got_variance = -1.0f;
        k->arm_score(s.inverse_a.data() + offset, s.b.data() + offset, s.x.data() + offset, d, &got_mean,
                     &got_variance);
        const double bound = 1.2e-7 * (8.0 + static_cast<double>(d) / 32.0);
        EXPECT_LE(std::fabs(got_mean - mean), bound * size) << k->name << " d=" << d;
        EXPECT_LE(std::fabs(got_variance - variance), bound * variance) << k->name << " d=" << d;
        if (k == available_kernels().front()) {
          first_mean = got_mean;
          first_variance = got_variance;
        }
        EXPECT_EQ(bits(got_mean), bits(first_mean)) << k->name << " d=" << d;
        EXPECT_EQ(bits(got_variance), bits(first_variance)) << k->name << " d=" << d;
      }
    }
  }
}

TEST(BanditKernel, UpdateAgreesWithFloat64AndIsTheSameInEveryTable) {
  std::mt19937 random(4);
  for (const size_t d : dimensions()) {
    const State s(d, 1, &random);
    const float gamma = 0.95f, floor = 0.05f, reward = d % 2 == 0 ? 0.75f : -0.25f;
    std::vector<float> first_inverse, first_b;
    for (const Kernels* k : available_kernels()) {
      State t = s;
      k->arm_update(t.inverse_a.data() + 1, t.b.data() + 1, t.x.data() + 1, d, gamma, floor, reward);
      EXPECT_EQ(bits(t.inverse_a[0]), bits(s.inverse_a[0]));
      EXPECT_EQ(bits(t.b[0]), bits(s.b[0]));
      for (size_t i = 1; i <= d; ++i) {
        const double x = s.x[i];
        const double a = static_cast<double>(gamma) / s.inverse_a[i] + x * x + floor;
        const double b = static_cast<double>(gamma) * s.b[i] + reward * x;
        EXPECT_LE(std::fabs(t.inverse_a[i] * a - 1.0), 5e-7) << k->name << " d=" << d;
        EXPECT_LE(std::fabs(t.b[i] - b), 2e-7 * (std::fabs(s.b[i]) + std::fabs(x))) << k->name << " d=" << d;
      }
      if (first_inverse.empty()) {
        first_inverse = t.inverse_a;
        first_b = t.b;
      }
      for (size_t i = 0; i <= d; ++i) {
        EXPECT_EQ(bits(t.inverse_a[i]), bits(first_inverse[i])) << k->name << " d=" << d;
        EXPECT_EQ(bits(t.b[i]), bits(first_b[i])) << k->name << " d=" << d;
      }
    }
  }
}

TEST(BanditKernel, InverseStopsAtItsLargest) {
  for (const Kernels* k : available_kernels()) {
    std::vector<float> inverse_a(37, 1.0f), b(37, 1.0f), x(37, 0.0f);
    for (int i = 0; i < 400; ++i) k->arm_update(inverse_a.data(), b.data(), x.data(), 37, 0.5f, 0.0f, 1.0f);
    for (const float v : inverse_a) EXPECT_EQ(v, kLargestInverse) << k->name;
    float mean = 0.0f, variance = 0.0f;
    x.assign(37, 1.0f);
    k->arm_score(inverse_a.data(), b.data(), x.data(), 37, &mean, &variance);
    EXPECT_TRUE(std::isfinite(mean) && std::isfinite(variance)) << k->name;
  }
}

}  // namespace
}  // namespace finch
