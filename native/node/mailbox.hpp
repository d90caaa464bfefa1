// The way back from the thread pool to one JavaScript environment.
//
// Rule: N-API is touched on the environment's own thread only, and never after teardown began. A pool thread that
// finished a call takes `mutex_`, sees whether the environment is alive, and posts the call through the one thread-safe
// function; once the teardown hook has set `alive_` to false under the same mutex, no pool thread can reach that
// function any more. A dropped call frees what it holds in C and leaves JavaScript alone.
#pragma once

#include <napi.h>

#include <memory>
#include <mutex>

namespace finch::node {

class AsyncCall;

class Mailbox {
 public:
  static std::shared_ptr<Mailbox> create(napi_env env);

  // JavaScript thread: registers a call before its work is queued. The first one keeps the event loop alive.
  void add(napi_env env, AsyncCall& call);
  // JavaScript thread: forgets a call. The last one lets the event loop end.
  void remove(napi_env env, AsyncCall& call);
  // Any thread: hands a finished call over; deletes it when the environment is gone.
  void post(AsyncCall* call) noexcept;
  // JavaScript thread, once: see on_teardown.
  void close() noexcept;

 private:
  std::mutex mutex_;
  bool alive_ = true;
  napi_env env_ = nullptr;
  napi_threadsafe_function function_ = nullptr;
  // Intrusive list of calls in flight: teardown must signal each without allocating.
  AsyncCall* first_ = nullptr;
};

}  // namespace finch::node
