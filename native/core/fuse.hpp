// Fusion (SPEC 5; RATED): semantic score, reliability and prior in one number.
#pragma once

#include "toolfinch.h"

namespace finch {

// Weights read, defaulted and checked; NULL gives the defaults. Sets the message on failure.
finch_status read_weights(const finch_weights* given, finch_weights* out) noexcept;

// S in float64, in the order of the formula, rounded to float32 once.
float fuse_one(float semantic, float p, float prior, float availability, const finch_weights& weights) noexcept;

}  // namespace finch
