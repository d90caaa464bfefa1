// How many threads this process may keep busy.
#pragma once

#include <cstdint>

namespace finch {

// TOOLFINCH_THREADS (1 ... 1024) when it is set to that, else the CPU affinity bounded by the cgroup's quota. At
// least 1.
uint32_t usable_threads() noexcept;

}  // namespace finch
