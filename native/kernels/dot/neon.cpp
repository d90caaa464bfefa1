// dot for AArch64 NEON.
#include "kernels/dot/dot.hpp"

#if defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>

#include <cstring>

namespace finch::neon {
namespace {

constexpr size_t kLanes = 4;

inline float32x4_t load(const float* p) { return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p))); }

inline float32x4_t load_part(const float* p, size_t lanes) {
  float x[kLanes] = {};
  std::memcpy(x, p, lanes * sizeof(float));
  return vld1q_f32(x);
}

inline float sum_lanes(float32x4_t a0, float32x4_t a1, float32x4_t a2, float32x4_t a3) {
  const float32x4_t s = vaddq_f32(vaddq_f32(a0, a1), vaddq_f32(a2, a3));
  const float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
  return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

// R rows against one query. Each row has accumulators of its own, so a row's bits do not depend on R. Unrolled by
// request: at -O2 alone gcc keeps the accumulators in memory.
template <size_t R>
inline void rows_block(const float* query, const float* rows, size_t d, float* out) {
  float32x4_t acc[R][4];
#pragma GCC unroll 4
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) acc[r][j] = vdupq_n_f32(0.0f);
  }
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const float32x4_t q = load(query + i + j * kLanes);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r) acc[r][j] = vfmaq_f32(acc[r][j], q, load(rows + r * d + i + j * kLanes));
    }
  }
  size_t left = d - i;
#pragma GCC unroll 4
  for (size_t j = 0; j < 4 && left > 0; ++j) {
    const size_t lanes = left < kLanes ? left : kLanes;
    const float32x4_t q = load_part(query + i, lanes);
#pragma GCC unroll 4
    for (size_t r = 0; r < R; ++r) acc[r][j] = vfmaq_f32(acc[r][j], q, load_part(rows + r * d + i, lanes));
    i += lanes;
    left -= lanes;
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < R; ++r) out[r] = sum_lanes(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

}  // namespace

float dot(const float* a, const float* b, size_t d) {
  float out;
  rows_block<1>(a, b, d, &out);
  return out;
}

void dot_rows(const float* query, const float* rows, size_t count, size_t d, float* out) {
  size_t r = 0;
  for (; r + 4 <= count; r += 4) rows_block<4>(query, rows + r * d, d, out + r);
  for (; r < count; ++r) rows_block<1>(query, rows + r * d, d, out + r);
}

}  // namespace finch::neon
#endif
