#include "open_model.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "exit_gate.hpp"
#include "wordpiece.hpp"

namespace finch {
namespace {

constexpr uint32_t kMaxTokens = 65536;
// Opening tries a text of max_tokens, at most this long: attention's cost is quadratic.
constexpr uint32_t kLongestTrial = 512;

}  // namespace

finch_status check_model_files(const char* runtime_path, const char* model_path, const char* output_name,
                               const finch_tokenizer* tokenizer) {
  const std::pair<const char*, const char*> required[] = {{runtime_path, "runtime_path (libonnxruntime)"},
                                                          {model_path, "model_path (the .onnx file)"},
                                                          {output_name, "output_name (of the model)"}};
  for (const auto& [value, name] : required) {
    if (value == nullptr || value[0] == 0) return fail(FINCH_INVALID_ARGUMENT, "%s is empty; it is required.", name);
  }
  if (tokenizer == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "tokenizer is NULL; open one with finch_tokenizer_open.");
  }
  return FINCH_OK;
}

finch_status check_max_tokens(uint32_t least, uint32_t* max_tokens) {
  if (*max_tokens == 0) *max_tokens = 256;
  if (*max_tokens >= least && *max_tokens <= kMaxTokens) return FINCH_OK;
  return fail(FINCH_INVALID_ARGUMENT, "max_tokens is %u; expected %u to %u.", *max_tokens, least, kMaxTokens);
}

finch_status check_batch_size(uint32_t batch_size) {
  if (batch_size <= kMaxBatch) return FINCH_OK;
  return fail(FINCH_INVALID_ARGUMENT, "batch_size is %u; expected 1 to %u.", batch_size, kMaxBatch);
}

finch_status check_strings(const char* what, const finch_string* strings, size_t count) {
  if (strings == nullptr && count != 0) {
    return fail(FINCH_INVALID_ARGUMENT, "%ss is NULL with count %zu.", what, count);
  }
  for (size_t i = 0; i < count; i++) {
    if (strings[i].data == nullptr && strings[i].size != 0) {
      return fail(FINCH_INVALID_ARGUMENT, "%s %zu is NULL with size %zu; give its bytes, or size 0.", what, i,
                  strings[i].size);
    }
  }
  return FINCH_OK;
}

finch_status try_model(const TextModel& model, const finch_tokenizer& tokenizer, const char* what, size_t shortest,
                       TrialIds trial) {
  const size_t longest = std::min(model.max_tokens(), kLongestTrial);
  const size_t batch = std::min<size_t>(2, model.batch_size());
  for (const size_t length : {shortest, longest}) {
    std::vector<int32_t> ids(batch * length);
    for (size_t b = 0; b < batch; b++) trial(tokenizer, ids.data() + b * length, length);
    std::vector<float> out(batch * model.dimension());
    if (const finch_status status = model.run(ids.data(), batch, length, out.data()); status != FINCH_OK) {
      if (status != FINCH_DEVICE) return status;
      const std::string said = finch_last_error();
      return fail(status,
                  "a trial with %zu %s of %zu tokens and token id %d failed; max_tokens, batch_size or the vocabulary "
                  "may not be this model's. %s",
                  batch, what, length, tokenizer.words.last_id(), said.c_str());
    }
    // The first run makes onnxruntime construct what it had put off.
    pool_register_exit_hook();
    exit_gate_register();
  }
  return FINCH_OK;
}

}  // namespace finch
