// Reading JavaScript values: each function returns what was asked for or throws a Fault that names the argument, what
// was expected and what came. Copies are complete before any other JavaScript can run; pointers into typed arrays are
// not, so they are taken last (Floats and friends say so).
#pragma once

#include <napi.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toolfinch.h"

namespace finch::node {

// "a number (3)", "a string ('fast')", "an index handle", "a Float64Array", "undefined".
std::string describe(napi_env env, napi_value value);
// "a bandit", "an index".
std::string with_article(std::string_view noun);

enum class Surrogates {
  refuse,   // ids and paths: two different strings must not become one
  replace,  // texts: U+FFFD, as TextEncoder does
};

std::string read_string(napi_env env, napi_value value, const std::string& name, Surrogates surrogates);
// A file path or name for a C string: neither empty nor holding U+0000.
std::string read_c_string(napi_env env, napi_value value, const std::string& name);
bool read_boolean(napi_env env, napi_value value, const std::string& name);
// Finite: FINCH_NOT_FINITE otherwise.
double read_number(napi_env env, napi_value value, const std::string& name);
uint32_t read_whole(napi_env env, napi_value value, const std::string& name, uint32_t least, uint32_t most);
bool is_absent(napi_env env, napi_value value);

// An array of strings as UTF-8, with the views the C ABI takes.
class Strings {
 public:
  Strings() = default;
  Strings(napi_env env, napi_value array, const char* name, Surrogates surrogates);
  const finch_string* data() const { return views_.data(); }
  size_t size() const { return views_.size(); }
  const finch_string& operator[](size_t i) const { return views_[i]; }

 private:
  // A vector, not a string: moving it must not move the bytes.
  std::vector<char> bytes_;
  std::vector<finch_string> views_;
};

// Views of a typed array's memory (byteOffset honoured). Valid until JavaScript runs again: take them after everything
// else was read, and copy them for work on other threads. Detached and shared memory is refused.
std::span<const float> read_floats(napi_env env, napi_value value, const char* name);
std::span<const double> read_doubles(napi_env env, napi_value value, const char* name);
std::span<const uint8_t> read_bytes(napi_env env, napi_value value, const std::string& name);

// Keys and offsets: whole numbers 0 ... 2^53 - 1 in a Float64Array.
std::vector<uint64_t> read_wholes(napi_env env, napi_value value, const char* name);

}  // namespace finch::node
