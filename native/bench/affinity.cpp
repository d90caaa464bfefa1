#include "affinity.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <dirent.h>
#include <sched.h>

#include <cstdlib>
#endif

namespace finch::bench {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__linux__)
// Read when the library is loaded, before anything is pinned.
const std::vector<int> kCpus = [] {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  return cpus;
}();

bool pin_thread(int id, const int* cpus, size_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < count; ++i) CPU_SET(cpus[i], &set);
  return sched_setaffinity(id, sizeof set, &set) == 0;
}
#endif

}  // namespace

size_t allowed_cpus() {
#if defined(__linux__)
  if (!kCpus.empty()) return kCpus.size();
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

bool pin_process(size_t count) {
#if defined(__linux__)
  if (kCpus.empty()) return false;
  count = std::clamp<size_t>(count, 1, kCpus.size());
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool all = true;
  while (const dirent* entry = readdir(tasks)) {
    const int id = std::atoi(entry->d_name);
    if (id > 0) all = pin_thread(id, kCpus.data(), count) && all;
  }
  closedir(tasks);
  return all;
#else
  (void)count;
  return false;
#endif
}

double run_team(size_t threads, const std::function<void(size_t)>& work) {
  std::vector<Clock::time_point> starts(threads);
  std::vector<Clock::time_point> ends(threads);
  std::atomic<size_t> ready{0};
  const auto member = [&](size_t i) {
#if defined(__linux__)
    cpu_set_t before;
    const bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    if (known && !kCpus.empty()) pin_thread(0, &kCpus[i % kCpus.size()], 1);
#endif
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();
    starts[i] = Clock::now();
    work(i);
    ends[i] = Clock::now();
#if defined(__linux__)
    if (known) sched_setaffinity(0, sizeof before, &before);
#endif
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(member, i);
  member(0);
  for (std::thread& other : others) other.join();
  const auto first = *std::min_element(starts.begin(), starts.end());
  const auto last = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(last - first).count();
}

}  // namespace finch::bench
