// A FinchError on its way to JavaScript. Argument checks and failed C calls throw Fault; the entry of every exported
// function (entry.hpp) turns it into a FinchError. It never crosses the C ABI.
#pragma once

#include <string>

#include "environment.hpp"
#include "toolfinch.h"

namespace finch::node {

struct Fault {
  finch_status status;
  std::string message;
};

[[noreturn]] void refuse(finch_status status, std::string message);
[[noreturn]] void refuse_argument(std::string message);

// Throws the thread's last error unless `status` is FINCH_OK.
void check(finch_status status);

// new FinchError(code, message); a plain Error with `code` before initialize() was called.
napi_value make_error(napi_env env, finch_status status, const std::string& message);

// Runs `body`; what it throws becomes a Fault (out of memory and unknown exceptions too). JavaScript exceptions pass.
template <typename Body>
auto as_fault(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    refuse(FINCH_NO_MEMORY, "Out of memory; nothing was changed. Free some or use a smaller batch.");
  } catch (const std::length_error&) {
    refuse(FINCH_NO_MEMORY, "The arguments need more memory than can be addressed. Use a smaller batch.");
  }
}

}  // namespace finch::node
