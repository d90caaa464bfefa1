#include "handles.hpp"

#include <string>

#include "environment.hpp"
#include "fault.hpp"
#include "output.hpp"
#include "prepared.hpp"
#include "values.hpp"

namespace finch::node {
namespace {

template <typename T>
bool is_handle(napi_env env, napi_value value) {
  return find_box(env, value, HandleKind<T>::tag) != nullptr;
}

}  // namespace

std::shared_ptr<finch_cancel> make_cancel() {
  finch_cancel* cancel = nullptr;
  check(finch_cancel_create(&cancel));
  return own(cancel);
}

void tag_external(napi_env env, napi_value external, const napi_type_tag& tag) {
  must(env, napi_type_tag_object(env, external, &tag));
}

void* find_box(napi_env env, napi_value value, const napi_type_tag& tag) {
  napi_valuetype type = napi_undefined;
  must(env, napi_typeof(env, value, &type));
  if (type != napi_external) return nullptr;
  bool same = false;
  must(env, napi_check_object_type_tag(env, value, &tag, &same));
  if (!same) return nullptr;
  void* data = nullptr;
  must(env, napi_get_value_external(env, value, &data));
  return data;
}

const char* describe_handle(napi_env env, napi_value value) {
  if (is_handle<finch_index>(env, value)) return "an index handle";
  if (is_handle<finch_snapshot>(env, value)) return "a snapshot handle";
  if (is_handle<finch_allow>(env, value)) return "an allow handle";
  if (is_handle<finch_bandit>(env, value)) return "a bandit handle";
  if (is_handle<finch_cancel>(env, value)) return "a cancel handle";
  if (is_handle<finch_tokenizer>(env, value)) return "a tokenizer handle";
  if (is_handle<finch_encoder>(env, value)) return "an encoder handle";
  if (is_handle<finch_reranker>(env, value)) return "a reranker handle";
  if (is_handle<IdList>(env, value)) return "an id list handle";
  if (is_handle<CutRule>(env, value)) return "a cut rule handle";
  if (is_handle<SelectRule>(env, value)) return "a select rule handle";
  if (is_handle<Output>(env, value)) return "a results handle";
  return nullptr;
}

void refuse_handle(napi_env env, napi_value value, const char* argument, const char* kind) {
  refuse_argument(std::string("Expected ") + argument + " to be " + with_article(kind) + " handle but received " +
                  describe(env, value) + ".");
}

void refuse_closed(const char* kind) {
  refuse(FINCH_CLOSED, std::string("This ") + kind +
                           " was closed. Create or open another one, and close it only "
                           "when nothing needs it any more.");
}

}  // namespace finch::node
