// Family scan in plain C++, four lanes wide: the compiler makes of them what the baseline has. bf16 and f16 are widened
// to float32, i8 to int16.
#include "kernels/scan/prepare.hpp"
#include "kernels/scan/tile.hpp"

namespace finch {
namespace {

constexpr size_t kLanes = 4;

template <typename T>
struct Lanes {
  T v[kLanes];
};
using Floats = Lanes<float>;
using Integers = Lanes<int32_t>;

template <typename T>
Lanes<T> add(const Lanes<T>& a, const Lanes<T>& b) {
  Lanes<T> sum;
  for (size_t i = 0; i < kLanes; ++i) sum.v[i] = a.v[i] + b.v[i];
  return sum;
}

// The upper half is added to the lower until one lane is left: the order of dot/dot.hpp.
template <typename T>
T sum_lanes(const Lanes<T>& s) {
  return (s.v[0] + s.v[2]) + (s.v[1] + s.v[3]);
}

// --- few
// --------------------------------------------------------------------------------------------------------------
struct LoadF32 {
  static constexpr bool kPadded = false;
  static constexpr size_t kCodeBytes = 4;
  static float load(const void* row, size_t i) {
    float x;
    std::memcpy(&x, static_cast<const char*>(row) + i * sizeof(x), sizeof(x));
    return x;
  }
};
struct LoadBf16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static float load(const void* row, size_t i) { return from_bf16(static_cast<const uint16_t*>(row)[i]); }
};
struct LoadF16 {
  static constexpr bool kPadded = true;
  static constexpr size_t kCodeBytes = 2;
  static float load(const void* row, size_t i) { return from_f16(static_cast<const uint16_t*>(row)[i]); }
};

template <typename Load>
struct FewFloat {
  static constexpr size_t kStep = kLanes, kChains = 4;
  static constexpr size_t kRowsOf1 = 1, kRowsOf2 = 2, kRowsOf4 = 1, kRowsOf8 = 1;
  static constexpr bool kPadded = Load::kPadded;
  static constexpr size_t kCodeBytes = Load::kCodeBytes;
  using Row = Floats;
  using Query = Floats;
  using Accumulator = Floats;
  static size_t bytes(size_t d) { return kPadded ? padded_f32_bytes(d) : prepared_f32_bytes(d); }
  static Floats zero() { return {}; }
  static Floats load_row(const void* row, size_t i) { return load_row_tail(row, i, kLanes); }
  static Floats load_row_tail(const void* row, size_t i, size_t lanes) {
    Floats x{};
    for (size_t j = 0; j < lanes; ++j) x.v[j] = Load::load(row, i + j);
    return x;
  }
  static Floats load_query(const char* query, size_t i) { return load_query_tail(query, i, kLanes); }
  static Floats load_query_tail(const char* query, size_t i, size_t lanes) {
    Floats x{};
    std::memcpy(x.v, query + i * sizeof(float), lanes * sizeof(float));
    return x;
  }
  static Floats multiply_add(const Floats& sum, const Floats& row, const Floats& query) {
    Floats next;
    for (size_t j = 0; j < kLanes; ++j) next.v[j] = sum.v[j] + query.v[j] * row.v[j];
    return next;
  }
  template <size_t C>
  static float canonical(const Floats (&sum)[C], const char*, size_t, const float*, size_t) {
    return sum_lanes(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  }
  template <size_t Q>
  static void reduce(const Floats (&sum)[Q][1], const char* const*, size_t, const float*, size_t, float* out) {
    for (size_t q = 0; q < Q; ++q) out[q] = sum_lanes(sum[q][0]);
  }
};

struct FewI8 {
  static constexpr size_t kStep = kLanes, kChains = 1, kCodeBytes = 1;
  static constexpr size_t kRowsOf1 = 4, kRowsOf2 = 2, kRowsOf4 = 1, kRowsOf8 = 1;
  static constexpr bool kPadded = true;
  using Row = Integers;
  using Query = Integers;
  using Accumulator = Integers;
  static size_t length(size_t d) { return round_up(d, 64); }
  static size_t bytes(size_t d) { return 64 + length(d) * sizeof(int16_t); }
  static void prepare(const float* query, size_t d, void* out) { prepare_i8<int16_t>(query, d, length(d), out); }
  static Integers zero() { return {}; }
  static Integers load_row(const void* row, size_t i) {
    Integers x;
    for (size_t j = 0; j < kLanes; ++j) x.v[j] = static_cast<const uint8_t*>(row)[i + j];
    return x;
  }
  static Integers load_row_tail(const void* row, size_t i, size_t) { return load_row(row, i); }
  static Integers load_query(const char* query, size_t i) {
    const auto* codes = reinterpret_cast<const int16_t*>(query + 64) + i;
    Integers x;
    for (size_t j = 0; j < kLanes; ++j) x.v[j] = codes[j];
    return x;
  }
  static Integers load_query_tail(const char* query, size_t i, size_t) { return load_query(query, i); }
  static Integers multiply_add(const Integers& sum, const Integers& row, const Integers& query) {
    Integers next;
    for (size_t j = 0; j < kLanes; ++j) next.v[j] = sum.v[j] + row.v[j] * query.v[j];
    return next;
  }
  template <size_t C>
  static float canonical(const Integers (&sum)[C], const char* query, size_t, const float* scales, size_t row) {
    return score_i8(sum_lanes(sum[0]), query, scales[row]);
  }
  template <size_t Q>
  static void reduce(const Integers (&sum)[Q][1], const char* const* queries, size_t, const float* scales, size_t row,
                     float* out) {
    for (size_t q = 0; q < Q; ++q) out[q] = score_i8(sum_lanes(sum[q][0]), queries[q], scales[row]);
  }
};

// --- panels
// -----------------------------------------------------------------------------------------------------------
struct PanelBase {
  static constexpr size_t kWidth = kLanes, kVectors = 2, kRows = 2;
  using Word = uint32_t;
  static Floats load_bars(const float* bars) { return {{bars[0], bars[1], bars[2], bars[3]}}; }
  static uint32_t reach(const Floats& score, const Floats& bar) {
    uint32_t bits = 0;
    for (size_t j = 0; j < kLanes; ++j) bits |= static_cast<uint32_t>(score.v[j] >= bar.v[j]) << j;
    return bits;
  }
  static void store(float* out, const Floats& score) { std::memcpy(out, score.v, sizeof(score.v)); }
  template <typename T>
  static Lanes<T> load_words(const void* words) {
    Lanes<T> x;
    std::memcpy(x.v, words, sizeof(x.v));
    return x;
  }
};

struct PanelF32 : PanelBase {
  static constexpr size_t kHeader = 0;
  using Vector = Floats;
  using Accumulator = Floats;
  static size_t words(size_t d) { return d; }
  static Floats start(const char*, size_t) { return {}; }
  static Floats load(const uint32_t* packed) { return load_words<float>(packed); }
  static Floats broadcast(const uint32_t* word) {
    float x;
    std::memcpy(&x, word, sizeof(x));
    return {{x, x, x, x}};
  }
  static Floats multiply_add(const Floats& sum, const Floats& x, const Floats& q) {
    Floats next;
    for (size_t j = 0; j < kLanes; ++j) next.v[j] = sum.v[j] + x.v[j] * q.v[j];
    return next;
  }
  static Floats score(const Floats& sum, const float*, size_t) { return sum; }
};

// Pairs of int16 in a word.
struct PanelI16 : PanelBase {
  static constexpr size_t kHeader = kWidth * kVectors * sizeof(int32_t);
  using Vector = Lanes<uint32_t>;
  using Accumulator = Integers;
  static size_t words(size_t d) { return (d + 1) / 2; }
  static Integers start(const char* header, size_t c) { return load_words<int32_t>(header + c * sizeof(Integers)); }
  static Vector load(const uint32_t* packed) { return load_words<uint32_t>(packed); }
  static Vector broadcast(const uint32_t* word) {
    uint32_t x;
    std::memcpy(&x, word, sizeof(x));
    return {{x, x, x, x}};
  }
  static int32_t low(uint32_t word) { return static_cast<int16_t>(word & 0xFFFFu); }
  static int32_t high(uint32_t word) { return static_cast<int16_t>(word >> 16); }
  static Integers multiply_add(const Integers& sum, const Vector& x, const Vector& q) {
    Integers next;
    for (size_t j = 0; j < kLanes; ++j) {
      next.v[j] = sum.v[j] + low(x.v[j]) * low(q.v[j]) + high(x.v[j]) * high(q.v[j]);
    }
    return next;
  }
  static Floats score(const Integers& sum, const float* scales, size_t row) {
    Floats out;
    for (size_t j = 0; j < kLanes; ++j) out.v[j] = static_cast<float>(sum.v[j]) * scales[row];
    return out;
  }
};

using F32 = PanelScan<PanelF32>;
using I16 = PanelScan<PanelI16>;

void pack_f32(const float* queries, size_t count, size_t d, void* out) {
  pack_words<PackF32>(queries, count, d, F32::kPanel, static_cast<uint32_t*>(out));
}
void pack_i16(const float* queries, size_t count, size_t d, void* out) {
  pack_i8<int16_t>(queries, count, d, I16::kPanel, out);
}
size_t wide_f32_bytes(size_t d) { return round_up(d, 16) * sizeof(float); }
template <typename Load>
void widen_f32(const void* row, size_t d, void* out) {
  for (size_t i = 0; i < d; ++i) static_cast<float*>(out)[i] = Load::load(row, i);
}
size_t wide_i16_bytes(size_t d) { return round_up(d, 32) * sizeof(int16_t); }
void widen_i16(const void* row, size_t d, void* out) {
  // One beyond an odd d: the last word is a pair.
  for (size_t i = 0; i < round_up(d, 2); ++i) static_cast<int16_t*>(out)[i] = static_cast<const uint8_t*>(row)[i];
}

template <typename Load>
constexpr ScanFormat widened() {
  return widened_format<FewFloat<Load>, F32>(prepare_padded_f32, pack_f32, wide_f32_bytes, widen_f32<Load>);
}

}  // namespace

namespace portable {

extern constexpr ScanFormats scan = {
    direct_format<FewFloat<LoadF32>, F32>(prepare_f32, pack_f32),
    widened<LoadBf16>(),
    widened<LoadF16>(),
    widened_format<FewI8, I16>(FewI8::prepare, pack_i16, wide_i16_bytes, widen_i16),
};

}  // namespace portable
}  // namespace finch
