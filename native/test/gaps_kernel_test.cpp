#include <gtest/gtest.h>

#include <algorithm>
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
  for (const size_t d : {255, 257, 383, 384, 511, 768, 769, 1023, 4097}) all.push_back(d);
  return all;
}

uint32_t bits(float v) { return std::bit_cast<uint32_t>(v); }

// Rows of d floats, each in a heap block of its exact size that begins `bytes` behind a 64-byte boundary: the address
// sanitizer sees a read past either end.
class Rows {
 public:
  Rows(size_t count, size_t d, size_t bytes, std::mt19937* random) : d_(d), bytes_(bytes) {
    std::normal_distribution<float> normal;
    for (size_t r = 0; r < count; ++r) {
      values_.emplace_back(d);
      for (float& v : values_.back()) v = normal(*random);
      auto* block = static_cast<char*>(::operator new (bytes + d * sizeof(float), std::align_val_t{64}));
      blocks_.push_back(block);
      if (d > 0) std::memcpy(block + bytes, values_.back().data(), d * sizeof(float));
      pointers_.push_back(reinterpret_cast<const float*>(block + bytes));
    }
  }
  ~Rows() {
    for (char* block : blocks_) ::operator delete (block, std::align_val_t{64});
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  const float* const* data() const { return pointers_.data(); }
  void move(size_t row, const float* to) { pointers_[row] = to; }
  const std::vector<float>& values(size_t row) const { return values_[row]; }

 private:
  size_t d_, bytes_;
  std::vector<std::vector<float>> values_;
  std::vector<char*> blocks_;
  std::vector<const float*> pointers_;
};

TEST(GapsKernel, AgreesWithFloat64AndWithDotToTheBit) {
  std::mt19937 random(1);
  for (const size_t d : dimensions()) {
    for (const size_t count : {1, 2, 3, 4, 5, 8}) {
      const Rows rows(count, d, (d % 3) * 16, &random);
      for (const Kernels* k : available_kernels()) {
        std::vector<float> dots(count, -1.0f), norms(count, -1.0f);
        k->gap_rows(rows.data(), count, d, dots.data(), norms.data());
        EXPECT_EQ(dots[count - 1], -1.0f);
        const double bound = 1.2e-7 * (4.0 + static_cast<double>(d) / 8.0);
        for (size_t r = 0; r < count; ++r) {
          const std::vector<float>& a = rows.values(r);
          EXPECT_EQ(bits(norms[r]), bits(k->dot(a.data(), a.data(), d))) << k->name << " d=" << d << " row " << r;
          double norm = 0.0, dot = 0.0, size = 0.0;
          for (size_t i = 0; i < d; ++i) norm += static_cast<double>(a[i]) * static_cast<double>(a[i]);
          EXPECT_LE(std::fabs(static_cast<double>(norms[r]) - norm), bound * norm) << k->name << " d=" << d;
          if (r + 1 == count) continue;
          const std::vector<float>& b = rows.values(r + 1);
          EXPECT_EQ(bits(dots[r]), bits(k->dot(a.data(), b.data(), d))) << k->name << " d=" << d << " row " << r;
          for (size_t i = 0; i < d; ++i) {
            dot += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            size += std::fabs(static_cast<double>(a[i]) * static_cast<double>(b[i]));
          }
          EXPECT_LE(std::fabs(static_cast<double>(dots[r]) - dot), bound * size) << k->name << " d=" << d;
        }
      }
    }
  }
}

TEST(GapsKernel, ReadsAnyByteAlignmentAndNothingBeyond) {
  for (const size_t d : dimensions()) {
    for (const Kernels* k : available_kernels()) {
      constexpr size_t kCount = 7;
      float dots[kCount] = {}, norms[kCount] = {};
      for (const size_t bytes : {0, 1, 4, 16, 28, 60, 63}) {
        std::mt19937 random(2);
        const Rows rows(kCount, d, bytes, &random);
        float got_dots[kCount] = {}, got_norms[kCount] = {};
        k->gap_rows(rows.data(), kCount, d, got_dots, got_norms);
        if (bytes == 0) {
          std::memcpy(dots, got_dots, sizeof(dots));
          std::memcpy(norms, got_norms, sizeof(norms));
        }
        EXPECT_EQ(std::memcmp(dots, got_dots, sizeof(dots)), 0) << k->name << " d=" << d << " at " << bytes;
        EXPECT_EQ(std::memcmp(norms, got_norms, sizeof(norms)), 0) << k->name << " d=" << d << " at " << bytes;
      }
      // Rows that begin at different distances from a cache line.
      std::mt19937 random(2);
      Rows mixed(kCount, d, 4, &random);
      std::vector<float> moved = mixed.values(3);
      mixed.move(3, moved.data());
      float got_dots[kCount] = {}, got_norms[kCount] = {};
      k->gap_rows(mixed.data(), kCount, d, got_dots, got_norms);
      EXPECT_EQ(std::memcmp(dots, got_dots, sizeof(dots)), 0) << k->name << " d=" << d;
      EXPECT_EQ(std::memcmp(norms, got_norms, sizeof(norms)), 0) << k->name << " d=" << d;
    }
  }
}

TEST(GapsKernel, NotFiniteAlwaysShowsInTheNorm) {
  for (const size_t d : {1, 7, 16, 33, 64, 129}) {
    for (size_t at = 0; at < d; ++at) {
      for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        std::vector<float> a(d, 0.0f), b(d, 1.0f);
        b[at] = bad;
        const float* rows[] = {a.data(), b.data(), a.data(), b.data(), a.data()};
        for (const Kernels* k : available_kernels()) {
          float dots[5], norms[5];
          k->gap_rows(rows, 5, d, dots, norms);
          for (size_t r = 0; r < 5; ++r) {
            EXPECT_EQ(std::isfinite(norms[r]), r % 2 == 0) << k->name << " d=" << d << " at " << at;
          }
        }
      }
    }
  }
}

TEST(GapsKernel, CosinesAreRoundedOnceInEveryTable) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (size_t count = 0; count <= 66; ++count) {
    std::vector<float> dots(count), norms(count), wanted(count, 7.0f);
    for (size_t i = 0; i < count; ++i) {
      norms[i] = std::ldexp(normal(random) * normal(random) + 1e-3f, static_cast<int>(random() % 60) - 30);
      norms[i] = std::fabs(norms[i]);
    }
    for (size_t i = 0; i + 1 < count; ++i) {
      const double a = std::sqrt(static_cast<double>(norms[i])), b = std::sqrt(static_cast<double>(norms[i + 1]));
      dots[i] = static_cast<float>(a * b * 1.2 * std::sin(static_cast<double>(normal(random))));
      wanted[i] = static_cast<float>(std::clamp(static_cast<double>(dots[i]) / (a * b), -1.0, 1.0));
    }
    for (const Kernels* k : available_kernels()) {
      std::vector<float> got(count, 7.0f);
      k->cosines(dots.data(), norms.data(), count, got.data());
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(bits(got[i]), bits(wanted[i])) << k->name << " " << count << " " << i;
    }
  }
}

}  // namespace
}  // namespace finch
