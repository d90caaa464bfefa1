#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "toolfinch.h"

namespace {

std::vector<size_t> dimensions() {
  std::vector<size_t> out{0};
  for (size_t d = 1; d <= 130; ++d) out.push_back(d);
  for (const size_t d : {255, 256, 257, 383, 384, 385, 768, 769, 1024, 4097}) out.push_back(d);
  return out;
}

// Operands that end exactly where the allocation does, `shift` bytes off any alignment: reading one byte too much is an
// error under a sanitizer, and assuming alignment a crash.
class Shifted {
 public:
  Shifted(const std::vector<float>& values, size_t shift)
      : bytes_(values.size() * sizeof(float) + shift), shift_(shift) {
    if (!values.empty()) std::memcpy(bytes_.data() + shift, values.data(), values.size() * sizeof(float));
  }
  const float* get() const { return reinterpret_cast<const float*>(bytes_.data() + shift_); }

 private:
  std::vector<char> bytes_;
  size_t shift_;
};

// |computed - exact| <= gamma_n sum |a_i b_i| for any order of summation, fused or not (Higham).
double bound(const std::vector<float>& a, const std::vector<float>& b) {
  double magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) magnitude += std::abs(double{a[i]} * b[i]);
  const double n = static_cast<double>(a.size()) * 0x1p-24;
  return n / (1 - n) * magnitude + static_cast<double>(a.size()) * 0x1p-149;
}

double exact(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

std::vector<float> draw(std::mt19937& random, size_t d, bool wide) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-40, 40);
  std::vector<float> out(d);
  for (float& x : out) x = wide ? std::ldexp(normal(random), exponent(random)) : normal(random);
  return out;
}

class Dot : public testing::TestWithParam<const finch::Kernels*> {};

TEST_P(Dot, StaysWithinTheErrorBoundAtEveryDimensionAndAlignment) {
  std::mt19937 random(7);
  for (const size_t d : dimensions()) {
    for (const bool wide : {false, true}) {
      const auto a = draw(random, d, wide);
      const auto b = draw(random, d, wide);
      const double truth = exact(a, b);
      const double error = bound(a, b);
      const float first = GetParam()->dot(Shifted(a, 0).get(), Shifted(b, 0).get(), d);
      ASSERT_LE(std::abs(first - truth), error) << "d " << d;
      for (size_t shift = 1; shift < 8; ++shift) {
        const float other = GetParam()->dot(Shifted(a, shift).get(), Shifted(b, 8 - shift).get(), d);
        ASSERT_EQ(std::memcmp(&first, &other, sizeof(first)), 0) << "alignment changed the result, d " << d;
      }
    }
  }
}

TEST_P(Dot, ExtremesBehave) {
  const auto* kernel = GetParam();
  for (const size_t d : dimensions()) {
    const std::vector<float> zeros(d), ones(d, 1.0f);
    EXPECT_EQ(kernel->dot(zeros.data(), ones.data(), d), 0.0f);
    EXPECT_EQ(kernel->dot(ones.data(), ones.data(), d), static_cast<float>(d));
    if (d == 0) continue;
    std::vector<float> one_hot(d);
    one_hot[d - 1] = 3.0f;
    EXPECT_EQ(kernel->dot(one_hot.data(), ones.data(), d), 3.0f);
    one_hot[d - 1] = std::nanf("");
    EXPECT_TRUE(std::isnan(kernel->dot(one_hot.data(), ones.data(), d)));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTables, Dot,
                         testing::ValuesIn(finch::available_kernels().begin(), finch::available_kernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Resolver, NamesATableThatIsAvailable) {
  const auto tables = finch::available_kernels();
  ASSERT_FALSE(tables.empty());
  EXPECT_STREQ(tables[0]->name, "portable");
  const bool among = std::any_of(tables.begin(), tables.end(), [](const auto* t) { return t == &finch::kernels(); });
  EXPECT_TRUE(among);
  EXPECT_STREQ(finch_isa(), finch::kernels().name);
  EXPECT_EQ(std::strncmp(finch_isa_reason(), finch_isa(), std::strlen(finch_isa())), 0);
}

// The choice is made once a process: each case runs in a new one, which finds the variable set from its start.
TEST(ResolverDeathTest, FollowsTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto expect = [](const char* wanted, const char* level, const char* reason) {
    setenv("TOOLFINCH_ISA", wanted, 1);
    EXPECT_EXIT(std::_Exit(std::strcmp(finch_isa(), level) == 0 && std::strstr(finch_isa_reason(), reason) ? 0 : 1),
                testing::ExitedWithCode(0), "")
        << wanted;
    unsetenv("TOOLFINCH_ISA");
  };
  for (const auto* table : finch::available_kernels()) expect(table->name, table->name, "TOOLFINCH_ISA");
  const char* best = finch::available_kernels().back()->name;
  expect("no-such-level", best, "no-such-level");
  expect("", best, "best");
}

}  // namespace
