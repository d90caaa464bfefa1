// The edge of every exported function: whatever its body throws becomes a JavaScript exception, or the rejection of the
// promise that the function returns.
#pragma once

#include <napi.h>

#include "arguments.hpp"
#include "fault.hpp"

namespace finch::node {

using Body = Napi::Value (*)(const Arguments& arguments);

napi_value call_sync(napi_env env, napi_callback_info info, Body body) noexcept;
napi_value call_async(napi_env env, napi_callback_info info, Body body) noexcept;

template <Body body>
napi_value sync_entry(napi_env env, napi_callback_info info) {
  return call_sync(env, info, body);
}
// For functions that return a promise: they reject and never throw, so a caller needs one way of handling errors.
template <Body body>
napi_value async_entry(napi_env env, napi_callback_info info) {
  return call_async(env, info, body);
}

struct Export {
  const char* name;
  napi_callback entry;
};

// What each family exports; joined in addon.cpp.
std::span<const Export> library_exports();
std::span<const Export> index_exports();
std::span<const Export> snapshot_exports();
std::span<const Export> search_exports();
std::span<const Export> truncate_exports();
std::span<const Export> bandit_exports();
std::span<const Export> rank_exports();
std::span<const Export> encode_exports();
std::span<const Export> rerank_exports();
std::span<const Export> prepared_exports();
std::span<const Export> shared_exports();

}  // namespace finch::node
