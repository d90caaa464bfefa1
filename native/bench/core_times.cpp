#include "core_times.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "toolfinch.h"
#include "vectors.hpp"

namespace finch::bench {
namespace {

using Clock = std::chrono::steady_clock;

void must(finch_status status) {
  if (status != FINCH_OK) throw std::runtime_error(finch_last_error());
}

template <class Work>
double nanoseconds(Work&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

using BanditPointer = std::unique_ptr<finch_bandit, decltype(&finch_bandit_release)>;

struct Arms {
  Arms(size_t dimension, size_t count) : bandit(nullptr, finch_bandit_release), x(dimension) {
    finch_bandit_options options{};
    options.size = sizeof options;
    options.dimension = static_cast<uint32_t>(dimension);
    finch_bandit* made = nullptr;
    must(finch_bandit_create(&options, &made));
    bandit.reset(made);
    fill_unit(x.data(), 1, dimension, 1, {}, 1);
    for (size_t i = 0; i < count; ++i) names.push_back("server/tool_" + std::to_string(i));
    for (const std::string& name : names) ids.push_back({name.data(), name.size()});
    for (const finch_string& id : ids) {
      const finch_outcome outcome{id, x.data(), 0.5f, 1.0f, 0.0};
      must(finch_bandit_update(bandit.get(), &outcome, 1));
    }
  }
  BanditPointer bandit;
  std::vector<float> x;
  std::vector<std::string> names;
  std::vector<finch_string> ids;
};

}  // namespace

BanditTimes bandit_times(size_t dimension, size_t arms, size_t candidates, size_t rounds) {
  candidates = std::min(candidates, arms);
  Arms all(dimension, arms);
  // Every arm once a lap, in an order that no prefetcher guesses.
  std::vector<size_t> order(arms);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
  size_t at = 0;
  std::vector<finch_string> drawn(candidates);
  const auto draw = [&] {
    for (finch_string& id : drawn) {
      id = all.ids[order[at]];
      at = (at + 1) % arms;
    }
  };
  std::vector<finch_arm_score> scores(candidates);
  std::vector<finch_outcome> outcomes(candidates);
  double now = 1;
  const auto score = [&] {
    must(finch_bandit_score(all.bandit.get(), drawn.data(), nullptr, candidates, all.x.data(), now, 1, scores.data()));
  };
  const auto update = [&] {
    for (size_t i = 0; i < candidates; ++i) {
      outcomes[i] = {drawn[i], all.x.data(), 0.5f, static_cast<float>(i % 2), now};
    }
    must(finch_bandit_update(all.bandit.get(), outcomes.data(), candidates));
    now += 1;
  };
  constexpr size_t kCalls = 200;
  const auto per_arm = [&](bool scattered, const auto& call) {
    if (!scattered) {
      at = 0;
      draw();
      for (size_t i = 0; i < kCalls / 4; ++i) call();
    }
    const double elapsed = nanoseconds([&] {
      for (size_t i = 0; i < kCalls; ++i) {
        if (scattered) draw();
        call();
      }
    });
    return elapsed / static_cast<double>(kCalls * candidates);
  };
  BanditTimes times;
  for (size_t round = 0; round < rounds; ++round) {
    times.score_resident.push_back(per_arm(false, score));
    times.score_scattered.push_back(per_arm(true, score));
    times.update_resident.push_back(per_arm(false, update));
    times.update_scattered.push_back(per_arm(true, update));
  }
  return times;
}

Rounds truncate_times(size_t n, size_t dimension, size_t rounds) {
  std::vector<float> embeddings(n * dimension);
  fill_unit(embeddings.data(), n, dimension, 3, {}, 1);
  std::vector<float> scores(n);
  for (size_t i = 0; i < n; ++i) scores[i] = 1.0f - 0.9f * static_cast<float>(i) / static_cast<float>(n);
  Rounds times;
  constexpr size_t kCalls = 200;
  for (size_t round = 0; round <= rounds; ++round) {
    finch_cut cut{};
    cut.size = sizeof cut;
    const double elapsed = nanoseconds([&] {
      for (size_t i = 0; i < kCalls; ++i) {
        must(finch_truncate(scores.data(), embeddings.data(), n, static_cast<uint32_t>(dimension), nullptr, &cut,
                            nullptr));
      }
    });
    // The first round warms up.
    if (round > 0) times.push_back(elapsed / kCalls);
  }
  return times;
}

}  // namespace finch::bench
