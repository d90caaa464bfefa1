// Picks the kernel table: the best one that this machine and its operating system run, or the one TOOLFINCH_ISA names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/bandit/bandit.hpp"
#include "kernels/dot/dot.hpp"
#include "kernels/gaps/gaps.hpp"
#include "kernels/kernels.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/unit/unit.hpp"
#include "toolfinch.h"

#if defined(__x86_64__) || defined(_M_X64)
#define FINCH_X86 1
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define FINCH_ARM 1
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#endif

namespace finch {
namespace {

// A table: the families of one instruction set, and the scan formats, of which an extension may bring its own.
#define FINCH_TABLE(name, isa, bf16, i8)                                                                            \
  Kernels {                                                                                                         \
    name, {&isa::scan.f32, &bf16, &isa::scan.f16, &i8}, {}, isa::dot, isa::gap_rows, isa::cosines, isa::arm_scores, \
        isa::context_dots, isa::arm_invert, isa::arm_update, isa::square_sum, isa::scale                            \
  }

constexpr Kernels kPortable = FINCH_TABLE("portable", portable, portable::scan.bf16, portable::scan.i8);
#if FINCH_X86
constexpr Kernels kAvx2 = FINCH_TABLE("avx2", avx2, avx2::scan.bf16, avx2::scan.i8);
constexpr Kernels kAvx512 = FINCH_TABLE("avx512", avx512, avx512::scan.bf16, avx512::scan.i8);
constexpr Kernels kAvx512Vnni = FINCH_TABLE("avx512vnni", avx512, avx512::scan.bf16, avx512vnni::scan_i8);
constexpr Kernels kAvx512Bf16 = FINCH_TABLE("avx512bf16", avx512, avx512bf16::scan_bf16, avx512vnni::scan_i8);

// cpuid itself rather than __builtin_cpu_supports, which some macOS toolchains do not link.
struct Registers {
  uint32_t a, b, c, d;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
#if defined(_MSC_VER)
  int r[4];
  __cpuidex(r, static_cast<int>(leaf), static_cast<int>(subleaf));
  return {static_cast<uint32_t>(r[0]), static_cast<uint32_t>(r[1]), static_cast<uint32_t>(r[2]),
          static_cast<uint32_t>(r[3])};
#else
  Registers r{};
  __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
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

// Linux gives a process the tile registers only when it asks (arch_prctl ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); from
// then on every thread has them. Elsewhere they are not used.
bool permit_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

struct Machine {
  bool avx2 = false;
  bool avx512 = false;
  bool vnni = false;
  bool bf16 = false;  // with vnni: no processor has one without the other
  bool amx = false;
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
  machine.vnni = machine.avx512 && has(seven.c, bit(11));
  machine.bf16 = machine.vnni && seven.a >= 1 && has(cpuid(7, 1).a, bit(5));
  constexpr uint32_t kAmxBf16 = bit(22), kAmxTile = bit(24), kAmxInt8 = bit(25);
  constexpr uint64_t kTiles = 0x60000;
  machine.amx =
      machine.bf16 && has(seven.d, kAmxBf16 | kAmxTile | kAmxInt8) && (saved & kTiles) == kTiles && permit_tiles();
  return machine;
}
#elif FINCH_ARM
constexpr Kernels kNeon = FINCH_TABLE("neon", neon, neon::scan.bf16, neon::scan.i8);
constexpr Kernels kNeonDot = FINCH_TABLE("neondot", neon, neon::scan.bf16, neondot::scan_i8);
constexpr Kernels kNeonI8mm = FINCH_TABLE("neoni8mm", neon, neon::scan.bf16, neoni8mm::scan_i8);
constexpr Kernels kNeonBf16 = FINCH_TABLE("neonbf16", neon, neonbf16::scan_bf16, neoni8mm::scan_i8);

struct Machine {
  bool dot = false;
  bool i8mm = false;  // with dot
  bool bf16 = false;  // with i8mm: Armv8.6 has both
};

Machine inspect_machine() {
  Machine machine;
#if defined(__linux__)
  machine.dot = (getauxval(AT_HWCAP) & (1ul << 20)) != 0;                    // HWCAP_ASIMDDP
  machine.i8mm = machine.dot && (getauxval(AT_HWCAP2) & (1ul << 13)) != 0;   // HWCAP2_I8MM
  machine.bf16 = machine.i8mm && (getauxval(AT_HWCAP2) & (1ul << 14)) != 0;  // HWCAP2_BF16
#elif defined(__APPLE__)
  const auto has = [](const char* name) {
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
  };
  machine.dot = has("hw.optional.arm.FEAT_DotProd");
  machine.i8mm = machine.dot && has("hw.optional.arm.FEAT_I8MM");
  machine.bf16 = machine.i8mm && has("hw.optional.arm.FEAT_BF16");
#endif
  return machine;
}
#endif

struct Resolution {
  const Kernels* available[6];
#if FINCH_X86
  Kernels tiles;
#endif
  size_t count = 0;
  const Kernels* chosen = nullptr;
  char reason[256] = "";

  Resolution() {
    add(&kPortable);
#if FINCH_X86
    const Machine machine = inspect_machine();
    if (machine.avx2) add(&kAvx2);
    if (machine.avx512) add(&kAvx512);
    if (machine.vnni) add(&kAvx512Vnni);
    if (machine.bf16) add(&kAvx512Bf16);
    if (machine.amx) {
      tiles = kAvx512Bf16;
      tiles.name = "amx";
      tiles.scan[FINCH_STORAGE_BF16] = &amx::scan_bf16();
      tiles.scan[FINCH_STORAGE_I8] = &amx::scan_i8();
      tiles.filter[FINCH_STORAGE_F32] = &amx::filter_f32();
      tiles.filter[FINCH_STORAGE_F16] = &amx::filter_f16();
      add(&tiles);
    }
#elif FINCH_ARM
    add(&kNeon);  // part of the AArch64 baseline
    const Machine machine = inspect_machine();
    if (machine.dot) add(&kNeonDot);
    if (machine.i8mm) add(&kNeonI8mm);
    if (machine.bf16) add(&kNeonBf16);
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
