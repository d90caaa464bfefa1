#include "limits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "affinity.hpp"

namespace finch::bench {
namespace {

// A cache line for each thread's result.
struct alignas(64) Sink {
  float values[16];
};

// A part starts and ends on a page, so that no two threads share one.
constexpr size_t kPage = 4096;

}  // namespace

const Limits& limits() {
  static const Limits found = detect_limits();
  return found;
}

Peak peak_of(Kind kind) {
  const Limits& found = limits();
  switch (kind) {
    case Kind::kF32:
      return found.f32;
    case Kind::kBf16:
      return found.bf16;
    case Kind::kI8:
      return found.i8;
    case Kind::kTileBf16:
      return found.tile_bf16;
    default:
      return found.tile_i8;
  }
}

double read_bandwidth(const std::byte* data, size_t bytes, size_t threads, size_t way, double seconds) {
  const size_t pages = bytes / kPage;
  threads = std::max<size_t>(1, std::min(threads, pages));
  const Read read = limits().reads[way];
  const auto part = [&](size_t i) { return pages * i / threads * kPage; };
  std::atomic<uint64_t> sum{0};
  const auto passes = [&](size_t count) {
    return run_team(threads, [&](size_t i) {
      uint64_t own = 0;
      for (size_t pass = 0; pass < count; ++pass) own += read(data + part(i), part(i + 1) - part(i));
      sum += own;
    });
  };
  passes(1);
  const double once = std::max(passes(1), 1e-9);
  if (once >= seconds) return static_cast<double>(pages * kPage) / once;
  const auto count = static_cast<size_t>(std::clamp(std::ceil(seconds / once), 1.0, 1e8));
  return static_cast<double>(pages * kPage) * static_cast<double>(count) / passes(count);
}

double peak_rate(Kind kind, size_t threads, double seconds) {
  const Peak peak = peak_of(kind);
  if (peak == nullptr) return 0;
  std::vector<Sink> sinks(threads);
  double per_round = 0;
  const auto rounds = [&](size_t count) {
    return run_team(threads, [&](size_t i) {
      const double operations = peak(count, sinks[i].values);
      if (i == 0) per_round = operations;
    });
  };
  constexpr size_t kTrial = 20000;
  rounds(kTrial);
  const double trial = std::max(rounds(kTrial), 1e-9);
  const auto count = static_cast<size_t>(std::max(1.0, seconds / trial) * kTrial);
  const double elapsed = rounds(count);
  return per_round * static_cast<double>(count) * static_cast<double>(threads) / elapsed;
}

}  // namespace finch::bench
