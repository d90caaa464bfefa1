#include "entry.hpp"

#include <new>
#include <stdexcept>

namespace finch::node {
namespace {

// The error as a JavaScript value, whatever `body` threw; null when it returned, with *value set.
template <typename Function>
napi_value attempt(napi_env env, Function&& body, napi_value* value) {
  try {
    *value = as_fault(body);
    return nullptr;
  } catch (const Fault& fault) {
    return make_error(env, fault.status, fault.message);
  } catch (const Napi::Error& error) {
    return error.Value();
  } catch (const std::exception& error) {
    return make_error(env, FINCH_INTERNAL,
                      std::string("Unexpected exception inside Toolfinch (") + error.what() + "); please report it.");
  }
}

}  // namespace

napi_value call_sync(napi_env env, napi_callback_info info, Body body) noexcept {
  try {
    napi_value value = nullptr;
    napi_value error = attempt(
        env, [&]() -> napi_value { return body(Arguments(env, info)); }, &value);
    if (error == nullptr) return value;
    napi_throw(env, error);
  } catch (...) {
    // The environment no longer runs JavaScript: nobody sees what is returned.
  }
  return nullptr;
}

napi_value call_async(napi_env env, napi_callback_info info, Body body) noexcept {
  try {
    napi_value value = nullptr;
    napi_value error = attempt(
        env, [&]() -> napi_value { return body(Arguments(env, info)); }, &value);
    if (error == nullptr) return value;
    napi_deferred deferred = nullptr;
    must(env, napi_create_promise(env, &deferred, &value));
    must(env, napi_reject_deferred(env, deferred, error));
    return value;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace finch::node
