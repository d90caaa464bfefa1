#include "async_call.hpp"

#include <new>
#include <utility>

#include "environment.hpp"
#include "fault.hpp"

namespace finch::node {
namespace {

// The caller's stack, kept unformatted: V8 writes it out only if the call fails.
napi_ref capture_stack(Napi::Env env) {
  const Environment& environment = Environment::of(env);
  if (environment.capture_stack == nullptr) return nullptr;
  napi_value capture = nullptr;
  napi_value holder = nullptr;
  must(env, napi_get_reference_value(env, environment.capture_stack, &capture));
  must(env, napi_create_object(env, &holder));
  must(env, napi_call_function(env, env.Undefined(), capture, 1, &holder, nullptr));
  napi_ref reference = nullptr;
  must(env, napi_create_reference(env, holder, 1, &reference));
  return reference;
}

}  // namespace

AsyncCall::AsyncCall(std::shared_ptr<finch_cancel> cancel)
    : cancel_(cancel != nullptr ? std::move(cancel) : make_cancel()) {}

AsyncCall::~AsyncCall() = default;

Napi::Value AsyncCall::start(Napi::Env env, std::unique_ptr<AsyncCall> call) {
  napi_value promise = nullptr;
  call->trace_ = capture_stack(env);
  must(env, napi_create_promise(env, &call->deferred_, &promise));
  call->mailbox_ = Environment::of(env).mailbox;
  call->mailbox_->add(env, *call);
  // From here the pool may own the call, even before submit() returns.
  AsyncCall* raw = call.release();
  const finch_status status = raw->submit();
  if (status != FINCH_OK) {
    raw->status_ = status;
    raw->message_ = finch_last_error();
    deliver(env, raw);
  }
  return {env, promise};
}

finch_status AsyncCall::submit() { return finch_pool_run(run, this); }

void AsyncCall::run(void* argument) {
  auto* call = static_cast<AsyncCall*>(argument);
  try {
    const finch_status status = call->execute();
    call->finish(status, status == FINCH_OK ? "" : finch_last_error());
  } catch (const std::bad_alloc&) {
    call->finish(FINCH_NO_MEMORY, "Out of memory; nothing was changed. Free some or use a smaller batch.");
  } catch (...) {
    call->finish(FINCH_INTERNAL, "Unexpected exception inside Toolfinch; please report it.");
  }
}

void AsyncCall::finish(finch_status status, const char* message) noexcept {
  status_ = status;
  try {
    message_ = message;
  } catch (...) {
    message_.clear();
  }
  // The call holds the mailbox: keep it while the call may be deleted.
  const std::shared_ptr<Mailbox> mailbox = mailbox_;
  mailbox->post(this);
}

void AsyncCall::abandon(napi_env env) noexcept {
  if (cancel_ != nullptr) finch_cancel_signal(cancel_.get());
  if (trace_ != nullptr) napi_delete_reference(env, trace_);
  trace_ = nullptr;
}

void AsyncCall::deliver(napi_env env, AsyncCall* raw) {
  std::unique_ptr<AsyncCall> call(raw);
  call->mailbox_->remove(env, *call);
  try {
    call->settle(env);
  } catch (const Napi::Error&) {
    // The environment no longer runs JavaScript (a worker being terminated): there is nobody to tell.
  } catch (...) {
    // Neither the result nor its error could be built; the promise stays pending rather than the process dying.
  }
  if (call->trace_ != nullptr) napi_delete_reference(env, call->trace_);
}

void AsyncCall::settle(napi_env env) {
  if (status_ == FINCH_OK) {
    try {
      napi_value value = as_fault([&] { return result(env); });
      napi_resolve_deferred(env, deferred_, value);
      return;
    } catch (const Fault& fault) {
      status_ = fault.status;
      message_ = fault.message;
    }
  }
  napi_reject_deferred(env, deferred_, rejection(env, status_, message_));
}

napi_value AsyncCall::rejection(napi_env env, finch_status status, const std::string& message) const {
  Napi::Object error(env, make_error(env, status, message));
  if (trace_ == nullptr) return error;
  napi_value holder = nullptr;
  must(env, napi_get_reference_value(env, trace_, &holder));
  Napi::Value stack = Napi::Object(env, holder).Get("stack");
  if (!stack.IsString()) return error;
  // Error.prepareStackTrace may have made anything of it; a usual stack is a header line, then the frames.
  const std::string text = stack.As<Napi::String>().Utf8Value();
  const size_t frames = text.find('\n');
  if (frames != std::string::npos) error.Set("stack", "FinchError: " + message + text.substr(frames));
  return error;
}

}  // namespace finch::node
