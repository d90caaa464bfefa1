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
  for (const size_t d : {255, 257, 383, 384, 768, 769, 1025, 4097}) all.push_back(d);
  return all;
}

// Arms as the core keeps them, but `offset` floats behind a 16-byte boundary and with a canary behind each vector.
struct Arms {
  static constexpr float kCanary = 12345.0f;

  Arms(size_t count, size_t d, size_t offset, std::mt19937* random)
      : stride(d + 3), memory(offset + count * 3 * (d + 3), kCanary), x(d) {
    std::normal_distribution<float> normal;
    for (size_t k = 0; k < count; ++k) starts.push_back(offset + k * 3 * stride);
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < d; ++i) {
        arm(k)[i] = std::exp(normal(*random));
        arm(k)[stride + i] = normal(*random);
        arm(k)[2 * stride + i] = 1.0f / arm(k)[i];
      }
    }
    for (float& v : x) v = normal(*random);
  }
  float* arm(size_t k) { return memory.data() + starts[k]; }
  std::vector<const float*> pointers() {
    std::vector<const float*> all;
    for (size_t k = 0; k < starts.size(); ++k) all.push_back(arm(k));
    return all;
  }

  size_t stride;
  std::vector<float> memory;
  std::vector<float> x;
  std::vector<size_t> starts;
};

TEST(BanditKernel, ScoresAgreeWithFloat64AndAreTheSameInEveryTableAndListLength) {
  std::mt19937 random(3);
  for (const size_t d : dimensions()) {
    for (const size_t count : {1, 2, 5}) {
      Arms arms(count, d, d % 4, &random);
      const std::vector<const float*> pointers = arms.pointers();
      std::vector<float> first_means, first_variances;
      for (const Kernels* k : available_kernels()) {
        std::vector<float> means(count, -1.0f), variances(count, -1.0f);
        k->arm_scores(pointers.data(), arms.stride, count, arms.x.data(), d, means.data(), variances.data());
        if (first_means.empty()) {
          first_means = means;
          first_variances = variances;
        }
        for (size_t a = 0; a < count; ++a) {
          double mean = 0.0, variance = 0.0, size = 0.0;
          for (size_t i = 0; i < d; ++i) {
            const double x = static_cast<double>(arms.x[i]);
            const double b = static_cast<double>(pointers[a][arms.stride + i]);
            const double inverse = static_cast<double>(pointers[a][2 * arms.stride + i]);
            mean += b * x * inverse;
            size += std::fabs(b * x * inverse);
            variance += x * x * inverse;
          }
          const double bound = 1.2e-7 * (8.0 + static_cast<double>(d) / 32.0);
          EXPECT_LE(std::fabs(static_cast<double>(means[a]) - mean), bound * size) << k->name << " d=" << d;
          EXPECT_LE(std::fabs(static_cast<double>(variances[a]) - variance), bound * variance) << k->name << " d=" << d;
          EXPECT_EQ(bits(means[a]), bits(first_means[a])) << k->name << " d=" << d << " count=" << count;
          EXPECT_EQ(bits(variances[a]), bits(first_variances[a])) << k->name << " d=" << d << " count=" << count;
          float alone_mean = -1.0f, alone_variance = -1.0f;
          k->arm_scores(&pointers[a], arms.stride, 1, arms.x.data(), d, &alone_mean, &alone_variance);
          EXPECT_EQ(bits(alone_mean), bits(means[a])) << k->name << " d=" << d;
          EXPECT_EQ(bits(alone_variance), bits(variances[a])) << k->name << " d=" << d;
        }
      }
    }
  }
}

TEST(BanditKernel, ContextDotsAgreeWithFloat64AndAreTheSameInEveryTable) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const size_t d : dimensions()) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{5}}) {
      // Off any line, and followed by a value that would show.
      std::vector<float> memory((count + 1) * (d + 1) + 1, 1e30f);
      std::vector<const float*> sums(count);
      for (size_t k = 0; k <= count; ++k) {
        float* sum = memory.data() + 1 + k * (d + 1);
        for (size_t i = 0; i < d; ++i) sum[i] = normal(random);
        if (k < count) sums[k] = sum;
      }
      const float* x = memory.data() + 1 + count * (d + 1);
      std::vector<float> first;
      for (const Kernels* k : available_kernels()) {
        std::vector<float> dots(count + 1, -7.0f);
        k->context_dots(sums.data(), count, x, d, dots.data());
        EXPECT_EQ(dots[count], -7.0f) << k->name;
        if (first.empty()) first = dots;
        for (size_t s = 0; s < count; ++s) {
          double want = 0.0, size = 0.0;
          for (size_t i = 0; i < d; ++i) {
            const double product = static_cast<double>(sums[s][i]) * static_cast<double>(x[i]);
            want += product;
            size += std::fabs(product);
          }
          const double bound = 1.2e-7 * (8.0 + static_cast<double>(d) / 32.0);
          EXPECT_LE(std::fabs(static_cast<double>(dots[s]) - want), bound * size) << k->name << " d=" << d;
          EXPECT_EQ(bits(dots[s]), bits(first[s])) << k->name << " d=" << d << " count=" << count;
        }
      }
    }
  }
}

TEST(BanditKernel, UpdateAndInverseAgreeWithFloat64AndAreTheSameInEveryTable) {
  std::mt19937 random(4);
  for (const size_t d : dimensions()) {
    const Arms before(1, d, 1 + d % 3, &random);
    const float gamma = 0.95f, floor = 0.05f, reward = d % 2 == 0 ? 0.75f : -0.25f;
    std::vector<float> first;
    for (const Kernels* k : available_kernels()) {
      Arms after = before;
      k->arm_update(after.arm(0), after.stride, after.x.data(), d, gamma, floor, reward);
      k->arm_invert(after.arm(0), after.stride, d);
      if (first.empty()) first = after.memory;
      for (size_t i = 0; i < after.memory.size(); ++i) {
        ASSERT_EQ(bits(after.memory[i]), bits(first[i])) << k->name << " d=" << d << " word " << i;
      }
      for (size_t i = 0; i < after.stride; ++i) {
        const float a = after.arm(0)[i];
        const float b = after.arm(0)[after.stride + i];
        const float inverse = after.arm(0)[2 * after.stride + i];
        if (i >= d) {
          EXPECT_EQ(a, Arms::kCanary);
          EXPECT_EQ(b, Arms::kCanary);
          EXPECT_EQ(inverse, Arms::kCanary);
          continue;
        }
        const double old_a = static_cast<double>(before.memory[before.starts[0] + i]);
        const double old_b = static_cast<double>(before.memory[before.starts[0] + before.stride + i]);
        const double x = static_cast<double>(before.x[i]);
        const double want_a = static_cast<double>(gamma) * old_a + x * x + static_cast<double>(floor);
        const double want_b = static_cast<double>(gamma) * old_b + static_cast<double>(reward) * x;
        EXPECT_LE(std::fabs(static_cast<double>(a) - want_a), 1.2e-7 * want_a) << k->name << " d=" << d;
        EXPECT_LE(std::fabs(static_cast<double>(b) - want_b), 1.2e-7 * (std::fabs(old_b) + std::fabs(x)));
        EXPECT_EQ(inverse, 1.0f / a) << k->name << " d=" << d;
      }
    }
  }
}

// Where the fused multiply-add of the portable table must round like the hardware's: sums in the middle of two floats,
// subnormal results, cancellation, operands that differ by any power of two.
TEST(BanditKernel, RoundsOnceAlsoInTheHardCases) {
  std::mt19937 random(5);
  const auto wild = [&] {
    const uint32_t sign = random() & 0x80000000u;
    const uint32_t exponent = (random() % 200 + 27) << 23;  // 2^-100 ... 2^99
    const uint32_t mantissa = random() % 4 == 0 ? (random() % 2 == 0 ? 0u : 0x7fffffu) : random() & 0x7fffffu;
    return std::bit_cast<float>(sign | exponent | mantissa);
  };
  constexpr size_t d = 64;
  for (int round = 0; round < 3000; ++round) {
    Arms arms(1, d, 0, &random);
    float gamma = 0.5f + static_cast<float>(random() % 1000) / 2000.0f;
    float reward = static_cast<float>(random() % 1001) / 1000.0f - 0.5f;
    for (size_t i = 0; i < d; ++i) {
      // A small b and x meet the subnormals; the others, ties and cancellation.
      const float scale = round % 3 == 0 ? 1e-37f : 1.0f;
      arms.arm(0)[i] = std::fabs(wild());
      arms.arm(0)[arms.stride + i] = wild() * scale;
      arms.x[i] = round % 2 == 0 ? wild() * scale : arms.arm(0)[arms.stride + i] * -gamma / (reward + 1e-3f);
      if (!std::isfinite(arms.x[i] * arms.x[i]) || !std::isfinite(arms.arm(0)[i])) arms.x[i] = arms.arm(0)[i] = 1.0f;
    }
    std::vector<float> first;
    for (const Kernels* k : available_kernels()) {
      Arms after = arms;
      k->arm_update(after.arm(0), after.stride, after.x.data(), d, gamma, 1e-30f, reward);
      if (first.empty()) first = after.memory;
      for (size_t i = 0; i < after.memory.size(); ++i) {
        ASSERT_EQ(bits(after.memory[i]), bits(first[i])) << k->name << " round " << round << " word " << i;
      }
    }
  }
}

TEST(BanditKernel, AStopsAtItsSmallestAndNothingBecomesSubnormal) {
  for (const Kernels* k : available_kernels()) {
    constexpr size_t d = 37;
    std::vector<float> arm(3 * d, 1.0f), x(d, 0.0f);
    for (int i = 0; i < 4000; ++i) k->arm_update(arm.data(), d, x.data(), d, 0.9f, kSmallestA, 1.0f);
    k->arm_invert(arm.data(), d, d);
    for (size_t i = 0; i < d; ++i) {
      EXPECT_GE(arm[i], kSmallestA) << k->name;
      EXPECT_LE(arm[i], 20.0f * kSmallestA) << k->name;
      EXPECT_TRUE(std::isnormal(arm[d + i])) << k->name << " " << arm[d + i];
      EXPECT_TRUE(std::isnormal(arm[2 * d + i])) << k->name;
    }
    float mean = 0.0f, variance = 0.0f;
    x.assign(d, 1.0f);
    const float* start = arm.data();
    k->arm_scores(&start, d, 1, x.data(), d, &mean, &variance);
    EXPECT_TRUE(std::isfinite(mean) && std::isfinite(variance)) << k->name;
    EXPECT_LT(std::fabs(mean), 1e-4f) << k->name;
  }
}

}  // namespace
}  // namespace finch
