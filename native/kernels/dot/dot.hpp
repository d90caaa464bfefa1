// Family dot, float32. Any alignment, any d (0 included). See kernels.hpp for the rule of determinism.
//
// Order of summation, which a kernel that promises "the bits of dot" must follow. With W lanes (portable 4, neon 4,
// avx2 8, avx512 16) there are four vector accumulators, all zero at first; element block i (W elements from i * W) is
// multiplied into accumulator i mod 4 by a fused multiply-add (portable: a multiplication, then an addition); a last,
// partial block is filled up with zeros. Then s = (acc0 + acc1) + (acc2 + acc3), lane by lane, and the upper half of s
// is added to the lower half until one lane is left (lane j + lane j + W/2 first).
#pragma once

#include <cstddef>

namespace finch {

#define FINCH_DECLARE_DOT(isa)                         \
  namespace isa {                                      \
  float dot(const float* a, const float* b, size_t d); \
  }
FINCH_DECLARE_DOT(portable)
FINCH_DECLARE_DOT(avx2)
FINCH_DECLARE_DOT(avx512)
FINCH_DECLARE_DOT(neon)
#undef FINCH_DECLARE_DOT

}  // namespace finch
