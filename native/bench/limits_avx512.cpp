#include <immintrin.h>

#include "limits.hpp"
#include "read_streams.hpp"

namespace finch::bench {
namespace {

struct Vector {
  using Type = __m512i;
  static constexpr size_t kBytes = 64;
  static Type zero() { return _mm512_setzero_si512(); }
  static Type load(const std::byte* from) { return _mm512_load_si512(from); }
  static Type fold(Type a, Type b) { return _mm512_add_epi32(a, b); }
  static uint64_t sum(Type v) {
    alignas(64) uint64_t lanes[8];
    _mm512_store_si512(lanes, v);
    uint64_t total = 0;
    for (const uint64_t lane : lanes) total += lane;
    return total;
  }
};

constexpr size_t kSums = 24;

}  // namespace

namespace avx512 {

uint64_t read_one(const std::byte* data, size_t bytes) { return read_streams<Vector, 1, 0>(data, bytes); }
uint64_t read_four(const std::byte* data, size_t bytes) { return read_streams<Vector, 4, 0>(data, bytes); }
uint64_t read_four_prefetched(const std::byte* data, size_t bytes) {
  return read_streams<Vector, 4, kAhead>(data, bytes);
}

double peak_f32(size_t rounds, float* sink) {
  __m512 sums[kSums];
  for (size_t i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i + 1));
  const __m512 factor = _mm512_set1_ps(0.999f);
  const __m512 term = _mm512_set1_ps(0.001f);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (size_t i = 0; i < kSums; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
  return static_cast<double>(kSums) * 16 * 2;
}

}  // namespace avx512
}  // namespace finch::bench
