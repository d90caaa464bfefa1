// Family scan, panels with AMX: 16 x 16 scores and 64 bytes of each row in one instruction. `few` stays AVX-512's, so
// canonical scores are the same with and without AMX. float32 rows are narrowed to bf16 on the way: a filter whose
// error is bounded, so that what passes it, scored again, is the exact result.
#if defined(__x86_64__) || defined(_M_X64)

#include "kernels/scan/avx512.hpp"

namespace finch {
namespace {

constexpr size_t kTile = 16;       // rows, or queries, of one tile
constexpr size_t kTileBytes = 64;  // of each row
constexpr size_t kTileWords = kTileBytes / sizeof(uint32_t);
constexpr size_t kPanel = 2 * kTile;
constexpr size_t kStepBytes = kTile * kTileBytes;  // one tile of queries

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

struct Bf16 {
  static constexpr size_t kPerWord = 2, kHeader = 0;
  static void pack(const float* queries, size_t count, size_t d, void* out) {
    pack_words<PackBf16>(queries, count, d, kTile, static_cast<uint32_t*>(out));
  }
};
struct I8 {
  static constexpr size_t kPerWord = 4, kHeader = kTile * sizeof(int32_t);
  static void pack(const float* queries, size_t count, size_t d, void* out) {
    pack_i8<int8_t>(queries, count, d, kTile, out);
  }
};

template <typename Format>
size_t steps_of(size_t d) {
  return (d + kTileWords * Format::kPerWord - 1) / (kTileWords * Format::kPerWord);
}
// A panel is two halves of 16 queries: a header, then a tile for each step.
template <typename Format>
size_t half_bytes(size_t d) {
  return Format::kHeader + steps_of<Format>(d) * kStepBytes;
}
template <typename Format>
size_t panel_bytes(size_t d) {
  return 2 * half_bytes<Format>(d);
}
template <typename Format>
void pack(const float* queries, size_t count, size_t d, void* out) {
  std::memset(out, 0, panel_bytes<Format>(d));
  const size_t first = count < kTile ? count : kTile;
  Format::pack(queries, first, d, out);
  if (count > first) {
    Format::pack(queries + first * d, count - first, d, static_cast<char*>(out) + half_bytes<Format>(d));
  }
}

// Tiles 0 to 3 are sums (two of rows x two of queries), 4 and 5 rows, 6 and 7 queries.
template <typename Format>
inline void clear(const char* half0, const char* half1, bool rows2, bool queries2) {
  if constexpr (Format::kHeader == 0) {
    _tile_zero(0);
    if (queries2) _tile_zero(1);
    if (rows2) _tile_zero(2);
    if (rows2 && queries2) _tile_zero(3);
  } else {
    // Stride 0: each row of sums begins with its query's start.
    _tile_loadd(0, half0, 0);
    if (queries2) _tile_loadd(1, half1, 0);
    if (rows2) _tile_loadd(2, half0, 0);
    if (rows2 && queries2) _tile_loadd(3, half1, 0);
  }
}

#define FINCH_MULTIPLY(c, a, b)         \
  if constexpr (Format::kHeader == 0) { \
    _tile_dpbf16ps(c, a, b);            \
  } else {                              \
    _tile_dpbusd(c, a, b);              \
  }

// 16 x 16 sums, `first` and `query` being the first row and query.
template <typename Format>
Survivor* emit(const void* sums, const ScanRows& rows, size_t first, size_t query, const float* bars, Survivor* out) {
  const __m512 bar = _mm512_loadu_ps(bars + query);
  const size_t count = rows.count - first < kTile ? rows.count - first : kTile;
  for (size_t r = 0; r < count; ++r) {
    __m512 score;
    if constexpr (Format::kHeader == 0) {
      score = _mm512_load_ps(static_cast<const float*>(sums) + r * kTile);
    } else {
      score = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(static_cast<const int32_t*>(sums) + r * kTile)),
                            _mm512_set1_ps(rows.scales[first + r]));
    }
    uint32_t reached = _mm512_cmp_ps_mask(score, bar, _CMP_GE_OQ);
    if (reached == 0) continue;
    alignas(64) float scores[kTile];
    _mm512_store_ps(scores, score);
    for (; reached != 0; reached &= reached - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(reached));
      *out++ = {scores[lane], static_cast<uint32_t>(first + r), static_cast<uint32_t>(query + lane)};
    }
  }
  return out;
}

struct RowTiles {
  const char* data;
  size_t row_step;   // bytes from row to row
  size_t tile_step;  // bytes from one 64-byte step of the rows to the next
};

// Whether the rows are 16, evenly spaced, and not so that they share few sets of the first cache.
bool loadable(const void* const* codes, size_t count, size_t* step) {
  if (count < kTile) return false;
  const auto* first = static_cast<const char*>(codes[0]);
  const auto distance = static_cast<const char*>(codes[1]) - first;
  for (size_t r = 2; r < kTile; ++r) {
    if (static_cast<const char*>(codes[r]) - first != static_cast<ptrdiff_t>(r) * distance) return false;
  }
  *step = static_cast<size_t>(distance);  // tiles take negative strides as well
  return distance % 1024 != 0;
}

// The rows' place, or a copy in tile order.
RowTiles row_tiles(const ScanRows& rows, size_t first, size_t steps, char* copy) {
  const size_t count = rows.count - first < kTile ? rows.count - first : kTile;
  size_t step = 0;
  if (loadable(rows.codes + first, count, &step)) {
    return {static_cast<const char*>(rows.codes[first]), step, kTileBytes};
  }
  for (size_t r = 0; r < kTile; ++r) {
    // Rows that are not there are copies of the last; their scores are not read.
    const char* row = static_cast<const char*>(rows.codes[first + (r < count ? r : count - 1)]);
    for (size_t s = 0; s < steps; ++s) {
      _mm512_store_si512(copy + (s * kTile + r) * kTileBytes, _mm512_load_si512(row + s * kTileBytes));
    }
  }
  return {copy, kTileBytes, kTile * kTileBytes};
}

template <typename Format>
size_t run(const ScanRows& rows, const void* packed, size_t panels, size_t d, const float* bars, Survivor* out) {
  const Survivor* const begin = out;
  const size_t steps = steps_of<Format>(d);
  const size_t bytes = panel_bytes<Format>(d);
  char* const copy = static_cast<char*>(rows.workspace);
  alignas(64) float sums[4][kTile * kTile];
  const TileConfig config;
  _tile_loadconfig(&config);
  for (size_t r = 0; r < rows.count; r += 2 * kTile) {
    const bool rows2 = r + kTile < rows.count;
    const RowTiles a0 = row_tiles(rows, r, steps, copy);
    const RowTiles a1 = rows2 ? row_tiles(rows, r + kTile, steps, copy + steps * kTile * kTileBytes) : a0;
    const char* panel = static_cast<const char*>(packed);
    for (size_t p = 0; p < panels; ++p, panel += bytes) {
      const size_t query = p * kPanel;
      // Bars that nothing reaches: lanes without a query, or queries that want no more.
      const bool queries2 =
          _mm512_cmp_ps_mask(_mm512_loadu_ps(bars + query + kTile), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ) != 0;
      const char* const half1 = panel + half_bytes<Format>(d);
      clear<Format>(panel, half1, rows2, queries2);
      const char* y0 = panel + Format::kHeader;
      const char* y1 = half1 + Format::kHeader;
      const char* x0 = a0.data;
      const char* x1 = a1.data;
      if (rows2 && queries2) {
        for (size_t s = 0; s < steps; ++s, y0 += kStepBytes, y1 += kStepBytes, x0 += a0.tile_step, x1 += a1.tile_step) {
          _tile_loadd(4, x0, a0.row_step);
          _tile_loadd(6, y0, kTileBytes);
          FINCH_MULTIPLY(0, 4, 6)
          _tile_loadd(7, y1, kTileBytes);
          FINCH_MULTIPLY(1, 4, 7)
          _tile_loadd(5, x1, a1.row_step);
          FINCH_MULTIPLY(2, 5, 6)
          FINCH_MULTIPLY(3, 5, 7)
        }
      } else {
        for (size_t s = 0; s < steps; ++s, y0 += kStepBytes, y1 += kStepBytes, x0 += a0.tile_step, x1 += a1.tile_step) {
          _tile_loadd(4, x0, a0.row_step);
          _tile_loadd(6, y0, kTileBytes);
          FINCH_MULTIPLY(0, 4, 6)
          if (queries2) {
            _tile_loadd(7, y1, kTileBytes);
            FINCH_MULTIPLY(1, 4, 7)
          }
          if (rows2) {
            _tile_loadd(5, x1, a1.row_step);
            FINCH_MULTIPLY(2, 5, 6)
          }
        }
      }
      _tile_stored(0, sums[0], kTileBytes);
      out = emit<Format>(sums[0], rows, r, query, bars, out);
      if (queries2) {
        _tile_stored(1, sums[1], kTileBytes);
        out = emit<Format>(sums[1], rows, r, query + kTile, bars, out);
      }
      if (rows2) {
        _tile_stored(2, sums[2], kTileBytes);
        out = emit<Format>(sums[2], rows, r + kTile, query, bars, out);
      }
      if (rows2 && queries2) {
        _tile_stored(3, sums[3], kTileBytes);
        out = emit<Format>(sums[3], rows, r + kTile, query + kTile, bars, out);
      }
    }
  }
  _tile_release();
  return static_cast<size_t>(out - begin);
}
#undef FINCH_MULTIPLY

// The copies of two groups of rows.
template <typename Format>
size_t workspace_bytes(size_t d) {
  return 2 * kTile * steps_of<Format>(d) * kTileBytes;
}

inline __m512i to_bf16(__m512 low, __m512 high) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)); }

// A row in bf16. Rows an odd number of cache lines apart lie in different sets of the first cache.
size_t narrow_bytes(size_t d) { return (steps_of<Bf16>(d) | 1) * kTileBytes; }
void narrow_f32(const void* row, size_t d, void* out) {
  const auto* x = static_cast<const float*>(row);
  auto* codes = static_cast<uint16_t*>(out);
  size_t i = 0;
  for (; i + 32 <= d; i += 32) {
    // Mostly the next row lies behind this one.
    FINCH_PREFETCH(x + i + d);
    FINCH_PREFETCH(x + i + d + 16);
    _mm512_store_si512(codes + i, to_bf16(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16)));
  }
  if (i == d) return;
  const size_t left = d - i;
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(left < 16 ? left : 16), x + i);
  const __m512 high = left > 16 ? _mm512_maskz_loadu_ps(first_lanes(left - 16), x + i + 16) : _mm512_setzero_ps();
  _mm512_store_si512(codes + i, to_bf16(low, high));
}
// Codes are filled up with zeros to whole steps.
void narrow_f16(const void* row, size_t d, void* out) {
  const auto* x = static_cast<const uint16_t*>(row);
  auto* codes = static_cast<uint16_t*>(out);
  const auto load = [&](size_t i) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(x + i)));
  };
  for (size_t i = 0; i < d; i += 32) _mm512_store_si512(codes + i, to_bf16(load(i), load(i + 16)));
}

// `few` of another file, panels of this one.
template <typename Format>
ScanFormat with_tiles(const ScanFormat& other) {
  ScanFormat format = other;
  format.most_few = 1;
  format.panel = kPanel;
  format.panel_bytes = panel_bytes<Format>;
  format.pack = pack<Format>;
  format.panels = run<Format>;
  format.workspace_bytes = workspace_bytes<Format>;
  format.wide_bytes = nullptr;
  format.widen = nullptr;
  return format;
}

ScanFormat filter(const ScanFormat& exact, size_t most_few, void (*narrow)(const void*, size_t, void*)) {
  ScanFormat format = with_tiles<Bf16>(exact);
  format.most_few = most_few;
  format.wide_bytes = narrow_bytes;
  format.widen = narrow;
  // Rounding to nearest, with a significand of 8 bits, changes a number by at most u / (1 + u) of itself, u = 2^-8, so
  // row and query each by a vector of at most that length: |q r - q' r'| <= |q| |r - r'| + |q - q'| |r'| < 2 u for unit
  // vectors, and for a row that rounding to half precision made longer by at most 2^-11.
  format.rounding = 0x1.004p-7f;
  return format;
}

}  // namespace

namespace amx {

const ScanFormat& scan_bf16() {
  static const ScanFormat format = with_tiles<Bf16>(avx512bf16::scan_bf16);
  return format;
}
const ScanFormat& scan_i8() {
  static const ScanFormat format = with_tiles<I8>(avx512vnni::scan_i8);
  return format;
}

const ScanFormat& filter_f32() {
  static const ScanFormat format = filter(avx512::scan.f32, kFewQueries, narrow_f32);
  return format;
}
const ScanFormat& filter_f16() {
  static const ScanFormat format = filter(avx512::scan.f16, 1, narrow_f16);
  return format;
}

}  // namespace amx
}  // namespace finch
#endif
