// Family gaps, float32: what truncation needs of two neighbouring embeddings, in one pass over the second. Any
// alignment, any d (0 included).
//
// Both sums follow the order of summation of dot/dot.hpp, each with four accumulators of its own: `dot` has the bits of
// the same table's dot(a, b, d), and `norm` those of dot(b, b, d). So a row and its copy have a cosine of exactly 1.
#pragma once

#include <cstddef>

namespace finch {

#define FINCH_DECLARE_GAPS(isa)                                                         \
  namespace isa {                                                                       \
  void dot_and_norm(const float* a, const float* b, size_t d, float* dot, float* norm); \
  }
FINCH_DECLARE_GAPS(portable)
FINCH_DECLARE_GAPS(avx2)
FINCH_DECLARE_GAPS(avx512)
FINCH_DECLARE_GAPS(neon)
#undef FINCH_DECLARE_GAPS

}  // namespace finch
