// The process-wide thread pool behind finch_pool_run.
#pragma once

namespace finch {

// True once the process is on its way out (or the library is being unloaded): long tasks should leave early.
bool pool_stopping() noexcept;

// Registers the pool's exit hook once more. Exit hooks run in reverse order, so a task that calls into a library opened
// at run time is over before that library's statics are destroyed, provided that this was called after opening the
// library.
void pool_register_exit_hook() noexcept;

}  // namespace finch
