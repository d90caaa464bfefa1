// The kernels, one table per instruction set; the resolver picks a table once. Each family lives in
// kernels/<family>/<isa>.cpp, compiled with that set's flags, and nothing else is: a baseline binary runs anywhere.
//
// Rule of determinism: for one table, a result depends on its operands alone, never on how many rows or queries a call
// holds.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/scan/scan.hpp"
#include "toolfinch.h"

namespace finch {

struct Kernels {
  const char* name;  // as finch_isa() says it

  // scan, by finch_storage.
  const ScanFormat* scan[4];
  const ScanFormat& scan_format(finch_storage storage) const noexcept { return *scan[storage]; }
  // The same rows with `panels` that are quicker and less exact (ScanFormat::rounding); null where there is none.
  const ScanFormat* filter[4] = {};

  // dot: sum a_i b_i.
  float (*dot)(const float* a, const float* b, size_t d);

  // gaps: dots[i] = rows[i] . rows[i + 1] and norms[i] = rows[i] . rows[i], each the bits of `dot`.
  void (*gap_rows)(const float* const* rows, size_t count, size_t d, float* dots, float* norms);
  // out[i] = dots[i] / (sqrt(norms[i]) sqrt(norms[i + 1])) within [-1, 1], the same bits in every table.
  void (*cosines)(const float* dots, const float* norms, size_t count, float* out);

  // bandit, the same bits in every table; an arm is A, b and 1 / A, a stride apart.
  // means[k] = sum b_i x_i / A_i and variances[k] = sum x_i^2 / A_i of arm k.
  void (*arm_scores)(const float* const* arms, size_t stride, size_t count, const float* x, size_t d, float* means,
                     float* variances);
  // dots[k] = sum sums[k]_i x_i.
  void (*context_dots)(const float* const* sums, size_t count, const float* x, size_t d, float* dots);
  void (*arm_invert)(float* arm, size_t stride, size_t d);
  // A <- gamma A + x^2 + floor; b <- gamma b + reward x. 1 / A is left behind.
  void (*arm_update)(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward);

  // unit, the same bits in every table: sum x_i^2 and x_i * factor, both in float64.
  double (*square_sum)(const float* x, size_t d);
  void (*scale)(const float* x, double factor, size_t d, float* out);
};

// The table in use, resolved at the first call (cpuid, TOOLFINCH_ISA) and fixed from then on.
const Kernels& kernels() noexcept;
// Every table this machine can run, portable first: what the tests iterate over.
std::span<const Kernels* const> available_kernels() noexcept;

}  // namespace finch
