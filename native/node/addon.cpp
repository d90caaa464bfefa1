// The module: one instance per JavaScript environment.
#include <napi.h>

#include <vector>

#include "entry.hpp"
#include "environment.hpp"
#include "stay_loaded.hpp"

namespace finch::node {
namespace {

napi_value create_module(napi_env env, napi_value exports) {
  stay_loaded();
  create_environment(env);
  const std::span<const Export> families[] = {
      library_exports(), index_exports(),  snapshot_exports(), search_exports(), truncate_exports(), bandit_exports(),
      rank_exports(),    encode_exports(), rerank_exports(),   shared_exports(), prepared_exports()};
  std::vector<napi_property_descriptor> properties;
  for (const std::span<const Export>& family : families) {
    for (const Export& function : family) {
      napi_property_descriptor property = {};
      property.utf8name = function.name;
      property.method = function.entry;
      property.attributes = napi_enumerable;
      properties.push_back(property);
    }
  }
  must(env, napi_define_properties(env, exports, properties.size(), properties.data()));
  return exports;
}

}  // namespace
}  // namespace finch::node

NAPI_MODULE_INIT() {
  try {
    return finch::node::create_module(env, exports);
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
  } catch (...) {
    napi_throw_error(env, "FINCH_NO_MEMORY", "Toolfinch's addon could not be set up: out of memory.");
  }
  return nullptr;
}
