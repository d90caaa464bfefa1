// Exact search through the C interface: shapes x storages x batches x threads. TOOLFINCH_BENCH_LARGE=1 adds
// 1,000,000 x 384 (6 GB of memory).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "affinity.hpp"
#include "toolfinch.h"
#include "vectors.hpp"

namespace finch::bench {
namespace {

struct Shape {
  size_t count;
  uint32_t dimension;
};
constexpr Shape kShapes[] = {{5172, 768}, {16464, 384}, {44000, 1024}, {1000000, 384}};
constexpr size_t kBatches[] = {1, 8, 64, 256};
constexpr const char* kStorages[] = {"f32", "bf16", "f16", "i8"};
constexpr uint32_t kK = 10;

struct Release {
  void operator()(finch_index* index) const { finch_index_release(index); }
  void operator()(finch_snapshot* snapshot) const { finch_snapshot_release(snapshot); }
};

// The index of the latest shape and storage: benchmarks come in that order, and one at a time is enough memory.
class Catalogue {
 public:
  // NULL with an error message where the core refuses.
  const finch_snapshot* get(size_t shape, finch_storage storage) {
    if (snapshot_ && shape == shape_ && storage == storage_) return snapshot_.get();
    snapshot_.reset();
    index_.reset();
    const Shape& wanted = kShapes[shape];
    finch_index_options options{};
    options.size = sizeof options;
    options.dimension = wanted.dimension;
    options.storage = storage;
    finch_index* index = nullptr;
    if (finch_index_create(&options, &index) != FINCH_OK) return nullptr;
    index_.reset(index);
    {
      std::vector<float> vectors(wanted.count * wanted.dimension);
      fill_unit(vectors.data(), wanted.count, wanted.dimension, 1, {}, allowed_cpus());
      std::vector<std::string> names;
      for (size_t i = 0; i < wanted.count; ++i) names.push_back("tool " + std::to_string(i));
      std::vector<finch_string> ids;
      for (const std::string& name : names) ids.push_back({name.data(), name.size()});
      if (finch_index_upsert(index, ids.data(), vectors.data(), wanted.count, nullptr, nullptr) != FINCH_OK)
        return nullptr;
    }
    finch_snapshot* snapshot = nullptr;
    if (finch_index_snapshot(index, &snapshot) != FINCH_OK) return nullptr;
    snapshot_.reset(snapshot);
    shape_ = shape;
    storage_ = storage;
    return snapshot;
  }

 private:
  std::unique_ptr<finch_index, Release> index_;
  std::unique_ptr<finch_snapshot, Release> snapshot_;
  size_t shape_ = 0;
  finch_storage storage_ = 0;
};
Catalogue catalogue;

void search(benchmark::State& state, size_t shape, finch_storage storage, size_t batch, uint32_t threads) {
  const finch_snapshot* snapshot = catalogue.get(shape, storage);
  if (snapshot == nullptr) {
    state.SkipWithError(finch_last_error());
    return;
  }
  const auto [count, dimension] = kShapes[shape];
  std::vector<float> queries(batch * dimension);
  fill_unit(queries.data(), batch, dimension, 1001, {}, 1);
  finch_search_options options{};
  options.size = sizeof options;
  options.k = kK;
  options.mode = FINCH_SEARCH_EXACT;
  options.threads = threads;
  std::vector<uint64_t> keys(batch * kK);
  std::vector<float> scores(batch * kK);
  std::vector<uint32_t> counts(batch);
  pin_process(threads);
  for (auto _ : state) {
    if (finch_search(snapshot, queries.data(), batch, &options, keys.data(), scores.data(), counts.data()) !=
        FINCH_OK) {
      state.SkipWithError(finch_last_error());
      break;
    }
  }
  pin_process(allowed_cpus());
  const double operations = 2.0 * static_cast<double>(count) * dimension * static_cast<double>(batch);
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["op/s"] = benchmark::Counter(operations * iterations, benchmark::Counter::kIsRate);
  const size_t width = storage == FINCH_STORAGE_F32 ? 4 : storage == FINCH_STORAGE_I8 ? 1 : 2;
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<double>(count * dimension * width) * iterations));
}

const bool kRegistered = [] {
  const bool large = std::getenv("TOOLFINCH_BENCH_LARGE") != nullptr;
  for (size_t shape = 0; shape < std::size(kShapes) - (large ? 0 : 1); ++shape) {
    for (finch_storage storage = FINCH_STORAGE_F32; storage <= FINCH_STORAGE_I8; ++storage) {
      for (const uint32_t threads : {1u, 2u}) {
        if (threads > allowed_cpus()) continue;
        for (const size_t batch : kBatches) {
          const std::string name = "search/" + std::to_string(kShapes[shape].count) + "x" +
                                   std::to_string(kShapes[shape].dimension) + "/" + kStorages[storage] +
                                   "/threads:" + std::to_string(threads) + "/batch:" + std::to_string(batch);
          benchmark::RegisterBenchmark(name.c_str(), search, shape, storage, batch, threads)
              ->UseRealTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace finch::bench
