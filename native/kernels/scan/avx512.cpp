// Family scan with AVX-512 F, DQ, BW and VL: bf16 and f16 are widened to float32, i8 to int16.
#if defined(__x86_64__) || defined(_M_X64)

#include "kernels/scan/avx512.hpp"

namespace finch {
namespace {

struct LoadF32 {
  static constexpr bool kPadded = false;
  static constexpr size_t kCodeBytes = 4;
  static __m512 load(const void* row, size_t i) { return _mm512_loadu_ps(static_cast<const float*>(row) + i); }
  static __m512 load_tail(const void* row, size_t i, size_t lanes) {
    return _mm512_maskz_loadu_ps(first_lanes(lanes), static_cast<const float*>(row) + i);
  }
};
struct LoadBf16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static __m512 load(const void* row, size_t i) {
    const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(static_cast<const uint16_t*>(row) + i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
  }
  static __m512 load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};
struct LoadF16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static __m512 load(const void* row, size_t i) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(static_cast<const uint16_t*>(row) + i)));
  }
  static __m512 load_tail(const void* row, size_t i, size_t) { return load(row, i); }
};

// int16 products of pairs, summed in int32: exact.
struct MultiplyI16 {
  static constexpr size_t kStep = 32, kPerWord = 2;
  using Element = int16_t;
  static __m512i load_row(const uint8_t* codes) {
    return _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(codes)));
  }
  static __m512i multiply_add(__m512i sum, __m512i row, __m512i query) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(row, query));
  }
};

using F32 = PanelScan<PanelF32<12>>;
using I16 = PanelScan<PanelInteger<MultiplyI16, 8>>;

void pack_f32(const float* queries, size_t count, size_t d, void* out) {
  pack_words<PackF32>(queries, count, d, F32::kPanel, static_cast<uint32_t*>(out));
}
void pack_i16(const float* queries, size_t count, size_t d, void* out) {
  pack_i8<int16_t>(queries, count, d, I16::kPanel, out);
}

size_t wide_f32_bytes(size_t d) { return round_up(d, 16) * sizeof(float); }
template <typename Load>
void widen_f32(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 16) _mm512_store_ps(static_cast<float*>(out) + i, Load::load(row, i));
}
size_t wide_i16_bytes(size_t d) { return round_up(d, 32) * sizeof(int16_t); }
void widen_i16(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; i += 32) {
    _mm512_store_si512(static_cast<int16_t*>(out) + i, MultiplyI16::load_row(static_cast<const uint8_t*>(row) + i));
  }
}

template <typename Load>
constexpr ScanFormat widened() {
  return widened_format<FewFloat<Load>, F32>(prepare_padded_f32, pack_f32, wide_f32_bytes, widen_f32<Load>);
}

}  // namespace

namespace avx512 {

extern constexpr ScanFormats scan = {
    direct_format<FewFloat<LoadF32>, F32>(prepare_f32, pack_f32),
    widened<LoadBf16>(),
    widened<LoadF16>(),
    widened_format<FewInteger<MultiplyI16>, I16>(FewInteger<MultiplyI16>::prepare, pack_i16, wide_i16_bytes, widen_i16),
};

}  // namespace avx512
}  // namespace finch
#endif
