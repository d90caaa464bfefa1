// One asynchronous call: its inputs (copied), the handles it uses (each held by a reference of its own, so that closing
// a handle meanwhile is safe), its outputs, and the promise it settles.
#pragma once

#include <napi.h>

#include <memory>
#include <string>

#include "handles.hpp"
#include "mailbox.hpp"
#include "toolfinch.h"

namespace finch::node {

class AsyncCall {
 public:
  virtual ~AsyncCall();
  AsyncCall(const AsyncCall&) = delete;
  AsyncCall& operator=(const AsyncCall&) = delete;

  // Queues the call and returns its promise.
  static Napi::Value start(Napi::Env env, std::unique_ptr<AsyncCall> call);
  // JavaScript thread: settles the promise and deletes the call.
  static void deliver(napi_env env, AsyncCall* call);

 protected:
  AsyncCall() = default;
  // A call that can be cancelled: by the caller through `cancel` (may be null), and by teardown.
  explicit AsyncCall(std::shared_ptr<finch_cancel> cancel);

  // Pool thread: calls into C, no N-API. May throw std::bad_alloc.
  virtual finch_status execute() = 0;
  // JavaScript thread, after execute() returned FINCH_OK.
  virtual Napi::Value result(Napi::Env env) = 0;
  // JavaScript thread: gets execute() onto a pool thread. Only calls whose C function queues itself differ.
  virtual finch_status submit();

  // Any thread: records the outcome and hands the call over; the call is not to be touched after it.
  void finish(finch_status status, const char* message) noexcept;
  const finch_cancel* cancel() const { return cancel_.get(); }
  finch_cancel* cancel() { return cancel_.get(); }

 private:
  friend class Mailbox;
  static void run(void* call);
  // JavaScript thread, environment going away: stop the work, let go of what N-API owns.
  void abandon(napi_env env) noexcept;
  void settle(napi_env env);
  napi_value rejection(napi_env env, finch_status status, const std::string& message) const;

  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<finch_cancel> cancel_;
  napi_deferred deferred_ = nullptr;
  // An object whose `stack` is the caller's.
  napi_ref trace_ = nullptr;
  finch_status status_ = FINCH_OK;
  std::string message_;

  AsyncCall* next_ = nullptr;
  AsyncCall* previous_ = nullptr;
  bool listed_ = false;
};

}  // namespace finch::node
