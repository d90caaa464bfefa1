#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "golden.hpp"
#include "toolfinch.h"

namespace finch::test {
namespace {

finch_weights weights_of(const Json& json) {
  finch_weights w{};
  w.size = sizeof(w);
  const auto read = [&](const char* name) { return json.contains(name) ? to_float(json.at(name)) : 0.0f; };
  w.semantic = read("semantic");
  w.bandit = read("bandit");
  w.prior = read("prior");
  w.outage = read("outage");
  w.clamp = json.value("clamp", 0u);
  return w;
}

std::vector<float> column(const Json& json, const char* name) {
  return json.contains(name) ? floats(json.at(name)) : std::vector<float>();
}

finch_status fuse(const Json& c, std::vector<float>* out) {
  const finch_weights weights = weights_of(c.at("weights"));
  const std::vector<float> semantic = column(c, "semantic"), p = column(c, "p"), prior = column(c, "prior"),
                           availability = column(c, "availability");
  return finch_fuse(semantic.data(), data_or_null(p), data_or_null(prior), data_or_null(availability), semantic.size(),
                    &weights, out->data());
}

TEST(Fuse, Golden) {
  const Json golden = read_golden("fuse.json");
  for (const Json& c : golden.at("cases")) {
    const std::string name = c.at("name");
    std::vector<float> out(c.at("expected").size());
    ASSERT_EQ(fuse(c, &out), FINCH_OK) << name << ": " << finch_last_error();
    for (size_t i = 0; i < out.size(); ++i) {
      expect_close(out[i], c.at("expected").at(i).get<double>(), golden.at("tolerance"), name);
    }
  }
}

TEST(Fuse, GoldenErrorsLeaveTheOutputAlone) {
  const Json golden = read_golden("fuse.json");
  for (const Json& c : golden.at("errors")) {
    std::vector<float> out = {7.0f};
    EXPECT_EQ(finch_status_name(fuse(c, &out)), c.at("code").get<std::string>()) << c.at("name");
    EXPECT_EQ(out[0], 7.0f) << c.at("name");
  }
}

TEST(Fuse, ArgumentErrors) {
  const float one[] = {0.5f};
  float out[1] = {7.0f};
  finch_weights unset{};
  EXPECT_EQ(finch_fuse(nullptr, nullptr, nullptr, nullptr, 1, nullptr, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_fuse(one, nullptr, nullptr, nullptr, 1, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_fuse(one, nullptr, nullptr, nullptr, 1, &unset, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out[0], 7.0f);
  EXPECT_EQ(finch_fuse(nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr), FINCH_OK);
}

TEST(Fuse, InPlaceAndMonotone) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> share(0.0f, 1.0f);
  finch_weights weights{};
  weights.size = sizeof(weights);
  weights.outage = 0.5f;
  for (int round = 0; round < 200; ++round) {
    const float semantic[2] = {share(random), 0.0f}, p = share(random), prior = share(random), a = share(random);
    const float ps[] = {p, p}, priors[] = {prior, prior}, availability[] = {a, a};
    float low[2] = {semantic[0], semantic[0]}, high[2] = {semantic[0], semantic[0]};
    ASSERT_EQ(finch_fuse(low, ps, priors, availability, 1, &weights, low), FINCH_OK);
    const float up[] = {std::nextafter(a, 2.0f) > 1.0f ? a : (a + 1.0f) / 2.0f};
    ASSERT_EQ(finch_fuse(high, ps, priors, up, 1, &weights, high), FINCH_OK);
    EXPECT_GE(high[0], low[0]);
    EXPECT_LE(low[0], 1.0f);
    EXPECT_GE(low[0], -0.5f);
  }
}

TEST(Fuse, ClampBoundsTheBandit) {
  const float semantic[] = {0.5f}, wild[] = {1e30f}, tame[] = {1.0f};
  finch_weights weights{};
  weights.size = sizeof(weights);
  weights.clamp = 1;
  float a[1], b[1];
  ASSERT_EQ(finch_fuse(semantic, wild, nullptr, nullptr, 1, &weights, a), FINCH_OK);
  ASSERT_EQ(finch_fuse(semantic, tame, nullptr, nullptr, 1, &weights, b), FINCH_OK);
  EXPECT_EQ(a[0], b[0]);
}

TEST(Fuse, StaysFiniteAtTheEdgeOfFloat32) {
  const float most = std::numeric_limits<float>::max();
  const float semantic[] = {most, -most}, p[] = {most, -most};
  finch_weights weights{};
  weights.size = sizeof(weights);
  weights.semantic = 0.50005f;
  weights.bandit = 0.5f;
  float out[2];
  ASSERT_EQ(finch_fuse(semantic, p, nullptr, nullptr, 2, &weights, out), FINCH_OK) << finch_last_error();
  EXPECT_EQ(out[0], most);
  EXPECT_EQ(out[1], -most);
}

}  // namespace
}  // namespace finch::test
