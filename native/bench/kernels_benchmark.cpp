// The kernels alone, for every instruction set of this machine, on data that are in the first caches.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "vectors.hpp"

namespace finch::bench {
namespace {

constexpr int kDimensions[] = {384, 768, 1024};
constexpr size_t kCutRows = 50;
constexpr size_t kArms = 10;
constexpr size_t kPanels = 2;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
// Aligned memory, zero at first.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory_.reset(std::aligned_alloc(4096, rounded));
    std::fill_n(static_cast<char*>(memory_.get()), rounded, 0);
  }
  float* floats() const { return static_cast<float*>(memory_.get()); }
  void* get() const { return memory_.get(); }

 private:
  std::unique_ptr<void, Free> memory_;
};

// Rows of unit vectors, and pointers to them.
struct Rows {
  Rows(size_t count, size_t dimension) : memory(count * dimension * sizeof(float)) {
    fill_unit(memory.floats(), count, dimension, 1, {}, 1);
    for (size_t i = 0; i < count; ++i) {
      floats.push_back(memory.floats() + i * dimension);
      codes.push_back(floats.back());
    }
  }
  Memory memory;
  std::vector<const float*> floats;
  std::vector<const void*> codes;
};

void rates(benchmark::State& state, size_t operations, size_t bytes) {
  const auto count = static_cast<double>(state.iterations());
  state.counters["op/s"] = benchmark::Counter(static_cast<double>(operations) * count, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<double>(bytes) * count));
}

void dot(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const Rows rows(2, d);
  for (auto _ : state) benchmark::DoNotOptimize(kernel->dot(rows.floats[0], rows.floats[1], d));
  rates(state, 2 * d, 8 * d);
}

// 96 rows against 1 query; no score reaches the bar, so this is the scan alone.
void scan_few(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const ScanFormat& format = kernel->scan_format(FINCH_STORAGE_F32);
  const Rows rows(kScanRows, d);
  const Memory query(format.few_bytes(d));
  format.prepare(rows.floats[0], d, query.get());
  const float bar = std::numeric_limits<float>::infinity();
  std::vector<Survivor> survivors(kScanRows);
  const ScanRows scanned{.codes = rows.codes.data(), .scales = nullptr, .count = kScanRows};
  for (auto _ : state) benchmark::DoNotOptimize(format.few(scanned, query.get(), 1, d, &bar, survivors.data()));
  rates(state, 2 * kScanRows * d, 4 * kScanRows * d);
}

// 96 rows against panels of queries.
void scan_panels(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const ScanFormat& format = kernel->scan_format(FINCH_STORAGE_F32);
  if (format.widen != nullptr) {
    state.SkipWithError("panels of this level read widened rows");
    return;
  }
  const Rows rows(kScanRows, d);
  const size_t bytes = format.panel_bytes(d);
  const Memory packed(kPanels * bytes);
  for (size_t i = 0; i < kPanels; ++i) {
    format.pack(rows.memory.floats(), format.panel, d, static_cast<char*>(packed.get()) + i * bytes);
  }
  const std::vector<float> bars(kPanels * format.panel, std::numeric_limits<float>::infinity());
  std::vector<Survivor> survivors(kScanRows * kPanels * format.panel);
  const Memory workspace(format.workspace_bytes == nullptr ? 1 : format.workspace_bytes(d));
  const ScanRows scanned{
      .codes = rows.codes.data(), .scales = nullptr, .count = kScanRows, .workspace = workspace.get()};
  for (auto _ : state)
    benchmark::DoNotOptimize(format.panels(scanned, packed.get(), kPanels, d, bars.data(), survivors.data()));
  rates(state, 2 * kScanRows * kPanels * format.panel * d, 4 * kScanRows * d);
}

void gaps(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const Rows rows(kCutRows, d);
  std::vector<float> dots(kCutRows);
  std::vector<float> norms(kCutRows);
  for (auto _ : state) {
    kernel->gap_rows(rows.floats.data(), kCutRows, d, dots.data(), norms.data());
    benchmark::ClobberMemory();
  }
  rates(state, 4 * kCutRows * d, 4 * kCutRows * d);
}

// An arm is A, b and 1 / A, one after the other.
struct Arms {
  explicit Arms(size_t d) : memory(kArms * 3 * d * sizeof(float)) {
    for (size_t i = 0; i < kArms; ++i) {
      float* arm = memory.floats() + i * 3 * d;
      std::fill_n(arm, d, 1.5f);
      std::fill_n(arm + d, d, 0.01f);
      std::fill_n(arm + 2 * d, d, 1 / 1.5f);
      arms.push_back(arm);
    }
  }
  Memory memory;
  std::vector<const float*> arms;
};

void arm_scores(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const Arms arms(d);
  const Rows x(1, d);
  float means[kArms];
  float variances[kArms];
  for (auto _ : state) {
    kernel->arm_scores(arms.arms.data(), d, kArms, x.floats[0], d, means, variances);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kArms));
  rates(state, 5 * kArms * d, 8 * kArms * d);
}

void arm_update(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const Arms arms(d);
  const Rows x(1, d);
  for (auto _ : state) {
    kernel->arm_update(arms.memory.floats(), d, x.floats[0], d, 0.95f, 0.05f, 1.0f);
    benchmark::ClobberMemory();
  }
  rates(state, 6 * d, 16 * d);
}

void arm_invert(benchmark::State& state, const Kernels* kernel) {
  const auto d = static_cast<size_t>(state.range(0));
  const Arms arms(d);
  for (auto _ : state) {
    kernel->arm_invert(arms.memory.floats(), d, d);
    benchmark::ClobberMemory();
  }
  rates(state, d, 8 * d);
}

const bool kRegistered = [] {
  constexpr struct {
    const char* name;
    void (*run)(benchmark::State&, const Kernels*);
  } kAll[] = {{"dot", dot},
              {"scan_few_f32", scan_few},
              {"scan_panels_f32", scan_panels},
              {"gaps", gaps},
              {"arm_scores", arm_scores},
              {"arm_update", arm_update},
              {"arm_invert", arm_invert}};
  for (const Kernels* kernel : available_kernels()) {
    for (const auto& [name, run] : kAll) {
      const std::string full = std::string(name) + "/" + kernel->name;
      for (const int d : kDimensions) benchmark::RegisterBenchmark(full.c_str(), run, kernel)->Arg(d);
    }
  }
  return true;
}();

}  // namespace
}  // namespace finch::bench
