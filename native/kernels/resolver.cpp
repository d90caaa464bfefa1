// Picks the kernel table: the best one that this machine and its operating system run, or the one TOOLFINCH_ISA names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/bandit/bandit.hpp"
#include "kernels/dot/dot.hpp"
#include "kernels/gaps/gaps.hpp"
#include "kernels/kernels.hpp"
#include "toolfinch.h"

#if defined(__x86_64__) || defined(_M_X64)
#define FINCH_X86 1
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define FINCH_ARM 1
#endif

namespace finch {
namespace {

#define FINCH_TABLE(isa) \
  Kernels { #isa, isa::dot, isa::dot_rows, isa::dot_and_norm, isa::arm_score, isa::arm_update }

constexpr Kernels kPortable = FINCH_TABLE(portable);
#if FINCH_X86
constexpr Kernels kAvx2 = FINCH_TABLE(avx2);
constexpr Kernels kAvx512 = FINCH_TABLE(avx512);

// cpuid itself rather than __builtin_cpu_supports, which some macOS toolchains do not link.
struct Registers {
  uint32_t a, b, c, d;
};

Registers cpuid(uint32_t leaf) {
#if defined(_MSC_VER)
  int r[4];
  __cpuidex(r, static_cast<int>(leaf), 0);
  return {static_cast<uint32_t>(r[0]), static_cast<uint32_t>(r[1]), static_cast<uint32_t>(r[2]),
          static_cast<uint32_t>(r[3])};
#else
  Registers r{};
  __cpuid_count(leaf, 0, r.a, r.b, r.c, r.d);
  return r;
#endif
}

// Which register states the operating system saves: without that, the instructions fault whatever cpuid says.
uint64_t xgetbv() {
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
#endif
}

constexpr uint32_t bit(unsigned n) { return uint32_t{1} << n; }
constexpr bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

struct Machine {
  bool avx2 = false;
  bool avx512 = false;
};

Machine inspect_machine() {
  Machine machine;
  if (cpuid(0).a < 7) return machine;
  const Registers one = cpuid(1);
  constexpr uint32_t kFma = bit(12), kOsxsave = bit(27), kAvx = bit(28), kF16c = bit(29);
  if (!has(one.c, kFma | kOsxsave | kAvx | kF16c)) return machine;
  const uint64_t saved = xgetbv();
  constexpr uint64_t kYmm = 0x6, kZmm = 0xE6;
  if ((saved & kYmm) != kYmm) return machine;
  const Registers seven = cpuid(7);
  machine.avx2 = has(seven.b, bit(5));
#if defined(__APPLE__)
  // macOS saves the wide registers from their first use on: until then xgetbv denies them, and Rosetta never has them.
  const bool wide = true;
#else
  const bool wide = (saved & kZmm) == kZmm;
#endif
  constexpr uint32_t kF = bit(16), kDq = bit(17), kBw = bit(30), kVl = bit(31);
  machine.avx512 = machine.avx2 && wide && has(seven.b, kF | kDq | kBw | kVl);
  return machine;
}
#elif FINCH_ARM
constexpr Kernels kNeon = FINCH_TABLE(neon);
#endif

struct Resolution {
  const Kernels* available[3];
  size_t count = 0;
  const Kernels* chosen = nullptr;
  char reason[256] = "";

  Resolution() {
    add(&kPortable);
#if FINCH_X86
    const Machine machine = inspect_machine();
    if (machine.avx2) add(&kAvx2);
    if (machine.avx512) add(&kAvx512);
#elif FINCH_ARM
    add(&kNeon);  // part of the AArch64 baseline
#endif
    chosen = available[count - 1];
    const char* wanted = std::getenv("TOOLFINCH_ISA");
    if (wanted == nullptr || *wanted == '\0') {
      std::snprintf(reason, sizeof(reason), "%s: the best level of this machine", chosen->name);
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      if (std::strcmp(available[i]->name, wanted) != 0) continue;
      chosen = available[i];
      std::snprintf(reason, sizeof(reason), "%s: asked for by TOOLFINCH_ISA", chosen->name);
      return;
    }
    std::snprintf(
        reason, sizeof(reason),
        "%s: the best level of this machine; TOOLFINCH_ISA=%.32s is not among the levels it has, so it was ignored",
        chosen->name, wanted);
  }

  void add(const Kernels* table) { available[count++] = table; }
};

// Trivially destructible: safe to use until the very end of the process.
const Resolution& resolution() noexcept {
  static const Resolution instance;
  return instance;
}

}  // namespace

const Kernels& kernels() noexcept { return *resolution().chosen; }

std::span<const Kernels* const> available_kernels() noexcept { return {resolution().available, resolution().count}; }

}  // namespace finch

extern "C" {

const char* finch_isa(void) { return finch::kernels().name; }

const char* finch_isa_reason(void) { return finch::resolution().reason; }

}  // extern "C"
