// One call's work, shared out over the pool.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finch {

// Calls body(context, worker, item) once for each item, on the calling thread and on at most `threads` - 1 of the
// pool's that happen to be free, and returns when all are done. `worker` is below `threads`; calls with the same worker
// do not overlap. The calling thread never waits for work that has not begun, so pool tasks may use it. The body must
// not throw. Items are handed out in order.
void parallel_for(size_t items, uint32_t threads, void (*body)(void* context, uint32_t worker, size_t item),
                  void* context) noexcept;

}  // namespace finch
