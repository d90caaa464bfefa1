// Vectors to search, and what an exact search in float64 finds: the reference, sharing no code with the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::bench {

struct Spread {
  // 0: every vector is independent. Otherwise vectors lie around this many centres, which `centre_seed` alone decides.
  size_t clusters = 0;
  uint64_t centre_seed = 0;
  // Length of the random part beside a centre of length 1.
  float width = 0.5f;
};

// Unit vectors; row r depends on the seed and r alone.
void fill_unit(float* out, size_t rows, size_t dimension, uint64_t seed, const Spread& spread, size_t threads);

struct Truth {
  size_t k;
  std::vector<uint32_t> rows;  // queries x k, best first, ties by row
  std::vector<double> scores;
};
Truth exact_top(const float* matrix, size_t rows, const float* queries, size_t count, size_t dimension, size_t k,
                size_t threads);

double dot64(const float* a, const float* b, size_t dimension);

}  // namespace finch::bench
