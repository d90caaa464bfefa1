#include "mailbox.hpp"

#include "async_call.hpp"
#include "environment.hpp"

namespace finch::node {
namespace {

// `env` is null when the thread-safe function drains its queue after teardown.
void on_message(napi_env env, napi_value, void*, void* data) {
  auto* call = static_cast<AsyncCall*>(data);
  if (env == nullptr) {
    delete call;
  } else {
    AsyncCall::deliver(env, call);
  }
}

}  // namespace

std::shared_ptr<Mailbox> Mailbox::create(napi_env env) {
  auto mailbox = std::make_shared<Mailbox>();
  mailbox->env_ = env;
  Napi::Value name = Napi::String::New(env, "toolfinch");
  must(env, napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, nullptr, on_message,
                                            &mailbox->function_));
  must(env, napi_unref_threadsafe_function(env, mailbox->function_));
  return mailbox;
}

void Mailbox::add(napi_env env, AsyncCall& call) {
  std::lock_guard lock(mutex_);
  if (!alive_) return;
  if (first_ == nullptr) napi_ref_threadsafe_function(env, function_);
  call.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &call;
  first_ = &call;
  call.listed_ = true;
}

void Mailbox::remove(napi_env env, AsyncCall& call) {
  std::lock_guard lock(mutex_);
  if (!call.listed_) return;
  call.listed_ = false;
  if (call.previous_ != nullptr) call.previous_->next_ = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  if (first_ == &call) first_ = call.next_;
  call.next_ = call.previous_ = nullptr;
  if (first_ == nullptr && alive_) napi_unref_threadsafe_function(env, function_);
}

void Mailbox::post(AsyncCall* call) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (alive_ && napi_call_threadsafe_function(function_, call, napi_tsfn_nonblocking) == napi_ok) return;
    // Unreachable while alive, but a call that cannot be delivered must not stay in the list.
    if (call->listed_) {
      if (call->previous_ != nullptr) call->previous_->next_ = call->next_;
      if (call->next_ != nullptr) call->next_->previous_ = call->previous_;
      if (first_ == call) first_ = call->next_;
    }
  }
  // Outside the lock: releasing an index may unmap a large file.
  delete call;
}

void Mailbox::close() noexcept {
  std::lock_guard lock(mutex_);
  alive_ = false;
  for (AsyncCall* call = first_; call != nullptr;) {
    AsyncCall* next = call->next_;
    call->listed_ = false;
    call->next_ = call->previous_ = nullptr;
    call->abandon(env_);
    call = next;
  }
  first_ = nullptr;
  napi_release_threadsafe_function(function_, napi_tsfn_abort);
  function_ = nullptr;
}

}  // namespace finch::node
