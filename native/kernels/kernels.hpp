// The kernels, one table per instruction set; the resolver picks a table once. Each family lives in
// kernels/<family>/<isa>.cpp, compiled with that set's flags, and nothing else is: a baseline binary runs anywhere.
//
// Rule of determinism: for one table, a result depends on its operands alone, never on how many rows or queries a call
// holds.
#pragma once

#include <cstddef>
#include <span>

namespace finch {

struct Kernels {
  const char* name;  // "portable", "avx2", "avx512", "neon"

  // dot: sum a_i b_i.
  float (*dot)(const float* a, const float* b, size_t d);
  // out[r] = dot(query, rows + r * d), the same bits as `dot`.
  void (*dot_rows)(const float* query, const float* rows, size_t count, size_t d, float* out);

  // gaps: sum a_i b_i (the bits of `dot`) and sum b_i^2 in one pass over b.
  void (*dot_and_norm)(const float* a, const float* b, size_t d, float* dot, float* norm);

  // bandit: mean = sum b_i x_i / A_i and variance = sum x_i^2 / A_i, with inverse_a = 1 / A.
  void (*arm_score)(const float* inverse_a, const float* b, const float* x, size_t d, float* mean, float* variance);
  // A <- gamma A + x^2 + floor; b <- gamma b + reward x.
  void (*arm_update)(float* inverse_a, float* b, const float* x, size_t d, float gamma, float floor, float reward);
};

// The table in use, resolved at the first call (cpuid, TOOLFINCH_ISA) and fixed from then on.
const Kernels& kernels() noexcept;
// Every table this machine can run, portable first: what the tests iterate over.
std::span<const Kernels* const> available_kernels() noexcept;

}  // namespace finch
