#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bandit_fixture.hpp"
#include "hash.hpp"

namespace finch::test {
namespace {

constexpr finch_bandit_form kForms[] = {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL, FINCH_BANDIT_MEAN};

Bandit trained(uint32_t d, finch_bandit_form form, unsigned seed) {
  Bandit bandit = make_bandit(bandit_options(d, form));
  std::mt19937 random(seed);
  for (int i = 0; i < 30; ++i) {
    const std::string id = "tool " + std::string(random() % 4, 'x');
    report(bandit, id, random_vector(&random, d), 0.5f, static_cast<float>(random() % 2), 1000.0 * i);
  }
  return bandit;
}

finch_status restore(const Bandit& bandit, const std::vector<char>& bytes) {
  return finch_bandit_deserialize(bandit.get(), bytes.data(), bytes.size());
}

// With the checksum put right, so that the checks behind it are reached.
std::vector<char> sealed(std::vector<char> bytes) {
  const uint64_t sum = checksum(bytes.data(), bytes.size() - 8);
  for (size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<char>(sum >> (8 * i));
  return bytes;
}

TEST(BanditState, RoundTripKeepsEveryBit) {
  for (const finch_bandit_form form : kForms) {
    for (const uint32_t d : {1u, 7u, 16u, 33u}) {
      const Bandit original = trained(d, form, d);
      const std::vector<char> bytes = serialized(original);
      const Bandit copy = make_bandit(bandit_options(d, form));
      report(copy, "gone after", std::vector<float>(d, 1.0f), 0.5f, 1.0f);
      ASSERT_EQ(restore(copy, bytes), FINCH_OK) << finch_last_error();
      EXPECT_EQ(serialized(copy), bytes);
      // And it goes on the same way.
      std::mt19937 random(77);
      for (int i = 0; i < 10; ++i) {
        const std::vector<float> x = random_vector(&random, d);
        for (const Bandit* b : {&original, &copy}) ASSERT_EQ(report(*b, "tool x", x, 0.5f, 0.0f, 1e6), FINCH_OK);
        const finch_arm_score s = score(original, "tool xx", x, 0.5f, 2e6);
        const finch_arm_score t = score(copy, "tool xx", x, 0.5f, 2e6);
        EXPECT_EQ(std::memcmp(&s, &t, sizeof(s)), 0);
      }
      EXPECT_EQ(serialized(copy), serialized(original));
    }
  }
}

// The state as an earlier version wrote it: of arms without a contrast, their ids up to 8 bytes. Version 3 had two
// budgets and no words on contrasts, version 2 no budget.
std::vector<char> as_version(const std::vector<char>& bytes, uint32_t d, bool keeps_vectors, char version) {
  std::vector<char> old(bytes.begin(), bytes.begin() + 48);
  if (version == 3) {
    old.insert(old.end(), bytes.begin() + 48, bytes.begin() + 64);
    old.insert(old.end(), bytes.begin() + 72, bytes.begin() + 80);
  }
  const std::ptrdiff_t arm = 64 + 8 + (keeps_vectors ? 8 * static_cast<std::ptrdiff_t>(d) : 0);
  for (auto at = bytes.begin() + 80; at + arm <= bytes.end() - 8; at += arm) {
    old.insert(old.end(), at, at + 56);
    old.insert(old.end(), at + 64, at + arm);
  }
  old[8] = version;
  const uint64_t arms = old.size() - 48;
  for (size_t i = 0; i < 8; ++i) old[40 + i] = static_cast<char>(arms >> (8 * i));
  old.insert(old.end(), 8, 0);
  return sealed(old);
}

TEST(BanditState, ReadsEarlierVersions) {
  for (const finch_bandit_form form : kForms) {
    for (const char version : {2, 3}) {
      const Bandit original = make_bandit(bandit_options(5, form));
      for (int i = 0; i < 6; ++i) {
        report(original, "tool " + std::to_string(i), std::vector<float>(5, 1.0f), 0.5f, 1.0f);
      }
      const std::vector<char> old = as_version(serialized(original), 5, form != FINCH_BANDIT_MEAN, version);
      const Bandit copy = make_bandit(bandit_options(5, form));
      ASSERT_EQ(restore(copy, old), FINCH_OK) << finch_last_error();
      EXPECT_EQ(serialized(copy), serialized(original));  // nothing had been spent
    }
  }
}

TEST(BanditState, RefusesBudgetsThatCannotBe) {
  const Bandit bandit = trained(3, FINCH_BANDIT_CALIBRATED, 1);
  const std::vector<char> bytes = serialized(bandit);
  for (const size_t at : {48u, 56u, 64u}) {
    for (const double tokens : {-0.5, 3.5, std::nan(""), HUGE_VAL}) {
      std::vector<char> bad = bytes;
      std::memcpy(bad.data() + at, &tokens, sizeof(tokens));
      EXPECT_EQ(restore(bandit, sealed(bad)), FINCH_CORRUPT) << at << " " << tokens;
    }
  }
  std::vector<char> bad = bytes;
  const double time = HUGE_VAL;
  std::memcpy(bad.data() + 72, &time, sizeof(time));
  EXPECT_EQ(restore(bandit, sealed(bad)), FINCH_CORRUPT);
  EXPECT_EQ(serialized(bandit), bytes);
}

TEST(BanditState, OrderOfArmsDoesNotShow) {
  const std::vector<float> x = {1, 2, 3};
  const Bandit one = make_bandit(bandit_options(3, FINCH_BANDIT_MEAN));
  const Bandit two = make_bandit(bandit_options(3, FINCH_BANDIT_MEAN));
  for (int i = 0; i < 200; ++i) report(one, "tool " + std::to_string(i), x, 0.5f, 1.0f);
  for (int i = 199; i >= 0; --i) report(two, "tool " + std::to_string(i), x, 0.5f, 1.0f);
  EXPECT_EQ(serialized(one), serialized(two));
  EXPECT_EQ(score(one, "new", x, 0.5f).bonus, score(two, "new", x, 0.5f).bonus);
}

// The same log gives the same bytes under every instruction set, compiler and machine: these are their checksums.
TEST(BanditState, SameBytesEverywhere) {
  const uint64_t expected[] = {3140696362352267598u, 9158569753302107068u, 2618043663335652163u};
  for (size_t f = 0; f < 3; ++f) {
    const Bandit bandit = make_bandit(bandit_options(45, kForms[f]));
    for (int i = 0; i < 100; ++i) {
      std::vector<float> x(45);
      for (int j = 0; j < 45; ++j) x[static_cast<size_t>(j)] = static_cast<float>((i * 7 + j * 13) % 11 - 5) / 3.0f;
      report(bandit, "tool " + std::to_string(i % 6), x, 0.3f, static_cast<float>(i * i % 5) / 4.0f, 12345.0 * i);
    }
    const std::vector<char> bytes = serialized(bandit);
    EXPECT_EQ(checksum(bytes.data(), bytes.size()), expected[f]) << "form " << f;
  }
}

TEST(BanditState, EmptyState) {
  const Bandit empty = make_bandit(bandit_options(3));
  const Bandit other = trained(3, FINCH_BANDIT_CALIBRATED, 1);
  ASSERT_EQ(restore(other, serialized(empty)), FINCH_OK);
  EXPECT_EQ(arm_count(other), 0u);
}

TEST(BanditState, BufferTooSmall) {
  const Bandit bandit = trained(3, FINCH_BANDIT_CALIBRATED, 1);
  const std::vector<char> bytes = serialized(bandit);
  std::vector<char> small(bytes.size() - 1, 'z');
  size_t size = 0;
  EXPECT_EQ(finch_bandit_serialize(bandit.get(), small.data(), small.size(), &size), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(size, bytes.size());
  EXPECT_EQ(std::count(small.begin(), small.end(), 'z'), static_cast<std::ptrdiff_t>(small.size()));
  EXPECT_EQ(finch_bandit_serialize(bandit.get(), small.data(), small.size(), nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_deserialize(bandit.get(), nullptr, 8), FINCH_INVALID_ARGUMENT);
}

TEST(BanditState, EveryCorruptByteIsFoundAndNothingChanges) {
  for (const finch_bandit_form form : kForms) {
    const Bandit bandit = trained(3, form, 5);
    const std::vector<char> good = serialized(bandit);
    for (size_t i = 0; i < good.size(); ++i) {
      for (const int flip : {1, 0x80, 0xff}) {
        std::vector<char> bad = good;
        bad[i] = static_cast<char>(bad[i] ^ flip);
        const finch_status status = restore(bandit, bad);
        EXPECT_TRUE(status == FINCH_CORRUPT || (status == FINCH_VERSION && i >= 8 && i < 12)) << "byte " << i;
      }
    }
    for (size_t size = 0; size < good.size(); ++size) {
      EXPECT_EQ(restore(bandit, std::vector<char>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size + 1))),
                size + 1 == good.size() ? FINCH_OK : FINCH_CORRUPT);
    }
    std::vector<char> longer = good;
    longer.insert(longer.end(), 8, 0);
    EXPECT_EQ(restore(bandit, longer), FINCH_CORRUPT);
    EXPECT_EQ(serialized(bandit), good);
  }
}

// A forger who knows the checksum must still meet the bounds: nothing is read beyond the buffer, nothing absurd is
// kept.
TEST(BanditState, ForgedBytesAreRefusedOrHarmless) {
  for (const finch_bandit_form form : kForms) {
    const Bandit bandit = trained(5, form, 6);
    const std::vector<char> good = serialized(bandit);
    std::mt19937 random(7);
    const std::vector<float> x = {1, 2, 3, 4, 5};
    for (size_t i = 0; i + 8 < good.size(); ++i) {
      for (int round = 0; round < 6; ++round) {
        std::vector<char> bad = good;
        bad[i] = static_cast<char>(round == 0 ? 0xff : round == 1 ? 0x7f : round == 2 ? 0 : random());
        const finch_status status = restore(bandit, sealed(bad));
        if (status != FINCH_OK) {
          ASSERT_EQ(restore(bandit, good), FINCH_OK);
          continue;
        }
        for (const char* id : {"tool ", "tool x", "tool xx", "tool xxx"}) {
          const finch_arm_score s = score(bandit, id, x, 0.5f, 1e6);
          EXPECT_TRUE(std::isfinite(s.mean) && std::isfinite(s.bonus) && s.availability >= 0 && s.availability <= 1)
              << "byte " << i;
        }
      }
    }
  }
}

TEST(BanditState, ForgedCountsAndLengths) {
  const Bandit bandit = trained(5, FINCH_BANDIT_CALIBRATED, 8);
  const std::vector<char> good = serialized(bandit);
  const auto with = [&](size_t at, uint64_t value, size_t bytes) {
    std::vector<char> bad = good;
    for (size_t i = 0; i < bytes; ++i) bad[at + i] = static_cast<char>(value >> (8 * i));
    return restore(bandit, sealed(bad));
  };
  for (const uint64_t value : {uint64_t{0}, uint64_t{3}, uint64_t{5}, uint64_t{1} << 40, ~uint64_t{0}}) {
    EXPECT_EQ(with(32, value, 8), FINCH_CORRUPT) << value;  // number of arms (4)
    EXPECT_EQ(with(40, value, 8), FINCH_CORRUPT) << value;  // bytes of arms
  }
  for (const uint64_t value : {0u, 4u, 9u, 4096u, 4097u, 0xffffffffu}) {
    EXPECT_EQ(with(80, value, 4), FINCH_CORRUPT) << value;  // bytes of the first id (5)
  }
  EXPECT_EQ(with(16, 6, 4), FINCH_DIMENSION);
  EXPECT_EQ(with(12, 1, 4), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(with(8, 1, 4), FINCH_VERSION);
  EXPECT_EQ(with(8, 5, 4), FINCH_VERSION);
  EXPECT_EQ(with(28, 1, 4), FINCH_CORRUPT);
  EXPECT_EQ(serialized(bandit), good);
}

// Each of these numbers may be, together they would give scores past float32's range.
TEST(BanditState, RefusesVectorsThatNoOutcomesMake) {
  for (const finch_bandit_form form : {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL}) {
    finch_bandit_options options = bandit_options(1, form);
    options.gamma = 1.0f;
    const Bandit bandit = make_bandit(options);
    ASSERT_EQ(report(bandit, "a", {1.0f}, 0.5f, 1.0f), FINCH_OK);
    const std::vector<char> good = serialized(bandit);
    std::vector<char> bad = good;
    const auto put = [&](size_t at, auto value) { std::memcpy(bad.data() + 72 + at, &value, sizeof(value)); };
    put(16, uint64_t{1} << 53);  // updates
    put(24, 1e15);               // evidence
    put(64, 1e-30f);             // A
    put(68, 1e15f);              // b
    const finch_status status = restore(bandit, sealed(bad));
    EXPECT_EQ(status, FINCH_CORRUPT) << score(bandit, "a", {1.0f}, 0.5f, 1e6).mean;
    EXPECT_EQ(serialized(bandit), good);
  }
}

TEST(BanditState, ReadsWhatExtremeOutcomesMake) {
  std::mt19937 random(10);
  const auto size = [&] { return std::pow(10.0f, -static_cast<float>(random() % 25)); };
  for (const finch_bandit_form form : {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL}) {
    for (const float lambda : {1e-6f, 1.0f, 1e6f}) {
      for (const float gamma : {1e-6f, 0.5f, 0.95f, 1.0f}) {
        finch_bandit_options options = bandit_options(5, form);
        options.lambda = lambda;
        options.gamma = gamma;
        const Bandit bandit = make_bandit(options);
        for (int i = 0; i < 2000; ++i) {
          std::vector<float> x(5);
          for (float& each : x) each = (random() % 2 == 0 ? 1.0f : -1.0f) * (random() % 4 == 0 ? 0.0f : size());
          x[random() % 5] = 1.0f;
          const auto y = static_cast<float>(random() % 3) / 2.0f;
          ASSERT_EQ(report(bandit, "a", x, static_cast<float>(random() % 3) / 2.0f, y, 1000.0 * i), FINCH_OK);
          if (i % 97 != 0) continue;
          const Bandit copy = make_bandit(options);
          ASSERT_EQ(restore(copy, serialized(bandit)), FINCH_OK) << finch_last_error() << " " << lambda << " " << gamma;
        }
      }
    }
  }
}

TEST(BanditState, OtherOptionsAreRefused) {
  const std::vector<char> bytes = serialized(trained(5, FINCH_BANDIT_CALIBRATED, 9));
  finch_bandit_options options = bandit_options(6);
  EXPECT_EQ(restore(make_bandit(options), bytes), FINCH_DIMENSION);
  options = bandit_options(5, FINCH_BANDIT_LITERAL);
  EXPECT_EQ(restore(make_bandit(options), bytes), FINCH_INVALID_ARGUMENT);
  options = bandit_options(5);
  options.lambda = 2.0f;
  EXPECT_EQ(restore(make_bandit(options), bytes), FINCH_INVALID_ARGUMENT);
  options = bandit_options(5);
  options.gamma = 0.9f;
  EXPECT_EQ(restore(make_bandit(options), bytes), FINCH_INVALID_ARGUMENT);
  options = bandit_options(5);
  options.alpha = 0.3f;  // how arms are read, not what they hold
  EXPECT_EQ(restore(make_bandit(options), bytes), FINCH_OK);
}

}  // namespace
}  // namespace finch::test
