#include "session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "exit_gate.hpp"
#include "file.hpp"
#include "provider.hpp"

namespace finch {
namespace {

constexpr std::array<const char*, 3> kInputNames = {"input_ids", "attention_mask", "token_type_ids"};

template <typename T>
using Release = void (*)(T*);
template <typename T>
using Owned = std::unique_ptr<T, Release<T>>;

// Names of a session's inputs or outputs.
using NameGetter = decltype(ort::Api::session_input_name);
ort::Status* read_names(const ort::Runtime& runtime, const ort::Session* session, size_t count, NameGetter get,
                        std::vector<std::string>* out) {
  for (size_t i = 0; i < count; i++) {
    char* name = nullptr;
    if (ort::Status* status = get(session, i, runtime.allocator, &name)) return status;
    const auto give_back = [&runtime](char* text) {
      if (ort::Status* status = runtime.api->allocator_free(runtime.allocator, text))
        runtime.api->release_status(status);
    };
    const std::unique_ptr<char, decltype(give_back)> owned(name, give_back);
    out->emplace_back(name);
  }
  return nullptr;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

finch_status Session::refused(const char* what, ort::Status* status) const {
  return fail(FINCH_DEVICE, "onnxruntime %s %s %s: %s", runtime_->version.c_str(), what, model_.c_str(),
              ort::describe(*runtime_->api, status).c_str());
}

finch_status Session::create(const char* path, finch_provider provider) {
  const ort::Api& api = *runtime_->api;
  ort::SessionOptions* options = nullptr;
  ort::Status* status = api.create_session_options(&options);
  const Owned<ort::SessionOptions> owned(options, api.release_session_options);
  // One run, one thread: the pool's threads run texts side by side, which costs less than splitting each of them.
  if (status == nullptr) status = api.set_intra_op_threads(options, 1);
  if (status == nullptr) status = api.set_inter_op_threads(options, 1);
  if (status == nullptr) status = api.set_optimization(options, ort::kOptimizeAll);
  if (status == nullptr) status = api.set_session_log_severity(options, ort::kSeverityFatal);
  // Texts differ in length, so patterns would pile up (one per length) and an arena only grow; the system's allocator
  // gives memory back and is as fast here.
  if (status == nullptr) status = api.disable_memory_pattern(options);
  if (status == nullptr) status = api.disable_cpu_arena(options);
  if (status == nullptr) {
    if (const finch_status unusable = use_provider(*runtime_, options, provider); unusable != FINCH_OK) return unusable;
    const std::filesystem::path native(reinterpret_cast<const char8_t*>(path));
    status = api.create_session(runtime_->env, native.c_str(), options, &session_);
  }
  exit_gate_register();
  return status == nullptr ? FINCH_OK : refused("cannot load the model", status);
}

finch_status Session::check_inputs() {
  const ort::Api& api = *runtime_->api;
  size_t count = 0;
  std::vector<std::string> names;
  ort::Status* status = api.session_input_count(session_, &count);
  if (status == nullptr) status = read_names(*runtime_, session_, count, api.session_input_name, &names);
  if (status != nullptr) return refused("cannot describe the inputs of", status);
  for (size_t i = 0; i < count; i++) {
    const auto* known = std::find(kInputNames.begin(), kInputNames.end(), names[i]);
    if (known == kInputNames.end()) {
      return fail(FINCH_DEVICE,
                  "the model %s needs an input \"%s\", which Toolfinch cannot give; export it with input_ids, "
                  "attention_mask and "
                  "token_type_ids only.",
                  model_.c_str(), names[i].c_str());
    }
    ort::TypeInfo* type = nullptr;
    status = api.session_input_type(session_, i, &type);
    const Owned<ort::TypeInfo> owned(type, api.release_type_info);
    const ort::TensorInfo* info = nullptr;
    int element = 0;
    if (status == nullptr) status = api.tensor_info_of_type(type, &info);
    if (status == nullptr && info != nullptr) status = api.element_type(info, &element);
    if (status != nullptr) return refused("cannot describe the inputs of", status);
    if (element != ort::kInt64) {
      return fail(FINCH_DEVICE, "the model %s takes \"%s\" as element type %d; export it with int64 inputs (type %d).",
                  model_.c_str(), names[i].c_str(), element, ort::kInt64);
    }
    inputs_.push_back(static_cast<Input>(known - kInputNames.begin()));
  }
  if (std::find(inputs_.begin(), inputs_.end(), Input::kIds) == inputs_.end()) {
    return fail(FINCH_DEVICE, "the model %s has no input \"input_ids\" (it has: %s); use a text model.", model_.c_str(),
                listed(names).c_str());
  }
  return FINCH_OK;
}

finch_status Session::check_output() {
  const ort::Api& api = *runtime_->api;
  size_t count = 0;
  std::vector<std::string> names;
  ort::Status* status = api.session_output_count(session_, &count);
  if (status == nullptr) status = read_names(*runtime_, session_, count, api.session_output_name, &names);
  if (status != nullptr) return refused("cannot describe the outputs of", status);
  const auto found = std::find(names.begin(), names.end(), output_);
  if (found == names.end()) {
    return fail(FINCH_INVALID_ARGUMENT, "the model %s has no output \"%s\"; it has: %s.", model_.c_str(),
                output_.c_str(), listed(names).c_str());
  }
  ort::TypeInfo* type = nullptr;
  status = api.session_output_type(session_, static_cast<size_t>(found - names.begin()), &type);
  const Owned<ort::TypeInfo> owned(type, api.release_type_info);
  const ort::TensorInfo* info = nullptr;
  if (status == nullptr) status = api.tensor_info_of_type(type, &info);
  if (status != nullptr) return refused("cannot describe the outputs of", status);
  if (info == nullptr)
    return fail(FINCH_DEVICE, "the output \"%s\" of %s is no tensor.", output_.c_str(), model_.c_str());
  return check_shape(info, true, 0, 0);
}

// With is_static, unknown extents (below 1) pass.
finch_status Session::check_shape(const ort::TensorInfo* info, bool is_static, size_t batch, size_t length) const {
  const ort::Api& api = *runtime_->api;
  int element = 0;
  size_t rank = 0;
  std::array<int64_t, 3> shape{};
  ort::Status* status = api.element_type(info, &element);
  if (status == nullptr) status = api.dimension_count(info, &rank);
  const size_t expected = axes();
  // A logit may stand alone: [batch] instead of [batch, 1].
  const bool flat = head_ == Head::kLogit && rank == 1;
  if (status == nullptr && (rank == expected || flat)) status = api.dimensions(info, shape.data(), rank);
  if (status != nullptr) return refused("cannot describe the outputs of", status);
  if (element != ort::kFloat) {
    return fail(FINCH_DEVICE, "the output \"%s\" of %s has element type %d; export it as float32 (type %d).",
                output_.c_str(), model_.c_str(), element, ort::kFloat);
  }
  if (rank != expected && !flat && !(is_static && rank == 0)) {
    return fail(FINCH_INVALID_ARGUMENT, "the output \"%s\" of %s has %zu axes, but %s needs %s.", output_.c_str(),
                model_.c_str(), rank,
                head_ == Head::kLogit    ? "a reranker"
                : head_ == Head::kVector ? "pooling \"none\""
                : head_ == Head::kMean   ? "pooling \"mean\""
                                         : "pooling \"cls\"",
                head_ == Head::kLogit ? "2, [batch, 1]"
                : expected == 2       ? "2, [batch, dimension]"
                                      : "3, [batch, tokens, dimension]");
  }
  if (rank == 0) return FINCH_OK;
  const int64_t width = flat ? 1 : shape[rank - 1];
  if (width != static_cast<int64_t>(dimension_) && !(is_static && width < 1)) {
    if (head_ == Head::kLogit) {
      return fail(
          FINCH_DIMENSION,
          "the output \"%s\" of %s gives %lld numbers a pair, expected one logit; export a cross-encoder with one "
          "label.",
          output_.c_str(), model_.c_str(), static_cast<long long>(width));
    }
    return fail(FINCH_DIMENSION,
                "the output \"%s\" of %s has dimension %lld, expected %u; correct the dimension given.",
                output_.c_str(), model_.c_str(), static_cast<long long>(width), dimension_);
  }
  if (is_static) return FINCH_OK;
  if (shape[0] != static_cast<int64_t>(batch) || (rank == 3 && shape[1] != static_cast<int64_t>(length))) {
    return fail(
        FINCH_DEVICE,
        "the output \"%s\" of %s does not follow the input: %lld rows for %zu texts, %zu tokens each; export the model "
        "with dynamic batch and sequence axes.",
        output_.c_str(), model_.c_str(), static_cast<long long>(shape[0]), batch, length);
  }
  return FINCH_OK;
}

finch_status Session::open(const SessionOptions& options, std::unique_ptr<Session>* out) {
  const ort::Runtime* runtime = nullptr;
  if (const finch_status status = check_file(options.model_path, "model"); status != FINCH_OK) return status;
  if (const finch_status status = ort::load(options.runtime_path, &runtime); status != FINCH_OK) return status;
  std::unique_ptr<Session> fresh(new Session(runtime));
  fresh->model_ = options.model_path;
  fresh->output_ = options.output_name;
  fresh->dimension_ = options.dimension;
  fresh->head_ = options.head;
  {
    const ExitGate gate;
    if (!gate.open()) return fail(FINCH_CLOSED, "the process is exiting: no model is opened.");
    finch_status status = fresh->create(options.model_path, options.provider);
    if (status == FINCH_OK) status = fresh->check_inputs();
    if (status == FINCH_OK) status = fresh->check_output();
    if (status != FINCH_OK) return status;
  }
  *out = std::move(fresh);
  return FINCH_OK;
}

Session::~Session() {
  if (session_ == nullptr) return;
  const ExitGate gate;
  // At process exit it is left to the operating system.
  if (gate.open()) runtime_->api->release_session(session_);
}

finch_status Session::run(const int32_t* ids, size_t batch, size_t length, float* out) const {
  const size_t count = batch * length;
  // No padding: texts of one run are equally long, so the mask is all ones; there is one segment.
  std::vector<int64_t> numbers(count * 3, 0);
  std::copy(ids, ids + count, numbers.begin());
  std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(count), count, 1);
  return run(numbers, batch, length, out);
}

finch_status Session::run(std::vector<int64_t>& numbers, size_t batch, size_t length, float* out) const {
  const ort::Api& api = *runtime_->api;
  const size_t count = batch * length;
  ort::RunOptions* options = nullptr;
  if (ort::Status* status = api.create_run_options(&options)) return refused("cannot run", status);
  const Owned<ort::RunOptions> owned_options(options, api.release_run_options);
  const ExitGate gate(&api, options);
  if (!gate.open()) return fail(FINCH_CLOSED, "the process is exiting: no text is taken any more.");

  const std::array<int64_t, 2> shape = {static_cast<int64_t>(batch), static_cast<int64_t>(length)};
  std::array<ort::Value*, 3> values{};
  std::array<const char*, 3> names{};
  ort::Value* output = nullptr;
  ort::Status* status = api.set_run_log_severity(options, ort::kSeverityFatal);
  for (size_t i = 0; i < inputs_.size() && status == nullptr; i++) {
    const auto which = static_cast<size_t>(inputs_[i]);
    names[i] = kInputNames[which];
    status = api.create_tensor_with_data(runtime_->cpu, numbers.data() + which * count, count * sizeof(int64_t),
                                         shape.data(), shape.size(), ort::kInt64, &values[i]);
  }
  const char* const output_name = output_.c_str();
  if (status == nullptr) {
    status = api.run(session_, options, names.data(), values.data(), inputs_.size(), &output_name, 1, &output);
  }
  for (ort::Value* value : values) api.release_value(value);
  const Owned<ort::Value> owned_output(output, api.release_value);
  if (status != nullptr) {
    if (exit_gate_closed()) {
      api.release_status(status);
      return fail(FINCH_CLOSED, "the process is exiting: the text was not done.");
    }
    return refused("failed to run", status);
  }
  ort::TensorInfo* info = nullptr;
  status = api.tensor_info_of_value(output, &info);
  const Owned<ort::TensorInfo> owned_info(info, api.release_tensor_info);
  if (status != nullptr) return refused("cannot describe the outputs of", status);
  if (const finch_status wrong = check_shape(info, false, batch, length); wrong != FINCH_OK) return wrong;
  void* data = nullptr;
  if ((status = api.tensor_data(output, &data)) != nullptr) return refused("cannot read the output of", status);
  const auto* output_data = static_cast<const float*>(data);
  return head_ == Head::kLogit ? logits(output_data, batch, out) : pool(output_data, batch, length, out);
}

finch_status Session::logits(const float* output, size_t batch, float* out) const {
  if (!std::all_of(output, output + batch, [](float logit) { return std::isfinite(logit); })) {
    return fail(FINCH_NOT_FINITE,
                "the model %s gave a logit that is NaN or infinite; the model file is damaged or "
                "unsuitable.",
                model_.c_str());
  }
  std::copy_n(output, batch, out);
  return FINCH_OK;
}

// Pools and normalises in double, so that the order of a sum matters less than a float's last bit.
finch_status Session::pool(const float* output, size_t batch, size_t length, float* out) const {
  const size_t d = dimension_;
  const size_t rows = axes() == 2 ? 1 : length;
  std::vector<float> vectors(batch * d);
  std::vector<double> sum(d);
  for (size_t b = 0; b < batch; b++) {
    const float* row = output + b * rows * d;
    std::copy(row, row + d, sum.begin());
    if (head_ == Head::kMean) {
      for (size_t t = 1; t < rows; t++) {
        for (size_t i = 0; i < d; i++) sum[i] += row[t * d + i];
      }
    }
    double squares = 0;
    for (const double value : sum) squares += value * value;
    if (!std::isfinite(squares)) {
      return fail(FINCH_NOT_FINITE,
                  "the model %s gave a vector with NaN or infinity; the model file is damaged or unsuitable.",
                  model_.c_str());
    }
    if (squares == 0) {
      return fail(FINCH_ZERO_VECTOR, "the model %s gave a vector of zeros, which has no direction.", model_.c_str());
    }
    // The mean's 1 / length cancels out here.
    const double scale = 1 / std::sqrt(squares);
    for (size_t i = 0; i < d; i++) vectors[b * d + i] = static_cast<float>(sum[i] * scale);
  }
  std::copy(vectors.begin(), vectors.end(), out);
  return FINCH_OK;
}

}  // namespace finch
