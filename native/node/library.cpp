// The library itself, and cancellation.
#include "entry.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

Napi::Value abi_version(const Arguments& arguments) { return Napi::Number::New(arguments.env(), finch_abi_version()); }

Napi::Value version(const Arguments& arguments) { return Napi::String::New(arguments.env(), finch_version()); }

Napi::Value isa(const Arguments& arguments) {
  Napi::Object object = Napi::Object::New(arguments.env());
  object.Set("level", finch_isa());
  object.Set("reason", finch_isa_reason());
  return object;
}

Napi::Value pool_threads(const Arguments& arguments) {
  return Napi::Number::New(arguments.env(), finch_pool_threads());
}

Napi::Value shutdown(const Arguments& arguments) {
  finch_shutdown();
  return arguments.env().Undefined();
}

// Both copies of the package (ESM and CommonJS) may call this; their classes carry one brand, so the last one serves
// both.
Napi::Value initialize(const Arguments& arguments) {
  Napi::Env env = arguments.env();
  const Napi::Value classes(env, arguments[0]);
  Napi::Value error_class = classes.IsObject() ? classes.As<Napi::Object>().Get("FinchError") : env.Undefined();
  if (!error_class.IsFunction()) {
    refuse_argument("Expected an object with the FinchError class but received " + describe(env, arguments[0]) + ".");
  }
  napi_ref reference = nullptr;
  must(env, napi_create_reference(env, error_class, 1, &reference));
  Environment& environment = Environment::of(env);
  if (environment.error_class != nullptr) napi_delete_reference(env, environment.error_class);
  environment.error_class = reference;
  return env.Undefined();
}

Napi::Value cancel_create(const Arguments& arguments) { return make_handle(arguments.env(), make_cancel()); }

Napi::Value cancel_signal(const Arguments& arguments) {
  finch_cancel_signal(arguments.handle<finch_cancel>(0, "cancel").object.get());
  return arguments.env().Undefined();
}

constexpr Export kExports[] = {
    {"initialize", sync_entry<initialize>},
    {"abiVersion", sync_entry<abi_version>},
    {"version", sync_entry<version>},
    {"isa", sync_entry<isa>},
    {"poolThreads", sync_entry<pool_threads>},
    {"shutdown", sync_entry<shutdown>},
    {"cancelCreate", sync_entry<cancel_create>},
    {"cancelSignal", sync_entry<cancel_signal>},
};

}  // namespace

std::span<const Export> library_exports() { return kExports; }

}  // namespace finch::node
