// Option objects of the JavaScript side as option structs of the C ABI. Zero means "default" there, so a zero that
// means something else, or nothing at all, is dealt with here.
#pragma once

#include <napi.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "toolfinch.h"
#include "values.hpp"

namespace finch::node {

// An options object; `name` prefixes its fields in messages. Reading a field may run JavaScript (getters).
class Options {
 public:
  // undefined and null are an object without fields when `optional`.
  Options(napi_env env, napi_value value, std::string name, bool optional);

  bool has(const char* field) const;
  napi_value get(const char* field) const;
  std::string name_of(const char* field) const { return name_ + "." + field; }

  uint32_t whole(const char* field, uint32_t least, uint32_t most) const;
  // `fallback` when the field is absent.
  uint32_t whole_or(const char* field, uint32_t least, uint32_t most, uint32_t fallback) const;
  double number(const char* field) const;
  std::optional<double> optional_number(const char* field) const;
  bool boolean_or(const char* field, bool fallback) const;
  bool boolean(const char* field) const;
  std::string c_string(const char* field) const;
  std::optional<std::string> optional_string(const char* field) const;
  // One of the words; the first when absent and `optional`.
  int32_t choice(const char* field, std::initializer_list<std::pair<const char*, int32_t>> words, bool optional) const;

 private:
  napi_env env_;
  std::string name_;
  // Null without an object.
  napi_value object_ = nullptr;
};

// The structs with what they point to. Each `view` is valid as long as the object it came from stays where it is.
struct SearchOptions {
  uint32_t k = 0;
  finch_search_mode mode = FINCH_SEARCH_AUTO;
  std::shared_ptr<finch_allow> allow;
  uint32_t threads = 0;
  uint32_t overfetch = 0;
  uint32_t expansion = 0;
  finch_search_options view(const finch_cancel* cancel) const;
};
SearchOptions read_search_options(napi_env env, napi_value value, const char* name);

finch_cut_options read_cut_options(napi_env env, napi_value value, const char* name);
std::optional<finch_weights> read_weights(napi_env env, napi_value value, const char* name);
finch_bandit_options read_bandit_options(napi_env env, napi_value value, const char* name);
finch_ann_options read_ann_options(napi_env env, napi_value value, const char* name);

struct RankOptions {
  double now = 0;
  bool explore = false;
  std::optional<finch_weights> weights;
  finch_cut_options cut = {};
  float min_availability = 0;
  finch_rank_options view() const;
};
RankOptions read_rank_options(napi_env env, napi_value value, const char* name);

}  // namespace finch::node
