#include <immintrin.h>

#include "limits.hpp"

namespace finch::bench {

double avx512_peak_bf16(size_t rounds, float* sink) {
  constexpr size_t kSums = 24;
  __m512 sums[kSums];
  // Different from each other, or the compiler would see one sum.
  for (size_t i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i + 1));
  const auto factor = (__m512bh)_mm512_set1_epi16(0x3f80);  // 1.0
  const auto term = (__m512bh)_mm512_set1_epi16(0x3c00);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (size_t i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], factor, term);
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
  return static_cast<double>(kSums) * 32 * 2;
}

}  // namespace finch::bench
