#include "cancel.hpp"

#include "error.hpp"

extern "C" {

finch_status finch_cancel_create(finch_cancel** out) {
  return finch::guarded([&]() -> finch_status {
    if (out == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "out is NULL; pass where to put the cancel handle.");
    *out = new finch_cancel;
    return FINCH_OK;
  });
}

void finch_cancel_signal(finch_cancel* cancel) {
  if (cancel != nullptr) cancel->signalled.store(true, std::memory_order_relaxed);
}

void finch_cancel_retain(finch_cancel* cancel) {
  if (cancel != nullptr) cancel->references.fetch_add(1, std::memory_order_relaxed);
}

void finch_cancel_release(finch_cancel* cancel) {
  if (cancel != nullptr && cancel->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete cancel;
}

}  // extern "C"
