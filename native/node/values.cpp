#include "values.hpp"

#include <cmath>
#include <cstring>

#include "environment.hpp"
#include "fault.hpp"
#include "handles.hpp"

namespace finch::node {
namespace {

constexpr double kMostSafe = 9007199254740991.0;  // Number.MAX_SAFE_INTEGER

napi_valuetype type_of(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;
  must(env, napi_typeof(env, value, &type));
  return type;
}

[[noreturn]] void refuse_type(napi_env env, napi_value value, const std::string& name, const char* expected) {
  refuse_argument("Expected " + name + " to be " + expected + " but received " + describe(env, value) + ".");
}

std::string show_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", number);
  return text;
}

// "a Float64Array", or null for what is no typed array.
const char* typed_array_name(napi_typedarray_type type) {
  switch (type) {
    case napi_int8_array:
      return "an Int8Array";
    case napi_uint8_array:
      return "a Uint8Array";
    case napi_uint8_clamped_array:
      return "a Uint8ClampedArray";
    case napi_int16_array:
      return "an Int16Array";
    case napi_uint16_array:
      return "a Uint16Array";
    case napi_int32_array:
      return "an Int32Array";
    case napi_uint32_array:
      return "a Uint32Array";
    case napi_float32_array:
      return "a Float32Array";
    case napi_float64_array:
      return "a Float64Array";
    case napi_bigint64_array:
      return "a BigInt64Array";
    case napi_biguint64_array:
      return "a BigUint64Array";
    default:
      return "a typed array of another type";
  }
}

bool is_typed_array(napi_env env, napi_value value) {
  bool is = false;
  must(env, napi_is_typedarray(env, value, &is));
  return is;
}

std::string describe_object(napi_env env, napi_value value) {
  bool is = false;
  must(env, napi_is_array(env, value, &is));
  if (is) return "an array";
  if (is_typed_array(env, value)) {
    napi_typedarray_type type = napi_int8_array;
    must(env, napi_get_typedarray_info(env, value, &type, nullptr, nullptr, nullptr, nullptr));
    return typed_array_name(type);
  }
  must(env, napi_is_arraybuffer(env, value, &is));
  if (is) return "an ArrayBuffer";
  must(env, napi_is_dataview(env, value, &is));
  if (is) return "a DataView";
  return "an object";
}

// V8 writes a lone surrogate as U+FFFD: only a string that holds U+FFFD needs the second look.
bool has_lone_surrogate(napi_env env, napi_value value) {
  size_t length = 0;
  must(env, napi_get_value_string_utf16(env, value, nullptr, 0, &length));
  std::vector<char16_t> units(length + 1);
  must(env, napi_get_value_string_utf16(env, value, units.data(), units.size(), &length));
  for (size_t i = 0; i < length; ++i) {
    const bool high = units[i] >= 0xd800 && units[i] <= 0xdbff;
    const bool low = units[i] >= 0xdc00 && units[i] <= 0xdfff;
    if (low) return true;
    if (!high) continue;
    if (i + 1 == length || units[i + 1] < 0xdc00 || units[i + 1] > 0xdfff) return true;
    ++i;
  }
  return false;
}

// Appends the value's UTF-8 to `bytes`, whose size grows by what was written. False when it is no string.
bool append_utf8(napi_env env, napi_value value, std::vector<char>& bytes) {
  const size_t start = bytes.size();
  // One call when the string fits: V8 stops before a character that would not fit whole, so a margin of 4 bytes tells.
  size_t room = 256;
  bytes.resize(start + room);
  size_t written = 0;
  const napi_status status = napi_get_value_string_utf8(env, value, bytes.data() + start, room, &written);
  if (status == napi_string_expected) {
    bytes.resize(start);
    return false;
  }
  must(env, status);
  if (written + 4 >= room) {
    must(env, napi_get_value_string_utf8(env, value, nullptr, 0, &room));
    bytes.resize(start + room + 1);
    must(env, napi_get_value_string_utf8(env, value, bytes.data() + start, room + 1, &written));
  }
  bytes.resize(start + written);
  return true;
}

void refuse_lone_surrogate(napi_env env, napi_value value, std::string_view bytes, const std::string& name) {
  if (bytes.find("\xef\xbf\xbd") != std::string_view::npos && has_lone_surrogate(env, value)) {
    refuse_argument("Expected " + name +
                    " to be well-formed Unicode but it holds a lone surrogate, which UTF-8 cannot tell from another. "
                    "Mend it with toWellFormed() if merging such strings is meant.");
  }
}

struct View {
  const void* data;
  size_t length;
};

View read_view(napi_env env, napi_value value, const std::string& name, napi_typedarray_type wanted) {
  if (!is_typed_array(env, value)) refuse_type(env, value, name, typed_array_name(wanted));
  napi_typedarray_type type = napi_int8_array;
  size_t length = 0;
  void* data = nullptr;
  napi_value buffer = nullptr;
  must(env, napi_get_typedarray_info(env, value, &type, &length, &data, &buffer, nullptr));
  if (type != wanted) refuse_type(env, value, name, typed_array_name(wanted));
  bool is = false;
  must(env, napi_is_arraybuffer(env, buffer, &is));
  if (!is) {
    refuse_argument("Expected " + name +
                    " to own its memory but it is a view of a SharedArrayBuffer, which other threads may change "
                    "meanwhile. Pass a copy: " +
                    name + ".slice().");
  }
  must(env, napi_is_detached_arraybuffer(env, buffer, &is));
  if (is) {
    refuse_argument("Expected " + name +
                    " to have memory but its ArrayBuffer was detached (transferred to another thread). Pass a copy "
                    "made before the transfer.");
  }
  // An empty view has no memory; C functions take a null pointer for "not given".
  static constexpr double kNothing = 0;
  return {data != nullptr ? data : &kNothing, length};
}

}  // namespace

std::string describe(napi_env env, napi_value value) {
  switch (type_of(env, value)) {
    case napi_undefined:
      return "undefined";
    case napi_null:
      return "null";
    case napi_boolean: {
      bool truth = false;
      must(env, napi_get_value_bool(env, value, &truth));
      return truth ? "true" : "false";
    }
    case napi_number: {
      double number = 0;
      must(env, napi_get_value_double(env, value, &number));
      return "the number " + show_number(number);
    }
    case napi_string: {
      std::string text = Napi::String(env, value).Utf8Value();
      if (text.size() > 60) text = text.substr(0, 57) + "...";
      return "the string '" + text + "'";
    }
    case napi_symbol:
      return "a symbol";
    case napi_function:
      return "a function";
    case napi_bigint:
      return "a bigint";
    case napi_external: {
      const char* handle = describe_handle(env, value);
      return handle != nullptr ? handle : "a handle of another addon";
    }
    default:
      return describe_object(env, value);
  }
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::strchr("aeiou", noun[0]) != nullptr;
  return (vowel ? "an " : "a ") + std::string(noun);
}

std::string read_string(napi_env env, napi_value value, const std::string& name, Surrogates surrogates) {
  std::vector<char> bytes;
  if (!append_utf8(env, value, bytes)) refuse_type(env, value, name, "a string");
  std::string text(bytes.data(), bytes.size());
  if (surrogates == Surrogates::refuse) refuse_lone_surrogate(env, value, text, name);
  return text;
}

std::string read_c_string(napi_env env, napi_value value, const std::string& name) {
  std::string text = read_string(env, value, name, Surrogates::refuse);
  if (text.empty()) refuse_argument("Expected " + name + " to be a non-empty string.");
  if (text.find('\0') != std::string::npos) {
    refuse_argument("Expected " + name + " to be without U+0000 characters, which no path or name may hold.");
  }
  return text;
}

bool read_boolean(napi_env env, napi_value value, const std::string& name) {
  bool truth = false;
  const napi_status status = napi_get_value_bool(env, value, &truth);
  if (status == napi_boolean_expected) refuse_type(env, value, name, "true or false");
  must(env, status);
  return truth;
}

double read_number(napi_env env, napi_value value, const std::string& name) {
  double number = 0;
  const napi_status status = napi_get_value_double(env, value, &number);
  if (status == napi_number_expected) refuse_type(env, value, name, "a number");
  must(env, status);
  if (!std::isfinite(number)) {
    refuse(FINCH_NOT_FINITE, "Expected " + name + " to be a finite number but received " + show_number(number) + ".");
  }
  return number;
}

uint32_t read_whole(napi_env env, napi_value value, const std::string& name, uint32_t least, uint32_t most) {
  const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  double number = 0;
  const napi_status status = napi_get_value_double(env, value, &number);
  if (status == napi_number_expected) refuse_type(env, value, name, expected.c_str());
  must(env, status);
  if (!(number >= least && number <= most) || number != std::floor(number)) {
    refuse_type(env, value, name, expected.c_str());
  }
  return static_cast<uint32_t>(number);
}

bool is_absent(napi_env env, napi_value value) {
  const napi_valuetype type = type_of(env, value);
  return type == napi_undefined || type == napi_null;
}

Strings::Strings(napi_env env, napi_value array, const char* name, Surrogates surrogates) {
  bool is = false;
  must(env, napi_is_array(env, array, &is));
  if (!is) refuse_type(env, array, name, "an array of strings");
  uint32_t count = 0;
  must(env, napi_get_array_length(env, array, &count));
  std::vector<size_t> ends;
  ends.reserve(count);
  // Every element makes handles; a scope per block keeps a long array from filling the caller's.
  constexpr uint32_t kBlock = 256;
  for (uint32_t block = 0; block < count; block += kBlock) {
    Napi::HandleScope scope(env);
    for (uint32_t i = block; i < count && i < block + kBlock; ++i) {
      napi_value element = nullptr;
      must(env, napi_get_element(env, array, i, &element));
      const size_t start = bytes_.size();
      const auto element_name = [&] { return std::string(name) + "[" + std::to_string(i) + "]"; };
      if (!append_utf8(env, element, bytes_)) refuse_type(env, element, element_name(), "a string");
      if (surrogates == Surrogates::refuse) {
        const std::string_view text(bytes_.data() + start, bytes_.size() - start);
        if (text.find("\xef\xbf\xbd") != std::string_view::npos) {
          refuse_lone_surrogate(env, element, text, element_name());
        }
      }
      ends.push_back(bytes_.size());
    }
  }
  views_.reserve(count);
  size_t start = 0;
  for (const size_t end : ends) {
    views_.push_back({bytes_.data() + start, end - start});
    start = end;
  }
}

std::span<const float> read_floats(napi_env env, napi_value value, const char* name) {
  const View view = read_view(env, value, name, napi_float32_array);
  return {static_cast<const float*>(view.data), view.length};
}

std::span<const double> read_doubles(napi_env env, napi_value value, const char* name) {
  const View view = read_view(env, value, name, napi_float64_array);
  return {static_cast<const double*>(view.data), view.length};
}

std::span<const uint8_t> read_bytes(napi_env env, napi_value value, const std::string& name) {
  const View view = read_view(env, value, name, napi_uint8_array);
  return {static_cast<const uint8_t*>(view.data), view.length};
}

std::vector<uint64_t> read_wholes(napi_env env, napi_value value, const char* name) {
  const std::span<const double> numbers = read_doubles(env, value, name);
  std::vector<uint64_t> wholes(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double number = numbers[i];
    if (!(number >= 0 && number <= kMostSafe) || number != std::floor(number)) {
      refuse_argument("Expected " + std::string(name) + "[" + std::to_string(i) +
                      "] to be a whole number from 0 to 2^53 - 1 but received " + show_number(number) + ".");
    }
    wholes[i] = static_cast<uint64_t>(number);
  }
  return wholes;
}

}  // namespace finch::node
