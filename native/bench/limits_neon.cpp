#include <arm_neon.h>

#include "limits.hpp"
#include "read_streams.hpp"

namespace finch::bench {
namespace {

struct Vector {
  using Type = uint32x4_t;
  static constexpr size_t kBytes = 16;
  static Type zero() { return vdupq_n_u32(0); }
  static Type load(const std::byte* from) { return vld1q_u32(reinterpret_cast<const uint32_t*>(from)); }
  static Type fold(Type a, Type b) { return vaddq_u32(a, b); }
  static uint64_t sum(Type v) { return vaddvq_u32(v); }
};

constexpr size_t kSums = 24;

}  // namespace

namespace neon {

uint64_t read_one(const std::byte* data, size_t bytes) { return read_streams<Vector, 1, 0>(data, bytes); }
uint64_t read_four(const std::byte* data, size_t bytes) { return read_streams<Vector, 4, 0>(data, bytes); }
uint64_t read_four_prefetched(const std::byte* data, size_t bytes) {
  return read_streams<Vector, 4, kAhead>(data, bytes);
}

double peak_f32(size_t rounds, float* sink) {
  float32x4_t sums[kSums];
  for (size_t i = 0; i < kSums; ++i) sums[i] = vdupq_n_f32(static_cast<float>(i + 1));
  const float32x4_t factor = vdupq_n_f32(1e-3f);
  float32x4_t term = vdupq_n_f32(1e-3f);
  for (size_t round = 0; round < rounds; ++round) {
    // The product must not be hoisted out of the loop.
    asm volatile("" : "+w"(term));
#pragma GCC unroll 24
    for (size_t i = 0; i < kSums; ++i) sums[i] = vfmaq_f32(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  vst1q_f32(sink, sums[0]);
  return static_cast<double>(kSums) * 4 * 2;
}

}  // namespace neon
}  // namespace finch::bench
