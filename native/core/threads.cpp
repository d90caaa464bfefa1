#include "threads.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace finch {
namespace {

constexpr uint32_t kMostThreads = 1024;

// 0 when the variable is unset or not a whole number from 1 to kMostThreads.
uint32_t from_environment() {
  const char* text = std::getenv("TOOLFINCH_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  uint32_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return 0;
    value = value * 10 + static_cast<uint32_t>(*text - '0');
    if (value > kMostThreads) return 0;
  }
  return value;
}

#if defined(__linux__)
uint32_t affinity() {
  // The set grows until the kernel's own mask fits: machines with more than 1024 CPUs exist.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 16); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    CPU_ZERO_S(bytes, set);
    const int status = sched_getaffinity(0, bytes, set);
    const int count = status == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (status == 0) return static_cast<uint32_t>(count);
  }
  return 0;
}

std::string first_line(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[256];
    if (std::fgets(buffer, sizeof(buffer), file) != nullptr) line = buffer;
    std::fclose(file);
  }
  return line;
}

uint32_t ceiling(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return kMostThreads;
  const double cpus = quota / period;
  return cpus >= kMostThreads ? kMostThreads : std::max(1u, static_cast<uint32_t>(cpus + 0.999));
}

// The tightest quota from the process's own group up to the root that is mounted: every ancestor's limit binds.
template <typename Read>
uint32_t tightest(const std::string& root, std::string group, Read&& read) {
  uint32_t limit = kMostThreads;
  for (;;) {
    limit = std::min(limit, read(root + group));
    const size_t slash = group.find_last_of('/');
    if (slash == std::string::npos) return limit;
    group.resize(slash);
  }
}

uint32_t quota_v2(const std::string& folder) {
  double quota = 0;
  double period = 0;
  // "max 100000" does not scan: no limit.
  if (std::sscanf(first_line(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) != 2) return kMostThreads;
  return ceiling(quota, period);
}

uint32_t quota_v1(const std::string& folder) {
  const double quota = std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str());  // -1: no limit
  const double period = std::atof(first_line(folder + "/cpu.cfs_period_us").c_str());
  return ceiling(quota, period);
}

uint32_t cgroup_quota() {
  uint32_t limit = kMostThreads;
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return limit;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), file) != nullptr) {
    // "hierarchy:controllers:path"; version 2 has no controllers.
    std::string line(buffer);
    while (!line.empty() && (line.back() == '\n' || line.back() == '/')) line.pop_back();
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      limit = std::min(limit, tightest("/sys/fs/cgroup", group, quota_v2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      limit = std::min(limit, tightest("/sys/fs/cgroup/cpu", group, quota_v1));
    }
  }
  std::fclose(file);
  return limit;
}
#endif

}  // namespace

uint32_t usable_threads() noexcept {
  try {
    if (const uint32_t wanted = from_environment()) return wanted;
    uint32_t count = 0;
#if defined(__linux__)
    count = affinity();
    if (count == 0) count = std::thread::hardware_concurrency();
    count = std::min(count, cgroup_quota());
#else
    count = std::thread::hardware_concurrency();
#endif
    return std::clamp(count, 1u, kMostThreads);
  } catch (...) {
    return 1;
  }
}

}  // namespace finch
