// Normalising: one way, one order of summation, so that the same vector gives the same bits wherever it enters.
#pragma once

#include <cstddef>

#include "toolfinch.h"

namespace finch {

// out = in / |in|, the norm in double precision: no float32 input overflows or underflows on the way. `in` may have any
// alignment and may be `out`. FINCH_OK, FINCH_NOT_FINITE or FINCH_ZERO_VECTOR; sets no message; `out` is untouched on
// failure.
finch_status to_unit(const float* in, size_t dimension, float* out) noexcept;

// 1 / |in|: what to_unit multiplies by. The same failures.
finch_status unit_factor(const float* in, size_t dimension, double* factor) noexcept;

}  // namespace finch
