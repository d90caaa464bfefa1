#include "error.hpp"

#include <cstdio>

namespace finch {
namespace {

// A fixed buffer: reporting out-of-memory must not allocate, and a trivial thread-local has no destructor to outlive.
constexpr size_t kMessageBytes = 1024;
thread_local char last_message[kMessageBytes] = "";

constexpr const char* kNames[] = {
    "FINCH_OK",         "FINCH_DIMENSION",        "FINCH_NOT_FINITE", "FINCH_ZERO_VECTOR", "FINCH_DUPLICATE_ID",
    "FINCH_UNKNOWN_ID", "FINCH_INVALID_ARGUMENT", "FINCH_CLOSED",     "FINCH_CORRUPT",     "FINCH_VERSION",
    "FINCH_IO",         "FINCH_NO_MEMORY",        "FINCH_DEVICE",     "FINCH_ABORTED",     "FINCH_INTERNAL"};

}  // namespace

finch_status fail(finch_status status, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_message, sizeof(last_message), format, arguments);
  va_end(arguments);
  return status;
}

}  // namespace finch

extern "C" {

uint32_t finch_abi_version(void) { return FINCH_ABI_VERSION; }

const char* finch_version(void) { return FINCH_RELEASE; }

const char* finch_status_name(finch_status status) {
  constexpr auto count = static_cast<finch_status>(sizeof(finch::kNames) / sizeof(finch::kNames[0]));
  return status >= 0 && status < count ? finch::kNames[status] : finch::kNames[FINCH_INTERNAL];
}

const char* finch_last_error(void) { return finch::last_message; }

}  // extern "C"
