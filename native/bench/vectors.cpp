#include "vectors.hpp"

#include <algorithm>
#include <cmath>

#include "affinity.hpp"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FINCH_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define FINCH_CLONES
#endif

namespace finch::bench {
namespace {

// splitmix64 (Steele, Lea and Flood).
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : state_(seed * 0x9e3779b97f4a7c15u + stream * 0xd1342543de82ef95u + 1) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Nearly normal: the sum of four uniform numbers, from one draw.
  float normal() {
    const uint64_t bits = next();
    const auto sum = static_cast<int>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return static_cast<float>(sum - 131070) / 37837.0f;
  }

 private:
  uint64_t state_;
};

void unit_row(float* out, size_t dimension, uint64_t seed, uint64_t row) {
  Random random(seed, row);
  double norm = 0;
  for (size_t i = 0; i < dimension; ++i) {
    out[i] = random.normal();
    norm += double{out[i]} * out[i];
  }
  const auto scale = static_cast<float>(1 / std::sqrt(norm));
  for (size_t i = 0; i < dimension; ++i) out[i] *= scale;
}

struct Scored {
  double score;
  uint32_t row;
};
bool better(const Scored& a, const Scored& b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

}  // namespace

FINCH_CLONES double dot64(const float* a, const float* b, size_t dimension) {
  constexpr size_t kLanes = 32;
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= dimension; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += double{a[i + lane]} * double{b[i + lane]};
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < dimension; ++i) total += double{a[i]} * double{b[i]};
  return total;
}

void fill_unit(float* out, size_t rows, size_t dimension, uint64_t seed, const Spread& spread, size_t threads) {
  std::vector<float> centres(spread.clusters * dimension);
  for (size_t c = 0; c < spread.clusters; ++c) unit_row(&centres[c * dimension], dimension, spread.centre_seed, c);
  run_team(threads, [&](size_t i) {
    for (size_t row = rows * i / threads; row < rows * (i + 1) / threads; ++row) {
      float* to = out + row * dimension;
      unit_row(to, dimension, seed, row);
      if (spread.clusters == 0) continue;
      const float* centre = &centres[Random(seed ^ 0x5bd1e995u, row).next() % spread.clusters * dimension];
      double norm = 0;
      for (size_t j = 0; j < dimension; ++j) {
        to[j] = centre[j] + spread.width * to[j];
        norm += double{to[j]} * to[j];
      }
      const auto scale = static_cast<float>(1 / std::sqrt(norm));
      for (size_t j = 0; j < dimension; ++j) to[j] *= scale;
    }
  });
}

Truth exact_top(const float* matrix, size_t rows, const float* queries, size_t count, size_t dimension, size_t k,
                size_t threads) {
  k = std::min(k, rows);
  // A block of rows that fits the L2 cache is scored against every query of the thread.
  const size_t block = std::max<size_t>(1, (size_t{256} << 10) / (dimension * sizeof(float)));
  Truth truth{k, std::vector<uint32_t>(count * k), std::vector<double>(count * k)};
  run_team(threads, [&](size_t i) {
    const size_t first = count * i / threads;
    const size_t last = count * (i + 1) / threads;
    std::vector<std::vector<Scored>> best(last - first);
    for (size_t start = 0; start < rows; start += block) {
      const size_t end = std::min(rows, start + block);
      for (size_t q = first; q < last; ++q) {
        std::vector<Scored>& heap = best[q - first];
        for (size_t row = start; row < end; ++row) {
          const Scored found{dot64(queries + q * dimension, matrix + row * dimension, dimension),
                             static_cast<uint32_t>(row)};
          if (heap.size() == k && !better(found, heap.front())) continue;
          if (heap.size() == k) {
            std::pop_heap(heap.begin(), heap.end(), better);
            heap.pop_back();
          }
          heap.push_back(found);
          std::push_heap(heap.begin(), heap.end(), better);
        }
      }
    }
    for (size_t q = first; q < last; ++q) {
      std::sort_heap(best[q - first].begin(), best[q - first].end(), better);
      for (size_t j = 0; j < k; ++j) {
        truth.rows[q * k + j] = best[q - first][j].row;
        truth.scores[q * k + j] = best[q - first][j].score;
      }
    }
  });
  return truth;
}

}  // namespace finch::bench
