#include <cpuid.h>

#include "limits.hpp"

namespace finch::bench {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(unsigned value, unsigned index) { return ((value >> index) & 1u) != 0; }

// What the operating system saves on a context switch.
uint64_t saved_state() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;
  unsigned low;
  unsigned high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

}  // namespace

Limits detect_limits() {
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  const Registers seven_one = cpuid(7, 1);
  const uint64_t saved = saved_state();
  const bool ymm = (saved & 0x6) == 0x6;
  const bool zmm = ymm && (saved & 0xe0) == 0xe0;
  Limits found{};
  if (!(ymm && bit(seven.b, 5) && bit(one.c, 12))) return found;
  found.read_level = "avx2";
  found.reads[0] = avx2::read_one;
  found.reads[1] = avx2::read_four;
  found.reads[2] = avx2::read_four_prefetched;
  found.f32_level = "avx2 fma";
  found.f32 = avx2::peak_f32;
  found.i8_level = "avx2 vpmaddubsw";
  found.i8 = avx2_peak_i8;
  if (zmm && bit(seven.b, 16)) {
    found.read_level = "avx512";
    found.reads[0] = avx512::read_one;
    found.reads[1] = avx512::read_four;
    found.reads[2] = avx512::read_four_prefetched;
    found.f32_level = "avx512 fma";
    found.f32 = avx512::peak_f32;
    if (bit(seven_one.a, 5)) {
      found.bf16_level = "avx512 vdpbf16ps";
      found.bf16 = avx512_peak_bf16;
    }
    if (bit(seven.c, 11)) {
      found.i8_level = "avx512 vpdpbusd";
      found.i8 = avx512_peak_i8;
    }
  }
#if defined(TOOLFINCH_HAS_AMX)
  const bool tiles = (saved & 0x60000) == 0x60000 && bit(seven.d, 22) && bit(seven.d, 24) && bit(seven.d, 25);
  if (tiles && amx_permitted()) {
    found.tile_level = "amx";
    found.tile_bf16 = amx_peak_bf16;
    found.tile_i8 = amx_peak_i8;
  }
#endif
  return found;
}

}  // namespace finch::bench
