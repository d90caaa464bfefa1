#include "limits.hpp"

#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace finch::bench {
namespace {

#if defined(__APPLE__)
bool has(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}
#endif

bool has_dotprod() {
#if defined(__linux__)
  return ((getauxval(AT_HWCAP) >> 20) & 1u) != 0;
#elif defined(__APPLE__)
  return has("hw.optional.arm.FEAT_DotProd");
#else
  return false;
#endif
}

bool has_bf16() {
#if defined(__linux__)
  return ((getauxval(AT_HWCAP2) >> 14) & 1u) != 0;
#elif defined(__APPLE__)
  return has("hw.optional.arm.FEAT_BF16");
#else
  return false;
#endif
}

}  // namespace

Limits detect_limits() {
  Limits found{};
  found.read_level = "neon";
  found.reads[0] = neon::read_one;
  found.reads[1] = neon::read_four;
  found.reads[2] = neon::read_four_prefetched;
  found.f32_level = "neon fma";
  found.f32 = neon::peak_f32;
  if (has_dotprod()) {
    found.i8_level = "neon sdot";
    found.i8 = neon_peak_i8;
  }
  if (has_bf16()) {
    found.bf16_level = "neon bfdot";
    found.bf16 = neon_peak_bf16;
  }
  return found;
}

}  // namespace finch::bench
