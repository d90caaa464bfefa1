// Dynamic top-k (SPEC 2; MagicSelector, algorithm 2): where to cut a ranked list.
//
// Precision, the same for every caller: similarities are float32 (computed from float32 dot products and squared norms,
// the quotient in float64, rounded once and clipped to [-1, 1]); gaps are float64 differences of float32 scores or
// float32 similarities; the largest gap is the first that no later one exceeds.
#pragma once

#include <cstddef>

#include "toolfinch.h"

namespace finch {

// The embeddings in the list's order: one block of rows, or a pointer to each.
struct EmbeddingRows {
  const float* block = nullptr;
  const float* const* rows = nullptr;
  size_t dimension = 0;

  const float* at(size_t i) const noexcept { return rows != nullptr ? rows[i] : block + i * dimension; }
  bool present() const noexcept { return rows != nullptr || block != nullptr; }
};

// Options read, defaulted and checked; NULL gives the defaults. Sets the message on failure.
finch_status read_cut_options(const finch_cut_options* given, finch_cut_options* out) noexcept;

// finch_truncate without the checks of pointers and options. Only `out` and `similarities` (n - 1, may be NULL) are
// written, `similarities` also on failure. `list` (-1: none) names the list in messages.
finch_status truncate(const float* scores, const EmbeddingRows& embeddings, size_t n, const finch_cut_options& options,
                      long long list, finch_cut* out, float* similarities) noexcept;

}  // namespace finch
