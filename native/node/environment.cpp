#include "environment.hpp"

#include "mailbox.hpp"

namespace finch::node {
namespace {

// Runs before N-API tears down thread-safe functions and references (hooks run last-added first): work in flight is
// told to stop and its completion is dropped. It never waits, so terminating a worker takes no longer because of us.
void on_teardown(void* argument) {
  auto* mailbox = static_cast<std::shared_ptr<Mailbox>*>(argument);
  (*mailbox)->close();
  delete mailbox;
}

void on_finalize(napi_env env, void* data, void*) {
  auto* environment = static_cast<Environment*>(data);
  if (environment->error_class != nullptr) napi_delete_reference(env, environment->error_class);
  if (environment->capture_stack != nullptr) napi_delete_reference(env, environment->capture_stack);
  delete environment;
}

napi_ref find_capture_stack(Napi::Env env) {
  Napi::Value error = env.Global().Get("Error");
  if (!error.IsFunction()) return nullptr;
  Napi::Value capture = error.As<Napi::Object>().Get("captureStackTrace");
  if (!capture.IsFunction()) return nullptr;
  napi_ref reference = nullptr;
  must(env, napi_create_reference(env, capture, 1, &reference));
  return reference;
}

}  // namespace

Environment& Environment::of(napi_env env) {
  void* data = nullptr;
  must(env, napi_get_instance_data(env, &data));
  return *static_cast<Environment*>(data);
}

void create_environment(napi_env env) {
  auto environment = std::make_unique<Environment>();
  environment->mailbox = Mailbox::create(env);
  environment->capture_stack = find_capture_stack(env);
  // The mailbox made its thread-safe function first, so that this hook runs before that function's own.
  must(env, napi_add_env_cleanup_hook(env, on_teardown, new std::shared_ptr<Mailbox>(environment->mailbox)));
  must(env, napi_set_instance_data(env, environment.get(), on_finalize, nullptr));
  static_cast<void>(environment.release());
}

}  // namespace finch::node
