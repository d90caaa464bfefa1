// Native objects as JavaScript sees them: externals, each kind with its own type tag, so that a handle of another kind
// (or of another addon) is refused instead of being misread. A box is used on its environment's thread only; work on
// other threads holds a shared_ptr of its own, so closing or collecting a handle never takes an object from under a
// call.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "toolfinch.h"

namespace finch::node {

template <typename T>
struct Box {
  // Null after close.
  std::shared_ptr<T> object;
  // Length of its vectors, where the kind has one.
  uint32_t dimension = 0;
};

// `name` is the word in messages, `release` the C function that drops the reference a creating function gave.
template <typename T>
struct HandleKind;

#define FINCH_HANDLE_KIND(type, word, release_function, low, high)           \
  template <>                                                                \
  struct HandleKind<type> {                                                  \
    static constexpr const char* name = word;                                \
    static constexpr napi_type_tag tag = {low, high};                        \
    static void release(type* object) noexcept { release_function(object); } \
  }

// Random tags; a kind keeps its tag for ever.
FINCH_HANDLE_KIND(finch_index, "index", finch_index_release, 0x8c1f4a0be2d94e31, 0x9f21c06d7ab35e08);
FINCH_HANDLE_KIND(finch_snapshot, "snapshot", finch_snapshot_release, 0x2b7de95f10c84a66, 0xb3c58e92d4710fa7);
FINCH_HANDLE_KIND(finch_allow, "allow", finch_allow_release, 0xe49a03c6b7f1482d, 0x86d02f5e19cb74a3);
FINCH_HANDLE_KIND(finch_bandit, "bandit", finch_bandit_release, 0x51c6f8a92e3d4b07, 0xa8e7193b60d5fc42);
FINCH_HANDLE_KIND(finch_cancel, "cancel", finch_cancel_release, 0xd0837b2c95ea4f19, 0x9c46e1a7f38b025d);
FINCH_HANDLE_KIND(finch_tokenizer, "tokenizer", finch_tokenizer_release, 0x7fa215d84c9b4360, 0xb19d6e03fa2c8754);
FINCH_HANDLE_KIND(finch_encoder, "encoder", finch_encoder_release, 0x36e8d9014bf74ca5, 0x8ab5f7c2041e93d6);
FINCH_HANDLE_KIND(finch_reranker, "reranker", finch_reranker_release, 0x61d0a3f7c85e429b, 0xc27b94e6180fd35a);

// Takes over the reference that a creating function gave.
template <typename T>
std::shared_ptr<T> own(T* object) {
  return std::shared_ptr<T>(object, HandleKind<T>::release);
}

std::shared_ptr<finch_cancel> make_cancel();

template <typename T>
void finalize_box(napi_env, void* data, void*) {
  delete static_cast<Box<T>*>(data);
}

// Throws Napi::Error when N-API refuses.
void tag_external(napi_env env, napi_value external, const napi_type_tag& tag);

template <typename T>
Napi::Value make_handle(Napi::Env env, std::shared_ptr<T> object, uint32_t dimension = 0) {
  auto box = std::make_unique<Box<T>>(Box<T>{std::move(object), dimension});
  napi_value external = nullptr;
  if (napi_create_external(env, box.get(), finalize_box<T>, nullptr, &external) != napi_ok) {
    throw Napi::Error::New(env);
  }
  static_cast<void>(box.release());
  tag_external(env, external, HandleKind<T>::tag);
  return {env, external};
}

// The box behind a value, or null when the value is no handle of this kind.
void* find_box(napi_env env, napi_value value, const napi_type_tag& tag);
// "an index handle" and so on, or null for what is no handle of ours.
const char* describe_handle(napi_env env, napi_value value);

// FINCH_INVALID_ARGUMENT for what is no handle of this kind.
[[noreturn]] void refuse_handle(napi_env env, napi_value value, const char* argument, const char* kind);
[[noreturn]] void refuse_closed(const char* kind);

template <typename T>
Box<T>& box_of(napi_env env, napi_value value, const char* argument) {
  void* box = find_box(env, value, HandleKind<T>::tag);
  if (box == nullptr) refuse_handle(env, value, argument, HandleKind<T>::name);
  return *static_cast<Box<T>*>(box);
}

// As box_of, and FINCH_CLOSED for a closed one.
template <typename T>
Box<T>& open_box(napi_env env, napi_value value, const char* argument) {
  Box<T>& box = box_of<T>(env, value, argument);
  if (box.object == nullptr) refuse_closed(HandleKind<T>::name);
  return box;
}

}  // namespace finch::node
