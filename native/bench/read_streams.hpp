// The reading loops, once for every vector type: Vector has kBytes, load(pointer), fold(a, b) and sum(v).
#pragma once

#include <cstddef>
#include <cstdint>

namespace finch::bench {

// kStreams runs of equal length, each read front to back, all at once; 256 bytes of each a step, every load into an
// accumulator of its own.
template <class Vector, size_t kStreams, size_t kPrefetch>
inline uint64_t read_streams(const std::byte* data, size_t bytes) {
  constexpr size_t kLoads = 256 / Vector::kBytes / (kStreams == 1 ? 1 : 2);
  constexpr size_t kStep = kLoads * Vector::kBytes;
  const size_t length = bytes / kStreams / kStep * kStep;
  typename Vector::Type sums[4];
  for (auto& sum : sums) sum = Vector::zero();
  for (size_t at = 0; at < length; at += kStep) {
#pragma GCC unroll 4
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* from = data + stream * length + at;
      if constexpr (kPrefetch != 0) {
#pragma GCC unroll 4
        for (size_t line = 0; line < kStep; line += 64) __builtin_prefetch(from + kPrefetch + line);
      }
#pragma GCC unroll 8
      for (size_t i = 0; i < kLoads; ++i) {
        sums[i % 4] = Vector::fold(sums[i % 4], Vector::load(from + i * Vector::kBytes));
      }
    }
  }
  // Pages are a multiple of kStreams * kStep, so nothing is left over.
  return Vector::sum(Vector::fold(Vector::fold(sums[0], sums[1]), Vector::fold(sums[2], sums[3])));
}

// How far ahead of the loads; past the end of a stream it is harmless.
inline constexpr size_t kAhead = 2048;

}  // namespace finch::bench
