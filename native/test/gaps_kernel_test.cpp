#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.hpp"

namespace finch {
namespace {

std::vector<size_t> dimensions() {
  std::vector<size_t> all = {0};
  for (size_t d = 1; d <= 130; ++d) all.push_back(d);
  for (const size_t d : {255, 257, 383, 511, 769, 1023, 4097}) all.push_back(d);
  return all;
}

uint32_t bits(float v) { return std::bit_cast<uint32_t>(v); }

TEST(GapsKernel, AgreesWithFloat64AndWithDotToTheBit) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t d : dimensions()) {
    for (size_t offset = 0; offset < 3; ++offset) {
      std::vector<float> a(d + offset), b(d + offset);
      for (float& v : a) v = normal(random);
      for (float& v : b) v = normal(random);
      const float* pa = a.data() + offset;
      const float* pb = b.data() + offset;
      double dot = 0.0, norm = 0.0, size = 0.0;
      for (size_t i = 0; i < d; ++i) {
        dot += static_cast<double>(pa[i]) * pb[i];
        norm += static_cast<double>(pb[i]) * pb[i];
        size += std::fabs(static_cast<double>(pa[i]) * pb[i]);
      }
      for (const Kernels* k : available_kernels()) {
        float got_dot = -1.0f, got_norm = -1.0f;
        k->dot_and_norm(pa, pb, d, &got_dot, &got_norm);
        const double bound = 1.2e-7 * (4.0 + static_cast<double>(d) / 8.0);
        EXPECT_LE(std::fabs(got_dot - dot), bound * size) << k->name << " d=" << d;
        EXPECT_LE(std::fabs(got_norm - norm), bound * norm) << k->name << " d=" << d;
        EXPECT_EQ(bits(got_dot), bits(k->dot(pa, pb, d))) << k->name << " d=" << d;
        EXPECT_EQ(bits(got_norm), bits(k->dot(pb, pb, d))) << k->name << " d=" << d;
      }
    }
  }
}

TEST(GapsKernel, ReadsAnyByteAlignmentAndNothingBeyond) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const size_t d : dimensions()) {
    std::vector<float> a(d), b(d);
    for (float& v : a) v = normal(random);
    for (float& v : b) v = normal(random);
    // Exact-size heap blocks at an odd address: the address sanitizer sees a read past the end.
    std::vector<char> odd_a(d * sizeof(float) + 1), odd_b(d * sizeof(float) + 3);
    if (d > 0) {
      std::memcpy(odd_a.data() + 1, a.data(), d * sizeof(float));
      std::memcpy(odd_b.data() + 3, b.data(), d * sizeof(float));
    }
    for (const Kernels* k : available_kernels()) {
      float dot = 0.0f, norm = 0.0f, odd_dot = 1.0f, odd_norm = 1.0f;
      k->dot_and_norm(a.data(), b.data(), d, &dot, &norm);
      k->dot_and_norm(reinterpret_cast<const float*>(odd_a.data() + 1),
                      reinterpret_cast<const float*>(odd_b.data() + 3), d, &odd_dot, &odd_norm);
      EXPECT_EQ(bits(dot), bits(odd_dot)) << k->name << " d=" << d;
      EXPECT_EQ(bits(norm), bits(odd_norm)) << k->name << " d=" << d;
    }
  }
}

TEST(GapsKernel, NotFiniteAlwaysShowsInTheNorm) {
  for (const size_t d : {1, 7, 16, 33, 64, 129}) {
    for (size_t at = 0; at < d; ++at) {
      for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        std::vector<float> a(d, 0.0f), b(d, 1.0f);
        b[at] = bad;
        for (const Kernels* k : available_kernels()) {
          float dot = 0.0f, norm = 0.0f;
          k->dot_and_norm(a.data(), b.data(), d, &dot, &norm);
          EXPECT_FALSE(std::isfinite(norm)) << k->name << " d=" << d << " at " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace finch
