// Family scan: many rows against many queries, of which only the pairs that reach their query's bar come back. What the
// score matrix would hold is compared while it is in registers and never written.
//
// Rows come as pointers, so that a mask costs nothing but the rows it leaves out. Two kernels per storage format:
//   few     1 to `few` queries, each a row of codes of its own: dot products along the dimension. Bound by memory.
//   panels  any number of queries, packed `panel` to a panel with one query per lane: a row's element is broadcast
//           against all lanes, so nothing is summed across lanes and the comparison with the bars is one instruction
//           for 16 scores. Bound by arithmetic.
// The two sum in different orders. `few` with one query is a format's canonical score: its bits depend on the row and
// the query alone, never on how many rows or queries a call holds. The others differ from it by at most
// scan_error_bound.
//
// Codes (core/codes.hpp makes them):
//   f32   the float32 vector itself, `d` long, any alignment of a float.
//   bf16  uint16 each, filled up with zeros to whole 64 bytes, aligned to 64.
//   f16   the same with IEEE half precision.
//   i8    uint8 each, value + 128, filled up with 128; a scale per row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finch {

struct Survivor {
  float score;
  uint32_t row;    // place in the call's list of rows
  uint32_t query;  // place among the call's queries
};

constexpr size_t kScanRows = 96;   // the most rows of one call
constexpr size_t kFewQueries = 8;  // the most queries of one `few` call
constexpr size_t kCodeAlign = 64;  // bytes

struct ScanRows {
  const void* const* codes;
  const float* scales;        // one per row; read by i8 alone
  size_t count;               // 1 ... kScanRows
  void* workspace = nullptr;  // workspace_bytes(d), aligned to kCodeAlign, where the format has that
};

// One storage format in one table.
struct ScanFormat {
  // A query (float32, unit) as `few` reads it; `out` has few_bytes(d).
  size_t (*few_bytes)(size_t d);
  void (*prepare)(const float* query, size_t d, void* out);
  // queries: `count` prepared ones, few_bytes(d) apart. Writes at most rows.count * count survivors.
  size_t (*few)(const ScanRows& rows, const void* queries, size_t count, size_t d, const float* bars, Survivor* out);

  size_t panel;  // queries per panel
  size_t (*panel_bytes)(size_t d);
  // Packs 1 ... panel queries (float32, unit, d apart); missing ones are zeros.
  void (*pack)(const float* queries, size_t count, size_t d, void* out);
  // bars: panels * panel, infinity for lanes without a query. Writes at most rows.count * panels * panel survivors.
  size_t (*panels)(const ScanRows& rows, const void* packed, size_t panels, size_t d, const float* bars, Survivor* out);
  // Where `panels` cannot read codes: widens one row (wide_bytes(d)) into what it reads. Null where it can.
  size_t (*wide_bytes)(size_t d);
  void (*widen)(const void* row, size_t d, void* out);
  // Up to how many queries `few` is the quicker one.
  size_t most_few = kFewQueries;
  // Memory that `panels` works in; null for none.
  size_t (*workspace_bytes)(size_t d) = nullptr;
  // What rounding of rows or queries adds to the difference between `panels` and the canonical score.
  float rounding = 0.0f;
};

struct ScanFormats {
  ScanFormat f32, bf16, f16, i8;
};

// |score of any kernel - canonical score| for unit rows and queries: both are sums of d float32 products, each within
// d 2^-24 (1 + a little) of the exact one (Cauchy and Schwarz: the absolute products sum up to 1, and to 1.01 where
// rounding to 8 bits of mantissa has lengthened a vector). i8 sums integers: no error.
constexpr float scan_error_bound(size_t d) { return 2.02f * static_cast<float>(d) * 5.9604645e-8f; }

#define FINCH_DECLARE_SCAN(isa)  \
  namespace isa {                \
  extern const ScanFormats scan; \
  }
FINCH_DECLARE_SCAN(portable)
FINCH_DECLARE_SCAN(avx2)
FINCH_DECLARE_SCAN(avx512)
FINCH_DECLARE_SCAN(neon)
#undef FINCH_DECLARE_SCAN

// What later extensions add to a table: formats that replace the base table's.
namespace avx512vnni {
extern const ScanFormat scan_i8;
}
namespace avx512bf16 {
extern const ScanFormat scan_bf16;
}
namespace amx {
const ScanFormat& scan_bf16();
const ScanFormat& scan_i8();
const ScanFormat& filter_f32();
const ScanFormat& filter_f16();
}  // namespace amx
namespace neondot {
extern const ScanFormat scan_i8;
}
namespace neoni8mm {
extern const ScanFormat scan_i8;
}
namespace neonbf16 {
extern const ScanFormat scan_bf16;
}

}  // namespace finch
