#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/gaps/gaps.hpp"

namespace finch::avx2 {
namespace {

constexpr size_t kLanes = 8;

// -1 for the lanes below the remainder: eight words from kMask + 8 - r.
alignas(64) constexpr int kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

inline float fold(__m256 s0, __m256 s1, __m256 s2, __m256 s3) {
  const __m256 s = _mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

inline void step(__m256 x, __m256 y, __m256* dot, __m256* norm) {
  *dot = _mm256_fmadd_ps(x, y, *dot);
  *norm = _mm256_fmadd_ps(y, y, *norm);
}

void dot_and_norm(const float* a, const float* b, size_t d, float* dot, float* norm) {
  __m256 p0 = _mm256_setzero_ps(), p1 = p0, p2 = p0, p3 = p0;
  __m256 q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
    step(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), &p0, &q0);
    step(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), &p1, &q1);
    step(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16), &p2, &q2);
    step(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24), &p3, &q3);
  }
  for (size_t block = 0; i < d; ++block, i += kLanes) {
    const size_t left = d - i < kLanes ? d - i : kLanes;
    const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + kLanes - left));
    const __m256 x = _mm256_maskload_ps(a + i, mask);
    const __m256 y = _mm256_maskload_ps(b + i, mask);
    if (block == 0) step(x, y, &p0, &q0);
    if (block == 1) step(x, y, &p1, &q1);
    if (block == 2) step(x, y, &p2, &q2);
    if (block == 3) step(x, y, &p3, &q3);
  }
  *dot = fold(p0, p1, p2, p3);
  *norm = fold(q0, q1, q2, q3);
}

}  // namespace

// Sixteen registers hold the sums of one pair: the row before comes from the first-level cache again.
void gap_rows(const float* const* rows, size_t count, size_t d, float* dots, float* norms) {
  if (count == 0) return;
  float itself = 0.0f;
  dot_and_norm(rows[0], rows[0], d, &itself, &norms[0]);
  for (size_t i = 1; i < count; ++i) dot_and_norm(rows[i - 1], rows[i], d, &dots[i - 1], &norms[i]);
}

void cosines(const float* dots, const float* norms, size_t count, float* out) {
  if (count < 2) return;
  constexpr size_t kWidth = 4;
  const __m256d most = _mm256_set1_pd(1.0);
  const __m256d least = _mm256_set1_pd(-1.0);
  const auto low = [](size_t left) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(kMask + kLanes - (left < 4 ? left : 4)));
  };
  const auto load = [&](const float* p, size_t left) { return _mm256_cvtps_pd(_mm_maskload_ps(p, low(left))); };
  __m256d here = _mm256_sqrt_pd(load(norms, count));
  for (size_t i = 0; i + 1 < count; i += kWidth) {
    const size_t left = count - i;  // norms from i on; 2 at least
    const __m256d next = left > kWidth ? _mm256_sqrt_pd(load(norms + i + kWidth, left - kWidth)) : here;
    const __m256d seam = _mm256_permute2f128_pd(here, next, 0x21);  // here 2, 3, next 0, 1
    const __m256d behind = _mm256_shuffle_pd(here, seam, 0x5);      // here 1, 2, 3, next 0
    const __m256d cosine = _mm256_div_pd(load(dots + i, left - 1), _mm256_mul_pd(here, behind));
    const __m128 rounded = _mm256_cvtpd_ps(_mm256_max_pd(least, _mm256_min_pd(most, cosine)));
    _mm_maskstore_ps(out + i, low(left - 1), rounded);
    here = next;
  }
}

}  // namespace finch::avx2

#endif  // x86-64
