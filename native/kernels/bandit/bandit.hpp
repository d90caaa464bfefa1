// Family bandit, float32: scoring and updating arms of the discounted diagonal LinUCB. Any d (0 included); operands
// aligned as floats are, since the core owns them all.
//
// An arm is one block of three vectors, `stride` floats apart: A, b, and 1 / A, which arm_invert derives from A. So an
// update touches the first two alone, a score the last two alone, and only arm_invert divides.
//
// Every table gives the same bits, so that replicas on different machines that apply the same log agree:
//   - only IEEE multiplication, division and fused multiply-add (fma: one rounding), each written out;
//   - arm_scores, per arm: t_i = x_i * inverse_a_i; lane i mod 32 of the mean becomes fma(b_i, t_i, lane) and lane i
//     mod 32 of the variance fma(x_i, t_i, lane) (32 float32 lanes, zero at first); then lane j += lane j + 16 for
//     j < 16, and so on with 8, 4, 2, 1;
//   - context_dots, per sum: lane i mod 32 becomes fma(sum_i, x_i, lane), and the lanes are added as above;
//   - arm_invert, per element: inverse_a <- 1 / a;
//   - arm_update, per element: a <- fma(gamma, a, fma(x, x, floor)) and b <- fma(gamma, b, fma(reward, x, kSmallestB)).
#pragma once

#include <cstddef>

namespace finch {

// A never falls below this, since no update adds less: so 1 / A and all that is made of it stay finite, also in the
// literal form, whose A decays where x has no component.
inline constexpr float kSmallestA = 1e-30f;

// b decays likewise where x has no component. What keeps it above the subnormals, whose arithmetic takes up to 20 times
// as long, is far below anything that could show: it never exceeds 1e-6 of the A it is divided by.
inline constexpr float kSmallestB = 1e-36f;

#define FINCH_DECLARE_BANDIT(isa)                                                                                \
  namespace isa {                                                                                                \
  void arm_scores(const float* const* arms, size_t stride, size_t count, const float* x, size_t d, float* means, \
                  float* variances);                                                                             \
  void context_dots(const float* const* sums, size_t count, const float* x, size_t d, float* dots);              \
  void arm_invert(float* arm, size_t stride, size_t d);                                                          \
  void arm_update(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward);  \
  }
FINCH_DECLARE_BANDIT(portable)
FINCH_DECLARE_BANDIT(avx2)
FINCH_DECLARE_BANDIT(avx512)
FINCH_DECLARE_BANDIT(neon)
#undef FINCH_DECLARE_BANDIT

}  // namespace finch
