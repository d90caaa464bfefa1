// A model as an onnxruntime session: token ids in; unit vectors (encoders) or logits (rerankers) out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ort_api.hpp"
#include "toolfinch.h"

namespace finch {

// What a row of the output becomes.
enum class Head { kVector, kMean, kCls, kLogit };

struct SessionOptions {
  const char* runtime_path;
  const char* model_path;
  const char* output_name;
  uint32_t dimension;  // 1 for logits
  Head head;
  finch_provider provider;  // not FINCH_PROVIDER_AUTO
};

class Session {
 public:
  // Opens the model and checks inputs and output. FINCH_IO, FINCH_DEVICE, FINCH_DIMENSION, FINCH_INVALID_ARGUMENT.
  static finch_status open(const SessionOptions& options, std::unique_ptr<Session>* out);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // ids: batch x length. out: batch x dimension, untouched on failure. Any number of threads at once.
  // FINCH_DEVICE, FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_CLOSED (the process is exiting).
  finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const;
  // The same with the three inputs as the model takes them: numbers is 3 x batch x length, token ids, then the
  // attention mask, then segments.
  finch_status run(std::vector<int64_t>& numbers, size_t batch, size_t length, float* out) const;

  const std::string& runtime_version() const noexcept { return runtime_->version; }

 private:
  enum class Input { kIds, kMask, kTypes };

  explicit Session(const ort::Runtime* runtime) : runtime_(runtime) {}
  finch_status create(const char* path, finch_provider provider);
  finch_status check_inputs();
  finch_status check_output();
  finch_status check_shape(const ort::TensorInfo* info, bool is_static, size_t batch, size_t length) const;
  size_t axes() const noexcept { return head_ == Head::kMean || head_ == Head::kCls ? 3 : 2; }
  finch_status logits(const float* output, size_t batch, float* out) const;
  finch_status pool(const float* output, size_t batch, size_t length, float* out) const;
  finch_status refused(const char* what, ort::Status* status) const;

  const ort::Runtime* runtime_;
  ort::Session* session_ = nullptr;
  std::string model_, output_;
  uint32_t dimension_ = 0;
  Head head_ = Head::kVector;
  std::vector<Input> inputs_;
};

}  // namespace finch
