#include <arm_neon.h>

#include "limits.hpp"

namespace finch::bench {

double neon_peak_i8(size_t rounds, float* sink) {
  constexpr size_t kSums = 24;
  int32x4_t sums[kSums];
  // Different from each other, or the compiler would see one sum.
  for (size_t i = 0; i < kSums; ++i) sums[i] = vdupq_n_s32(static_cast<int32_t>(i + 1));
  const int8x16_t factor = vdupq_n_s8(3);
  const int8x16_t term = vdupq_n_s8(-5);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (size_t i = 0; i < kSums; ++i) sums[i] = vdotq_s32(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = vaddq_s32(sums[0], sums[i]);
  vst1q_f32(sink, vcvtq_f32_s32(sums[0]));
  return static_cast<double>(kSums) * 16 * 2;
}

}  // namespace finch::bench
