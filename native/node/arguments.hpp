// The arguments of one call, read by position and named in messages.
#pragma once

#include <napi.h>

#include <optional>
#include <string>

#include "environment.hpp"
#include "handles.hpp"
#include "values.hpp"

namespace finch::node {

class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info) : env_(env) {
    size_t count = kMost;
    must(env, napi_get_cb_info(env, info, &count, values_, nullptr, nullptr));
  }

  Napi::Env env() const { return env_; }
  // N-API fills what was not passed with undefined.
  napi_value operator[](size_t i) const { return values_[i]; }
  bool absent(size_t i) const { return is_absent(env_, values_[i]); }

  template <typename T>
  Box<T>& handle(size_t i, const char* name) const {
    return open_box<T>(env_, values_[i], name);
  }
  // Null when the argument is undefined or null.
  template <typename T>
  Box<T>* optional_handle(size_t i, const char* name) const {
    return absent(i) ? nullptr : &open_box<T>(env_, values_[i], name);
  }
  template <typename T>
  void close(size_t i, const char* name) const {
    box_of<T>(env_, values_[i], name).object.reset();
  }
  // The cancel argument, which every cancellable function takes last; null when absent.
  std::shared_ptr<finch_cancel> cancel(size_t i) const {
    Box<finch_cancel>* box = optional_handle<finch_cancel>(i, "cancel");
    return box == nullptr ? nullptr : box->object;
  }

  Strings ids(size_t i) const { return {env_, values_[i], "ids", Surrogates::refuse}; }
  Strings texts(size_t i) const { return {env_, values_[i], "texts", Surrogates::replace}; }
  std::string path(size_t i, const char* name) const { return read_c_string(env_, values_[i], name); }
  bool boolean(size_t i, const char* name) const { return read_boolean(env_, values_[i], name); }
  double number(size_t i, const char* name) const { return read_number(env_, values_[i], name); }
  uint32_t whole(size_t i, const char* name, uint32_t least, uint32_t most) const {
    return read_whole(env_, values_[i], name, least, most);
  }

  // Views: see read_floats about their life.
  std::span<const float> floats(size_t i, const char* name) const { return read_floats(env_, values_[i], name); }
  std::span<const double> doubles(size_t i, const char* name) const { return read_doubles(env_, values_[i], name); }
  std::span<double> writable_doubles(size_t i, const char* name) const {
    const std::span<const double> view = doubles(i, name);
    return {const_cast<double*>(view.data()), view.size()};
  }
  std::optional<std::span<const float>> optional_floats(size_t i, const char* name) const {
    if (absent(i)) return std::nullopt;
    return floats(i, name);
  }
  std::vector<uint64_t> keys(size_t i) const { return read_wholes(env_, values_[i], "keys"); }

 private:
  static constexpr size_t kMost = 8;
  napi_env env_;
  napi_value values_[kMost];
};

// `actual` entries of `name` where `what` needs `expected`: FINCH_INVALID_ARGUMENT.
void require_length(const char* name, size_t actual, size_t expected, const char* what);
// FINCH_DIMENSION unless `name` holds count vectors of `dimension` numbers.
void require_vectors(const char* name, size_t actual, size_t count, uint32_t dimension);
// How many vectors of `dimension` numbers `name` holds; FINCH_DIMENSION when it does not divide.
size_t count_vectors(const char* name, size_t actual, uint32_t dimension);

}  // namespace finch::node
