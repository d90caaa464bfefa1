// What the machine can do: read bandwidth and peak rates, at the best instruction set present. Each loop is the
// friendliest one there is to its unit; whatever does useful work besides can only be slower.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finch::bench {

// Reads [data, data + bytes) once and returns something that depends on all of it. data is 64-byte aligned, bytes a
// multiple of 4096. Several ways of reading, since machines differ in which is fastest.
using Read = uint64_t (*)(const std::byte* data, size_t bytes);
// Does `rounds` rounds of work in registers and returns how many operations (a multiplication and an addition are two)
// one round was; `sink` keeps the compiler honest.
using Peak = double (*)(size_t rounds, float* sink);

struct Limits {
  const char* read_level;
  Read reads[3];  // one stream; four streams; four streams with prefetches
  const char* f32_level;
  Peak f32;
  // NULL without a native dot product of that type: then the f32 rate is the limit.
  const char* bf16_level;
  Peak bf16;
  const char* i8_level;
  Peak i8;
  // Matrix units, where the operating system lets us use them.
  const char* tile_level;
  Peak tile_bf16;
  Peak tile_i8;
};

const Limits& limits();

enum class Kind { kF32, kBf16, kI8, kTileBf16, kTileI8 };
// NULL where the machine has no such unit.
Peak peak_of(Kind kind);

// Bytes per second read from a working set shared out among threads, for about `seconds`.
double read_bandwidth(const std::byte* data, size_t bytes, size_t threads, size_t way, double seconds);
// Operations per second.
double peak_rate(Kind kind, size_t threads, double seconds);

// Defined by the files that the machine's kind compiles.
Limits detect_limits();

#define FINCH_DECLARE_READS(isa)                                      \
  namespace isa {                                                     \
  uint64_t read_one(const std::byte* data, size_t bytes);             \
  uint64_t read_four(const std::byte* data, size_t bytes);            \
  uint64_t read_four_prefetched(const std::byte* data, size_t bytes); \
  double peak_f32(size_t rounds, float* sink);                        \
  }
FINCH_DECLARE_READS(avx2)
FINCH_DECLARE_READS(avx512)
FINCH_DECLARE_READS(neon)
#undef FINCH_DECLARE_READS
double avx2_peak_i8(size_t rounds, float* sink);
double avx512_peak_bf16(size_t rounds, float* sink);
double avx512_peak_i8(size_t rounds, float* sink);
double neon_peak_bf16(size_t rounds, float* sink);
double neon_peak_i8(size_t rounds, float* sink);
bool amx_permitted();
double amx_peak_bf16(size_t rounds, float* sink);
double amx_peak_i8(size_t rounds, float* sink);

}  // namespace finch::bench
