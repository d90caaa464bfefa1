// The thread-local error of the C ABI: a status and the message that finch_last_error() returns.
#pragma once

#include <cstdarg>
#include <new>

#include "toolfinch.h"

namespace finch {

// Records the message for this thread and returns `status`, so that a check reads `return fail(FINCH_DIMENSION,
// "...")`.
[[gnu::format(printf, 2, 3)]] finch_status fail(finch_status status, const char* format, ...) noexcept;

// Runs the body of an ABI function: whatever it throws becomes a status. Nothing may unwind into C.
template <typename Body>
finch_status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(FINCH_NO_MEMORY, "out of memory; nothing was changed. Free some or use a smaller batch.");
  } catch (...) {
    return fail(FINCH_INTERNAL, "unexpected exception inside Toolfinch; please report it.");
  }
}

}  // namespace finch
