#include <arm_neon.h>

#include "limits.hpp"

namespace finch::bench {

double neon_peak_bf16(size_t rounds, float* sink) {
  constexpr size_t kSums = 24;
  float32x4_t sums[kSums];
  // Different from each other, or the compiler would see one sum.
  for (size_t i = 0; i < kSums; ++i) sums[i] = vdupq_n_f32(static_cast<float>(i + 1));
  const bfloat16x8_t factor = vreinterpretq_bf16_u16(vdupq_n_u16(0x3f80));
  const bfloat16x8_t term = vreinterpretq_bf16_u16(vdupq_n_u16(0x3c00));
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (size_t i = 0; i < kSums; ++i) sums[i] = vbfdotq_f32(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  vst1q_f32(sink, sums[0]);
  return static_cast<double>(kSums) * 8 * 2;
}

}  // namespace finch::bench
