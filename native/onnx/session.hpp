// A sentence encoder as an onnxruntime session: token ids in, unit vectors out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ort_api.hpp"
#include "toolfinch.h"

namespace finch {

class Session {
 public:
  // Opens the model and checks inputs and output. FINCH_IO, FINCH_DEVICE, FINCH_DIMENSION, FINCH_INVALID_ARGUMENT.
  static finch_status open(const finch_encoder_options& options, std::unique_ptr<Session>* out);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // ids: batch x length. out: batch x dimension, untouched on failure. Any number of threads at once.
  // FINCH_DEVICE, FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_CLOSED (the process is exiting).
  finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const;

  const std::string& runtime_version() const noexcept { return runtime_->version; }

 private:
  enum class Input { kIds, kMask, kTypes };

  explicit Session(const ort::Runtime* runtime) : runtime_(runtime) {}
  finch_status create(const char* path);
  finch_status check_inputs();
  finch_status check_output();
  finch_status check_shape(const ort::TensorInfo* info, bool is_static, size_t batch, size_t length) const;
  finch_status pool(const float* output, size_t batch, size_t length, float* out) const;
  finch_status refused(const char* what, ort::Status* status) const;

  const ort::Runtime* runtime_;
  ort::Session* session_ = nullptr;
  std::string model_, output_;
  uint32_t dimension_ = 0;
  finch_pooling pooling_ = FINCH_POOL_NONE;
  std::vector<Input> inputs_;
};

}  // namespace finch
