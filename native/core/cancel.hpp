// Cancellation: a flag that long calls poll between blocks of work.
#pragma once

#include <atomic>
#include <cstdint>

#include "toolfinch.h"

struct finch_cancel {
  std::atomic<uint32_t> references{1};
  std::atomic<bool> signalled{false};
};

namespace finch {

inline bool cancelled(const finch_cancel* cancel) noexcept {
  return cancel != nullptr && cancel->signalled.load(std::memory_order_relaxed);
}

}  // namespace finch
