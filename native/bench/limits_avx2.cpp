#include <immintrin.h>

#include "limits.hpp"
#include "read_streams.hpp"

namespace finch::bench {
namespace {

struct Vector {
  using Type = __m256i;
  static constexpr size_t kBytes = 32;
  static Type zero() { return _mm256_setzero_si256(); }
  static Type load(const std::byte* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }
  static Type fold(Type a, Type b) { return _mm256_add_epi32(a, b); }
  static uint64_t sum(Type v) {
    alignas(32) uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
};

constexpr size_t kSums = 12;

}  // namespace

namespace avx2 {

uint64_t read_one(const std::byte* data, size_t bytes) { return read_streams<Vector, 1, 0>(data, bytes); }
uint64_t read_four(const std::byte* data, size_t bytes) { return read_streams<Vector, 4, 0>(data, bytes); }
uint64_t read_four_prefetched(const std::byte* data, size_t bytes) {
  return read_streams<Vector, 4, kAhead>(data, bytes);
}

double peak_f32(size_t rounds, float* sink) {
  __m256 sums[kSums];
  for (size_t i = 0; i < kSums; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i + 1));
  const __m256 factor = _mm256_set1_ps(0.999f);
  const __m256 term = _mm256_set1_ps(0.001f);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (size_t i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  _mm256_storeu_ps(sink, sums[0]);
  return static_cast<double>(kSums) * 8 * 2;
}

}  // namespace avx2

// Without VNNI: unsigned times signed bytes, pairs to 16 bits, pairs of those to 32 bits, added up.
double avx2_peak_i8(size_t rounds, float* sink) {
  constexpr size_t kChains = 6;
  __m256i sums[kChains];
  for (size_t i = 0; i < kChains; ++i) sums[i] = _mm256_set1_epi32(static_cast<int>(i));
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i term = _mm256_set1_epi8(-5);
  __m256i factor = _mm256_set1_epi8(3);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 6
    for (size_t i = 0; i < kChains; ++i) {
      // Each product must be computed anew.
      asm("" : "+x"(factor));
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(factor, term), ones));
    }
  }
  for (size_t i = 1; i < kChains; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_ps(sink, _mm256_cvtepi32_ps(sums[0]));
  return static_cast<double>(kChains) * 32 * 2;
}

}  // namespace finch::bench
