// Family gaps, float32: what truncation needs of a list of embeddings, in one pass. Any alignment, any d (0 included).
//
// gap_rows: dots[i] = rows[i] . rows[i + 1] for i < count - 1 and norms[i] = rows[i] . rows[i] for i < count. Every sum
// follows the order of summation of dot/dot.hpp, with four accumulators of its own, and has the bits of the same
// table's dot. So a row and its copy have a cosine of exactly 1.
//
// cosines: out[i] = dots[i] / (sqrt(norms[i]) sqrt(norms[i + 1])) for i < count - 1, in float64, clipped to [-1, 1] and
// rounded once: the same bits in every table. Of a norm that is 0 or not finite it makes nothing of meaning.
#pragma once

#include <cstddef>

namespace finch {

#define FINCH_DECLARE_GAPS(isa)                                                               \
  namespace isa {                                                                             \
  void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms); \
  void cosines(const float* dots, const float* norms, size_t count, float* out);              \
  }
FINCH_DECLARE_GAPS(portable)
FINCH_DECLARE_GAPS(avx2)
FINCH_DECLARE_GAPS(avx512)
FINCH_DECLARE_GAPS(neon)
#undef FINCH_DECLARE_GAPS

}  // namespace finch
