// Which CPUs work runs on, and teams of pinned threads. Pinning is Linux's; elsewhere the scheduler decides.
#pragma once

#include <cstddef>
#include <functional>

namespace finch::bench {

// CPUs this process was given at its start.
size_t allowed_cpus();
// Confines every thread of the process, and those they will start, to the first `count` of them. False where that
// cannot be done.
bool pin_process(size_t count);

// Runs work(i) for i < threads at the same time, each on a CPU of its own, the caller being one of them; returns the
// seconds from the first start to the last end, without the making of threads.
double run_team(size_t threads, const std::function<void(size_t)>& work);

}  // namespace finch::bench
