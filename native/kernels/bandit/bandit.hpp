// Family bandit, float32: scoring and updating one arm of the discounted diagonal LinUCB. Any d (0 included); operands
// aligned as floats are, since the core owns them all.
//
// Every table gives the same bits, so that replicas on different machines that apply the same log agree:
//   - no fused multiply-add anywhere, and IEEE division;
//   - arm_score: t_i = x_i * inverse_a_i; mean adds b_i * t_i and variance adds x_i * t_i into lane i mod 32 (32
//   float32
//     lanes, zero at first); then lane j += lane j + 16 for j < 16, and so on with 8, 4, 2, 1;
//   - arm_update, per element: inverse_a <- min(inverse_a / (gamma + (x * x + floor) * inverse_a), kLargestInverse) and
//     b <- gamma * b + reward * x.
#pragma once

#include <cstddef>

namespace finch {

// The literal form lets A decay towards 0 where x has no component; this keeps 1 / A, and all that is made of it,
// finite.
inline constexpr float kLargestInverse = 1e30f;

#define FINCH_DECLARE_BANDIT(isa)                                                                                 \
  namespace isa {                                                                                                 \
  void arm_score(const float* inverse_a, const float* b, const float* x, size_t d, float* mean, float* variance); \
  void arm_update(float* inverse_a, float* b, const float* x, size_t d, float gamma, float floor, float reward);  \
  }
FINCH_DECLARE_BANDIT(portable)
FINCH_DECLARE_BANDIT(avx2)
FINCH_DECLARE_BANDIT(avx512)
FINCH_DECLARE_BANDIT(neon)
#undef FINCH_DECLARE_BANDIT

}  // namespace finch
