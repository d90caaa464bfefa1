// What one JavaScript environment (main thread, worker, vm of a test runner) owns. Nothing here is shared between
// environments, and there are no static objects: a destructor that runs at exit would race with pool threads.
#pragma once

#include <napi.h>

#include <memory>
#include <stdexcept>

namespace finch::node {

class Mailbox;

struct Environment {
  std::shared_ptr<Mailbox> mailbox;
  // FinchError, as handed to initialize(); null before.
  napi_ref error_class = nullptr;
  // Error.captureStackTrace; null on an engine without it.
  napi_ref capture_stack = nullptr;

  static Environment& of(napi_env env);
};

// Throws the pending JavaScript exception, or what N-API says went wrong, unless `status` is napi_ok.
inline void must(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

// Creates the environment's state and its teardown; called once per environment when the module loads.
void create_environment(napi_env env);

}  // namespace finch::node
