// What the calls of encoders and rerankers share: opening a model, and requests that queue themselves.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "async_call.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {

// Opens a model with the options that all kinds have; the caller sets the others of options().
template <typename ModelOptions, typename Model, finch_status (*kOpen)(const ModelOptions*, Model**)>
class ModelOpenCall : public AsyncCall {
 public:
  explicit ModelOpenCall(const Options& options)
      : runtime_path_(options.c_string("runtimePath")),
        model_path_(options.c_string("modelPath")),
        output_name_(options.c_string("outputName")) {
    options_.size = sizeof(options_);
    options_.batch_size = options.whole_or("batchSize", 1, 0xffffffff, 0);
  }

  void use(std::shared_ptr<finch_tokenizer> tokenizer) { tokenizer_ = std::move(tokenizer); }

  // Starts `call`, which was made from the first argument.
  static Napi::Value open(const Arguments& arguments, const Options& options, std::unique_ptr<ModelOpenCall> call) {
    call->use(open_box<finch_tokenizer>(arguments.env(), options.get("tokenizer"), "options.tokenizer").object);
    return AsyncCall::start(arguments.env(), std::move(call));
  }

 protected:
  ModelOptions& options() { return options_; }
  std::shared_ptr<Model> take() { return std::move(model_); }

 private:
  finch_status execute() override {
    options_.runtime_path = runtime_path_.c_str();
    options_.model_path = model_path_.c_str();
    options_.output_name = output_name_.c_str();
    options_.tokenizer = tokenizer_.get();
    Model* model = nullptr;
    const finch_status status = kOpen(&options_, &model);
    if (status == FINCH_OK) model_ = own(model);
    return status;
  }

  std::string runtime_path_;
  std::string model_path_;
  std::string output_name_;
  std::shared_ptr<finch_tokenizer> tokenizer_;
  ModelOptions options_ = {};
  std::shared_ptr<Model> model_;
};

// Queues itself: waiting requests share the model's threads text by text.
class QueuedCall : public AsyncCall {
 protected:
  // `width`: floats a text; `less`: what to do when memory is short.
  QueuedCall(std::shared_ptr<finch_cancel> cancel, uint32_t width, const char* less)
      : AsyncCall(std::move(cancel)), width_(width), less_(less) {}

  static void on_done(void* user, finch_status status, const char* message, const float* results, size_t count) {
    auto* call = static_cast<QueuedCall*>(user);
    if (status == FINCH_OK) {
      try {
        call->results_.assign(results, results + count * call->width_);
      } catch (...) {
        call->finish(FINCH_NO_MEMORY, call->less_);
        return;
      }
    }
    call->finish(status, message != nullptr ? message : "");
  }

 private:
  finch_status execute() override { return FINCH_INTERNAL; }  // never queued by the base
  Napi::Value result(Napi::Env env) override { return {env, copy_array<float>(env, results_)}; }

  uint32_t width_;
  const char* less_;
  std::vector<float> results_;
};

}  // namespace finch::node
