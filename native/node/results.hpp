// Building JavaScript results.
#pragma once

#include <napi.h>

#include <cstdint>
#include <span>

#include "environment.hpp"
#include "fault.hpp"

namespace finch::node {

template <typename T>
struct TypedArrayKind;
template <>
struct TypedArrayKind<float> {
  static constexpr napi_typedarray_type type = napi_float32_array;
};
template <>
struct TypedArrayKind<double> {
  static constexpr napi_typedarray_type type = napi_float64_array;
};
template <>
struct TypedArrayKind<uint32_t> {
  static constexpr napi_typedarray_type type = napi_uint32_array;
};
template <>
struct TypedArrayKind<int32_t> {
  static constexpr napi_typedarray_type type = napi_int32_array;
};
template <>
struct TypedArrayKind<uint8_t> {
  static constexpr napi_typedarray_type type = napi_uint8_array;
};

// A JavaScript typed array and its memory, written before JavaScript sees it.
template <typename T>
struct Array {
  napi_value value;
  std::span<T> data;
};

// V8 ends the process when an ArrayBuffer cannot be allocated, so what could not be meant is refused first.
void require_result_bytes(size_t count, size_t bytes_each);

template <typename T>
Array<T> make_array(Napi::Env env, size_t count) {
  require_result_bytes(count, sizeof(T));
  void* memory = nullptr;
  napi_value buffer = nullptr;
  napi_value value = nullptr;
  must(env, napi_create_arraybuffer(env, count * sizeof(T), &memory, &buffer));
  must(env, napi_create_typedarray(env, TypedArrayKind<T>::type, count, buffer, 0, &value));
  return {value, {static_cast<T*>(memory), count}};
}

// Several arrays in one ArrayBuffer: making one costs more than all the views on it.
class SharedBuffer {
 public:
  SharedBuffer(Napi::Env env, size_t bytes) : env_(env) {
    require_result_bytes(bytes, 1);
    void* memory = nullptr;
    must(env, napi_create_arraybuffer(env, bytes, &memory, &buffer_));
    memory_ = static_cast<unsigned char*>(memory);
  }
  // Bytes that an array of `count` takes; every array begins at a multiple of 8.
  template <typename T>
  static constexpr size_t bytes(size_t count) {
    return (count * sizeof(T) + 7) / 8 * 8;
  }
  template <typename T>
  Array<T> take(size_t count) {
    napi_value value = nullptr;
    must(env_, napi_create_typedarray(env_, TypedArrayKind<T>::type, count, buffer_, at_, &value));
    auto* data = reinterpret_cast<T*>(memory_ + at_);
    at_ += bytes<T>(count);
    return {value, {data, count}};
  }

 private:
  Napi::Env env_;
  napi_value buffer_ = nullptr;
  unsigned char* memory_ = nullptr;
  size_t at_ = 0;
};

template <typename T>
napi_value copy_array(Napi::Env env, std::span<const T> source) {
  Array<T> array = make_array<T>(env, source.size());
  std::copy(source.begin(), source.end(), array.data.begin());
  return array.value;
}

// Keys are exact as JavaScript numbers: they stay below 2^53.
inline Napi::Value keys_array(Napi::Env env, std::span<const uint64_t> keys) {
  Array<double> array = make_array<double>(env, keys.size());
  for (size_t i = 0; i < keys.size(); ++i) array.data[i] = static_cast<double>(keys[i]);
  return {env, array.value};
}

inline void set(napi_env env, napi_value object, const char* name, napi_value value) {
  must(env, napi_set_named_property(env, object, name, value));
}

inline void set_number(napi_env env, napi_value object, const char* name, double number) {
  napi_value value = nullptr;
  must(env, napi_create_double(env, number, &value));
  set(env, object, name, value);
}

inline napi_value utf8(napi_env env, const char* data, size_t size) {
  napi_value value = nullptr;
  must(env, napi_create_string_utf8(env, data, size, &value));
  return value;
}

}  // namespace finch::node
