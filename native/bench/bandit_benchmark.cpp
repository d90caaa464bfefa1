// The bandit and the cut through the C interface; "items" are arms or lists.
#include <benchmark/benchmark.h>

#include "core_times.hpp"

namespace finch::bench {
namespace {

constexpr size_t kArms = 5000;
constexpr size_t kCandidates = 10;

// core_times measures by itself; its figures are reported as manual time, one call of 10 arms an iteration.
void bandit(benchmark::State& state, Rounds BanditTimes::*what) {
  const auto dimension = static_cast<size_t>(state.range(0));
  constexpr size_t kRounds = 25;
  Rounds rounds;
  size_t at = 0;
  for (auto _ : state) {
    if (at == rounds.size()) {
      rounds = bandit_times(dimension, kArms, kCandidates, kRounds).*what;
      at = 0;
    }
    state.SetIterationTime(rounds[at++] * kCandidates * 1e-9);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kCandidates));
}

void cut(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  const auto dimension = static_cast<size_t>(state.range(1));
  Rounds rounds;
  size_t at = 0;
  for (auto _ : state) {
    if (at == rounds.size()) {
      rounds = truncate_times(n, dimension, 25);
      at = 0;
    }
    state.SetIterationTime(rounds[at++] * 1e-9);
  }
}

BENCHMARK_CAPTURE(bandit, score_resident, &BanditTimes::score_resident)->Arg(768)->UseManualTime()->Iterations(100);
BENCHMARK_CAPTURE(bandit, score_scattered, &BanditTimes::score_scattered)->Arg(768)->UseManualTime()->Iterations(100);
BENCHMARK_CAPTURE(bandit, update_resident, &BanditTimes::update_resident)->Arg(768)->UseManualTime()->Iterations(100);
BENCHMARK_CAPTURE(bandit, update_scattered, &BanditTimes::update_scattered)->Arg(768)->UseManualTime()->Iterations(100);
BENCHMARK(cut)->Args({50, 768})->Args({50, 384})->Args({10, 768})->UseManualTime()->Iterations(100);

}  // namespace
}  // namespace finch::bench
