#include "fault.hpp"

#include <utility>

namespace finch::node {

void refuse(finch_status status, std::string message) { throw Fault{status, std::move(message)}; }

void refuse_argument(std::string message) { refuse(FINCH_INVALID_ARGUMENT, std::move(message)); }

void check(finch_status status) {
  if (status != FINCH_OK) refuse(status, finch_last_error());
}

napi_value make_error(napi_env env, finch_status status, const std::string& message) {
  Napi::Value code = Napi::String::New(env, finch_status_name(status));
  Napi::Value text = Napi::String::New(env, message);
  const Environment& environment = Environment::of(env);
  if (environment.error_class != nullptr) {
    napi_value error_class = nullptr;
    must(env, napi_get_reference_value(env, environment.error_class, &error_class));
    const napi_value arguments[] = {code, text};
    napi_value error = nullptr;
    must(env, napi_new_instance(env, error_class, 2, arguments, &error));
    return error;
  }
  napi_value error = nullptr;
  must(env, napi_create_error(env, code, text, &error));
  return error;
}

}  // namespace finch::node
