// Family unit: what normalising needs. Any alignment, any d (0 included).
//
// Every table gives the same bits, so that the same vector has the same unit vector on every machine: square_sum adds
// the square of element i, which is exact in float64, to lane i mod 32 (32 float64 lanes, zero at first), then lane j
// += lane j + 16 for j < 16, and so on with 8, 4, 2, 1; scale rounds the float64 product x_i * factor to float32.
#pragma once

#include <cstddef>

namespace finch {

#define FINCH_DECLARE_UNIT(isa)                                    \
  namespace isa {                                                  \
  double square_sum(const float* x, size_t d);                     \
  void scale(const float* x, double factor, size_t d, float* out); \
  }
FINCH_DECLARE_UNIT(portable)
FINCH_DECLARE_UNIT(avx2)
FINCH_DECLARE_UNIT(avx512)
FINCH_DECLARE_UNIT(neon)
#undef FINCH_DECLARE_UNIT

}  // namespace finch
