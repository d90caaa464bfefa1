#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "bandit_fixture.hpp"

namespace finch::test {
namespace {

constexpr finch_bandit_form kForms[] = {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL, FINCH_BANDIT_MEAN};

finch_bandit_form form_named(const std::string& name) {
  return name == "calibrated" ? FINCH_BANDIT_CALIBRATED : name == "literal" ? FINCH_BANDIT_LITERAL : FINCH_BANDIT_MEAN;
}

void expect_scores(const Bandit& bandit, const Json& step, double tolerance, const std::string& name) {
  std::vector<std::string> names;
  std::vector<finch_string> ids;
  for (const Json& id : step.at("ids")) names.push_back(id);
  for (const std::string& id : names) ids.push_back(as_string(id));
  const std::vector<float> priors = floats(step.at("priors")), x = floats(step.at("x"));
  std::vector<finch_arm_score> got(ids.size());
  ASSERT_EQ(finch_bandit_score(bandit.get(), ids.data(), priors.data(), ids.size(), x.data(), 0.0, step.at("explore"),
                               got.data()),
            FINCH_OK)
      << name << ": " << finch_last_error();
  for (size_t i = 0; i < ids.size(); ++i) {
    const Json& expected = step.at("expected").at(i);
    expect_close(got[i].mean, expected.at("mean").get<double>(), tolerance, name + ": mean of " + names[i]);
    expect_close(got[i].bonus, expected.at("bonus").get<double>(), tolerance, name + ": bonus of " + names[i]);
    expect_close(got[i].evidence, expected.at("evidence").get<double>(), 1e-9, name + ": evidence of " + names[i]);
    EXPECT_EQ(got[i].updates, expected.at("updates").get<uint64_t>()) << name;
    const Json& last = expected.at("last_outcome");
    if (last.is_null()) {
      EXPECT_TRUE(std::isnan(got[i].last_outcome)) << name;
    } else {
      EXPECT_EQ(got[i].last_outcome, to_float(last)) << name;
    }
  }
}

TEST(Bandit, Golden) {
  const Json golden = read_golden("bandit.json");
  for (const Json& c : golden.at("cases")) {
    const std::string name = c.at("name");
    const Json& o = c.at("options");
    finch_bandit_options options = bandit_options(o.at("dimension"), form_named(o.at("form")));
    options.lambda = to_float(o.at("lambda"));
    options.gamma = to_float(o.at("gamma"));
    options.alpha = to_float(o.at("alpha"));
    const Bandit bandit = make_bandit(options);
    for (const Json& step : c.at("steps")) {
      if (step.at("do") == "score") {
        expect_scores(bandit, step, golden.at("tolerance"), name);
      } else if (step.at("do") == "update") {
        ASSERT_EQ(
            report(bandit, step.at("id"), floats(step.at("x")), to_float(step.at("prior")), to_float(step.at("y"))),
            FINCH_OK)
            << finch_last_error();
      } else {
        for (const std::string id : step.at("ids")) {
          const finch_string dropped = as_string(id);
          ASSERT_EQ(finch_bandit_drop(bandit.get(), &dropped, 1), FINCH_OK);
        }
      }
    }
  }
}

TEST(Bandit, GoldenAvailability) {
  const Json golden = read_golden("availability.json");
  for (const Json& c : golden.at("cases")) {
    finch_bandit_options options = bandit_options(1);
    options.availability_gamma = to_float(c.at("options").at("gamma"));
    options.availability_half_life = c.at("options").at("half_life");
    options.availability_half_life_max = c.at("options").at("half_life_max");
    options.trial_share = INFINITY;
    const Bandit bandit = make_bandit(options);
    for (const Json& step : c.at("steps")) {
      const double now = step.at("now");
      if (step.contains("y")) {
        ASSERT_EQ(report(bandit, "a", {1.0f}, 0.5f, to_float(step.at("y")), now), FINCH_OK);
      } else {
        expect_close(score(bandit, "a", {1.0f}, 0.5f, now).availability, step.at("expected").get<double>(),
                     golden.at("tolerance"), c.at("name").get<std::string>());
      }
    }
  }
}

TEST(Bandit, AvailabilityStaysInBoundsAndRecovers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> time(-1e6, 1e7);
  std::uniform_real_distribution<float> reward(0.0f, 1.0f);
  finch_bandit_options options = bandit_options(1);
  options.trial_share = INFINITY;
  const Bandit bandit = make_bandit(options);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(report(bandit, "a", {1.0f}, 0.5f, reward(random), time(random)), FINCH_OK);
    const float a = score(bandit, "a", {1.0f}, 0.5f, time(random)).availability;
    EXPECT_GE(a, 0.0f);
    EXPECT_LE(a, 1.0f);
  }
  for (int i = 0; i < 100; ++i) report(bandit, "a", {1.0f}, 0.5f, 0.0f, 1e8);
  float last = score(bandit, "a", {1.0f}, 0.5f, 1e8).availability;
  EXPECT_LT(last, 1e-6f);
  for (double now = 1e8; now < 1.5e8; now += 1e6) {  // only time passes: never down, in the end up
    const float a = score(bandit, "a", {1.0f}, 0.5f, now).availability;
    EXPECT_GE(a, last);
    last = a;
  }
  EXPECT_GT(last, 0.99f);
  EXPECT_EQ(score(bandit, "unknown", {1.0f}, 0.5f, 0.0).availability, 1.0f);
}

TEST(Bandit, CalibratedGoesToAConstantOutcomeAndStaysNearTheUnitInterval) {
  std::mt19937 random(2);
  for (const uint32_t d : {1u, 2u, 17u, 130u, 384u}) {
    for (const float y : {0.0f, 0.25f, 1.0f}) {
      finch_bandit_options options = bandit_options(d);
      options.lambda = 0.05f;
      const Bandit bandit = make_bandit(options);
      const std::vector<float> x = random_vector(&random, d);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(report(bandit, "a", x, 0.5f, y), FINCH_OK);
        const float p = score(bandit, "a", x, 0.5f, 0.0, 0).mean;
        EXPECT_GE(p, -0.05f);
        EXPECT_LE(p, 1.05f);
      }
      // With x fixed, component i goes to (y - r) x~_i^2 / (x~_i^2 + (1 - gamma) lambda): y but for the regularisation.
      double norm = 0.0, share = 0.0;
      for (const float v : x) norm += static_cast<double>(v) * v;
      for (const float v : x) {
        const double square = static_cast<double>(v) * v * d / norm;
        share += square / (square + 0.05 * 0.05) / d;
      }
      EXPECT_NEAR(score(bandit, "a", x, 0.5f, 0.0, 0).mean, 0.5 + (static_cast<double>(y) - 0.5) * share, 1e-4);
      EXPECT_NEAR(score(bandit, "a", x, 0.5f, 0.0, 0).mean, y, 0.06f) << "d=" << d;
    }
  }
}

TEST(Bandit, AnArmWithoutFeedbackHasTheClosedForm) {
  std::mt19937 random(3);
  for (uint32_t d = 1; d <= 130; ++d) {
    const std::vector<float> x = random_vector(&random, d);
    double norm = 0.0, sum = 0.0;
    for (const float v : x) norm += static_cast<double>(v) * v;
    for (const float v : x) sum += static_cast<double>(v) / std::sqrt(norm);
    const Bandit calibrated = make_bandit(bandit_options(d));
    EXPECT_EQ(score(calibrated, "a", x, 0.3f).mean, 0.3f);
    EXPECT_EQ(score(calibrated, "a", x, 0.3f).bonus, 0.1f);
    const Bandit literal = make_bandit(bandit_options(d, FINCH_BANDIT_LITERAL));
    EXPECT_NEAR(score(literal, "a", x, 0.3f).mean, 0.3 * sum / std::sqrt(d), 1e-6);
    EXPECT_EQ(score(literal, "a", x, 0.3f).bonus, 0.1f);
    const Bandit mean = make_bandit(bandit_options(d, FINCH_BANDIT_MEAN));
    EXPECT_EQ(score(mean, "a", x, 0.3f).mean, 0.3f);
    EXPECT_EQ(score(mean, "a", x, 0.3f).bonus, 0.0f);
    EXPECT_EQ(arm_count(mean), 0u);
  }
}

TEST(Bandit, ADroppedArmIsAFreshOneToTheBit) {
  std::mt19937 random(4);
  for (const finch_bandit_form form : kForms) {
    const Bandit bandit = make_bandit(bandit_options(19, form));
    const std::vector<float> x = random_vector(&random, 19);
    const finch_arm_score before = score(bandit, "a", x, 0.7f);
    for (int i = 0; i < 5; ++i) report(bandit, "a", x, 0.7f, 0.0f);
    EXPECT_EQ(arm_count(bandit), 1u);
    const std::string a = "a", b = "not there";
    const finch_string ids[] = {as_string(a), as_string(b), as_string(a)};
    ASSERT_EQ(finch_bandit_drop(bandit.get(), ids, 3), FINCH_OK);
    EXPECT_EQ(arm_count(bandit), 0u);
    const finch_arm_score after = score(bandit, "a", x, 0.7f);
    EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0);
  }
}

TEST(Bandit, AnArmKeepsThePriorItWasMadeWith) {
  const Bandit bandit = make_bandit(bandit_options(2));
  report(bandit, "a", {1, 0}, 0.9f, 1.0f);
  EXPECT_EQ(score(bandit, "a", {1, 0}, 0.1f).mean, score(bandit, "a", {1, 0}, 0.9f).mean);
}

TEST(Bandit, ScaleOfTheContextDoesNotMatter) {
  std::mt19937 random(5);
  for (const finch_bandit_form form : kForms) {
    const Bandit plain = make_bandit(bandit_options(33, form));
    const Bandit scaled = make_bandit(bandit_options(33, form));
    for (int i = 0; i < 30; ++i) {
      const std::vector<float> x = random_vector(&random, 33);
      std::vector<float> y = x;
      for (float& v : y) v = std::ldexp(v, (i % 2 == 0) ? 90 : -90);
      report(plain, "a", x, 0.5f, static_cast<float>(i % 3 == 0));
      report(scaled, "a", y, 0.5f, static_cast<float>(i % 3 == 0));
    }
    EXPECT_EQ(serialized(plain), serialized(scaled));
  }
}

TEST(Bandit, OneBatchIsTheSameAsSingleUpdates) {
  std::mt19937 random(6);
  for (const finch_bandit_form form : kForms) {
    const Bandit single = make_bandit(bandit_options(21, form));
    const Bandit batch = make_bandit(bandit_options(21, form));
    std::vector<std::vector<float>> contexts;
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) {
      contexts.push_back(random_vector(&random, 21));
      names.push_back("tool " + std::to_string(i % 7));
    }
    std::vector<finch_outcome> outcomes;
    for (size_t i = 0; i < contexts.size(); ++i) {
      const float prior = static_cast<float>(i) / 64.0f, y = static_cast<float>(i % 2);
      outcomes.push_back({as_string(names[i]), contexts[i].data(), prior, y, static_cast<double>(i)});
      report(single, names[i], contexts[i], prior, y, static_cast<double>(i));
    }
    ASSERT_EQ(finch_bandit_update(batch.get(), outcomes.data(), outcomes.size()), FINCH_OK);
    EXPECT_EQ(serialized(single), serialized(batch));
  }
}

TEST(Bandit, OnlyTheUpdatedArmChanges) {
  std::mt19937 random(7);
  for (const finch_bandit_form form : {FINCH_BANDIT_CALIBRATED, FINCH_BANDIT_LITERAL}) {
    const Bandit bandit = make_bandit(bandit_options(8, form));
    const std::vector<float> x = random_vector(&random, 8);
    report(bandit, "a", x, 0.5f, 1.0f);
    const finch_arm_score before = score(bandit, "a", x, 0.5f);
    for (int i = 0; i < 20; ++i) report(bandit, "b", random_vector(&random, 8), 0.5f, 0.0f);
    const finch_arm_score after = score(bandit, "a", x, 0.5f);
    EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0);
  }
}

TEST(Bandit, LiteralStaysFiniteWhenADirectionIsNeverSeen) {
  const Bandit bandit = make_bandit(bandit_options(2, FINCH_BANDIT_LITERAL));
  for (int i = 0; i < 5000; ++i) report(bandit, "a", {1, 0}, 0.5f, 1.0f);
  const finch_arm_score s = score(bandit, "a", {1, 1}, 0.5f);
  EXPECT_TRUE(std::isfinite(s.mean));
  EXPECT_TRUE(std::isfinite(s.bonus));
}

// A health check's outcome: what is known of the contexts stays, availability and evidence do not.
TEST(Bandit, OutcomesWithoutAContext) {
  for (const bool known : {true, false}) {
    const Bandit bandit = make_bandit(bandit_options(2));
    const std::string a = "a";
    if (known) report(bandit, a, {1, 1}, 0.5f, 1.0f);
    const finch_arm_score before = score(bandit, a, {1, 1}, 0.5f);
    const finch_outcome failed = {as_string(a), nullptr, 0.5f, 0.0f, 0.0};
    const finch_outcome twice[] = {failed, failed};
    ASSERT_EQ(finch_bandit_update(bandit.get(), twice, 2), FINCH_OK) << finch_last_error();
    const finch_arm_score after = score(bandit, a, {1, 1}, 0.5f);
    EXPECT_EQ(after.mean, before.mean);
    EXPECT_EQ(after.updates, before.updates + 2);
    EXPECT_EQ(after.last_outcome, 0.0f);
    EXPECT_EQ(before.availability, 1.0f);
    EXPECT_LT(after.availability, 0.5f);
  }
}

TEST(Bandit, BadOutcomesChangeNothing) {
  const Bandit bandit = make_bandit(bandit_options(2));
  report(bandit, "a", {1, 1}, 0.5f, 1.0f);
  const std::vector<char> before = serialized(bandit);
  const std::string a = "a", fresh = "new", empty, longest(FINCH_MAX_ID_BYTES + 1, 'x');
  const float good[] = {1, 1}, zero[] = {0, 0}, nan[] = {1, NAN}, infinite[] = {INFINITY, 0};
  const finch_outcome fine = {as_string(fresh), good, 0.5f, 1.0f, 0.0};
  struct Bad {
    finch_outcome outcome;
    finch_status status;
  };
  const Bad bad[] = {
      {{as_string(a), zero, 0.5f, 1.0f, 0.0}, FINCH_ZERO_VECTOR},
      {{as_string(a), nan, 0.5f, 1.0f, 0.0}, FINCH_NOT_FINITE},
      {{as_string(a), infinite, 0.5f, 1.0f, 0.0}, FINCH_NOT_FINITE},
      {{as_string(a), good, -0.1f, 1.0f, 0.0}, FINCH_INVALID_ARGUMENT},
      {{as_string(a), good, NAN, 1.0f, 0.0}, FINCH_NOT_FINITE},
      {{as_string(a), good, 0.5f, 1.5f, 0.0}, FINCH_INVALID_ARGUMENT},
      {{as_string(a), good, 0.5f, NAN, 0.0}, FINCH_NOT_FINITE},
      {{as_string(a), good, 0.5f, 1.0f, NAN}, FINCH_NOT_FINITE},
      {{as_string(a), good, 0.5f, 1.0f, INFINITY}, FINCH_NOT_FINITE},
      {{as_string(empty), good, 0.5f, 1.0f, 0.0}, FINCH_INVALID_ARGUMENT},
      {{as_string(longest), good, 0.5f, 1.0f, 0.0}, FINCH_INVALID_ARGUMENT},
      {{{nullptr, 3}, good, 0.5f, 1.0f, 0.0}, FINCH_INVALID_ARGUMENT},
  };
  for (const Bad& b : bad) {
    const finch_outcome batch[] = {fine, b.outcome};
    EXPECT_EQ(finch_bandit_update(bandit.get(), batch, 2), b.status) << finch_last_error();
    EXPECT_EQ(serialized(bandit), before);
  }
  EXPECT_EQ(finch_bandit_update(bandit.get(), nullptr, 1), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_update(nullptr, &fine, 1), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_update(bandit.get(), nullptr, 0), FINCH_OK);
  const finch_string bad_ids[] = {as_string(a), as_string(empty)};
  EXPECT_EQ(finch_bandit_drop(bandit.get(), bad_ids, 2), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(serialized(bandit), before);
}

TEST(Bandit, BadScoreArgumentsLeaveTheOutputAlone) {
  const Bandit bandit = make_bandit(bandit_options(2));
  const std::string a = "a", empty;
  const finch_string ids[] = {as_string(a), as_string(a)}, bad_ids[] = {as_string(a), as_string(empty)};
  const float good[] = {1, 1}, zero[] = {0, 0}, nan[] = {1, NAN}, priors[] = {0.5f, 0.5f}, bad_priors[] = {0.5f, 2.0f};
  finch_arm_score out[2]{};
  out[0].updates = out[1].updates = 99;
  const auto run = [&](const finch_string* i, const float* p, const float* x, double now) {
    return finch_bandit_score(bandit.get(), i, p, 2, x, now, 1, out);
  };
  EXPECT_EQ(run(bad_ids, priors, good, 0.0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(run(nullptr, priors, good, 0.0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(run(ids, bad_priors, good, 0.0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(run(ids, priors, zero, 0.0), FINCH_ZERO_VECTOR);
  EXPECT_EQ(run(ids, priors, nan, 0.0), FINCH_NOT_FINITE);
  EXPECT_EQ(run(ids, priors, nullptr, 0.0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(run(ids, priors, good, NAN), FINCH_NOT_FINITE);
  EXPECT_EQ(finch_bandit_score(bandit.get(), ids, priors, 2, good, 0.0, 1, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_score(nullptr, ids, priors, 2, good, 0.0, 1, out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out[0].updates, 99u);
  EXPECT_EQ(out[1].updates, 99u);
  ASSERT_EQ(run(ids, nullptr, good, 0.0), FINCH_OK);  // no priors: 0.5
  EXPECT_EQ(out[0].mean, 0.5f);
}

TEST(Bandit, BadOptions) {
  finch_bandit* bandit = nullptr;
  const auto status = [&](auto change) {
    finch_bandit_options options = bandit_options(4);
    change(&options);
    return finch_bandit_create(&options, &bandit);
  };
  using O = finch_bandit_options;
  EXPECT_EQ(status([](O* o) { o->size = 0; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->dimension = 0; }), FINCH_DIMENSION);
  EXPECT_EQ(status([](O* o) { o->dimension = FINCH_MAX_DIMENSION + 1; }), FINCH_DIMENSION);
  EXPECT_EQ(status([](O* o) { o->form = 3; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->form = -1; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->lambda = -1; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->lambda = NAN; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->gamma = 1.01f; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->gamma = -0.5f; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->alpha = -0.5f; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->alpha = INFINITY; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->availability_gamma = 1.0f; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->availability_half_life = -1; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(status([](O* o) { o->availability_half_life_max = 1; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_bandit_create(nullptr, &bandit), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(bandit, nullptr);
  finch_bandit_options quiet = bandit_options(2);
  quiet.alpha = FINCH_ALPHA_ZERO;
  EXPECT_EQ(score(make_bandit(quiet), "a", {1, 1}, 0.5f).bonus, 0.0f);
}

TEST(Bandit, ReadersAndAWriterTogether) {
  const Bandit bandit = make_bandit(bandit_options(64));
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  std::atomic<int> bad{0};
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      while (!stop) {
        const finch_arm_score s =
            score(bandit, "tool " + std::to_string(random() % 5), random_vector(&random, 64), 0.5f);
        if (!std::isfinite(s.mean) || !std::isfinite(s.bonus)) ++bad;
      }
    });
  }
  std::mt19937 random(9);
  for (int i = 0; i < 500; ++i) {
    const std::string id = "tool " + std::to_string(random() % 5);
    ASSERT_EQ(report(bandit, id, random_vector(&random, 64), 0.5f, 1.0f), FINCH_OK);
    const finch_string dropped = as_string(id);
    if (i % 17 == 0) {
      ASSERT_EQ(finch_bandit_drop(bandit.get(), &dropped, 1), FINCH_OK);
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(bad, 0);
}

}  // namespace
}  // namespace finch::test
