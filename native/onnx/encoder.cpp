// The C ABI of encoders: options, references, encoding on the calling thread.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/pool.hpp"
#include "core/sized.hpp"
#include "exit_gate.hpp"
#include "session.hpp"
#include "text_queue.hpp"
#include "wordpiece.hpp"

namespace {

constexpr uint32_t kMaxTokens = 65536;
// Opening tries a text of max_tokens, at most this long: attention's cost is quadratic.
constexpr uint32_t kLongestTrial = 512;

}  // namespace

struct finch_encoder final : finch::TextModel {
  finch_encoder(const finch_encoder_options& options, std::unique_ptr<finch::Session> opened)
      : tokenizer(options.tokenizer),
        session(std::move(opened)),
        dimension_(options.dimension),
        max_tokens_(options.max_tokens),
        batch_size_(options.batch_size),
        queue(*this) {
    finch_tokenizer_retain(tokenizer);
  }
  ~finch_encoder() { finch_tokenizer_release(tokenizer); }

  size_t tokenize(std::string_view, std::string_view text, int32_t* ids) const override {
    return tokenizer->words.tokenize(text.data(), text.size(), max_tokens_, ids);
  }
  finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const override {
    return session->run(ids, batch, length, out);
  }
  uint32_t dimension() const noexcept override { return dimension_; }
  uint32_t max_tokens() const noexcept override { return max_tokens_; }
  uint32_t batch_size() const noexcept override { return batch_size_; }
  void retain() noexcept override { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept override {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  finch_status encode(const finch_string* texts, size_t count, float* out, const finch_cancel* cancel) const;

  std::atomic<uint32_t> references{1};
  finch_tokenizer* const tokenizer;
  const std::unique_ptr<finch::Session> session;
  const uint32_t dimension_, max_tokens_, batch_size_;
  finch::TextQueue queue;
};

namespace finch {
namespace {

finch_status check_texts(const finch_encoder* encoder, const finch_string* texts, size_t count) {
  if (encoder == nullptr) return fail(FINCH_INVALID_ARGUMENT, "encoder is NULL; open one with finch_encoder_open.");
  if (texts == nullptr && count != 0) return fail(FINCH_INVALID_ARGUMENT, "texts is NULL with count %zu.", count);
  for (size_t i = 0; i < count; i++) {
    if (texts[i].data == nullptr && texts[i].size != 0) {
      return fail(FINCH_INVALID_ARGUMENT, "text %zu is NULL with size %zu; give its bytes, or size 0.", i,
                  texts[i].size);
    }
  }
  return FINCH_OK;
}

finch_status check_options(const finch_encoder_options* given, finch_encoder_options* options) {
  if (!read_sized(given, sizeof(finch_encoder_options), options)) {
    return fail(FINCH_INVALID_ARGUMENT, "options->size is %zu; set it to sizeof(finch_encoder_options), %zu.",
                given->size, sizeof(finch_encoder_options));
  }
  const std::pair<const char*, const char*> required[] = {{options->runtime_path, "runtime_path (libonnxruntime)"},
                                                          {options->model_path, "model_path (the .onnx file)"},
                                                          {options->output_name, "output_name (of the model)"}};
  for (const auto& [value, name] : required) {
    if (value == nullptr || value[0] == 0) return fail(FINCH_INVALID_ARGUMENT, "%s is empty; it is required.", name);
  }
  if (options->tokenizer == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "tokenizer is NULL; open one with finch_tokenizer_open.");
  }
  if (options->dimension < 1 || options->dimension > FINCH_MAX_DIMENSION) {
    return fail(FINCH_INVALID_ARGUMENT, "dimension is %u; expected 1 to %u.", options->dimension, FINCH_MAX_DIMENSION);
  }
  if (options->max_tokens == 0) options->max_tokens = 256;
  if (options->max_tokens < 3 || options->max_tokens > kMaxTokens) {
    return fail(FINCH_INVALID_ARGUMENT, "max_tokens is %u; expected 3 to %u.", options->max_tokens, kMaxTokens);
  }
  if (options->batch_size == 0) options->batch_size = 1;
  if (options->batch_size > kMaxBatch) {
    return fail(FINCH_INVALID_ARGUMENT, "batch_size is %u; expected 1 to %u.", options->batch_size, kMaxBatch);
  }
  if (options->pooling < FINCH_POOL_NONE || options->pooling > FINCH_POOL_CLS) {
    return fail(FINCH_INVALID_ARGUMENT, "pooling is %d; expected 0 (none), 1 (mean) or 2 (cls).", options->pooling);
  }
  return FINCH_OK;
}

Head head_of(finch_pooling pooling) noexcept {
  return pooling == FINCH_POOL_MEAN ? Head::kMean : pooling == FINCH_POOL_CLS ? Head::kCls : Head::kVector;
}

// Runs the shortest and a long text, one alone and in a batch, with the vocabulary's last id: a model that cannot take
// what this encoder may send is found out now, not by the first user.
finch_status try_out(const finch_encoder& encoder) {
  const uint32_t longest = std::min(encoder.max_tokens_, kLongestTrial);
  const size_t batch = std::min<size_t>(2, encoder.batch_size_);
  for (const size_t length : {size_t{3}, size_t{longest}}) {
    std::vector<int32_t> ids(batch * length, encoder.tokenizer->words.last_id());
    std::vector<float> out(batch * encoder.dimension_);
    if (const finch_status status = encoder.run(ids.data(), batch, length, out.data()); status != FINCH_OK) {
      if (status != FINCH_DEVICE) return status;
      const std::string said = finch_last_error();
      return fail(status,
                  "a trial with %zu texts of %zu tokens and token id %d failed; max_tokens, batch_size or the "
                  "vocabulary may not "
                  "be this model's. %s",
                  batch, length, encoder.tokenizer->words.last_id(), said.c_str());
    }
    // The first run makes onnxruntime construct what it had put off.
    pool_register_exit_hook();
    exit_gate_register();
  }
  return FINCH_OK;
}

}  // namespace
}  // namespace finch

finch_status finch_encoder::encode(const finch_string* texts, size_t count, float* out,
                                   const finch_cancel* cancel) const {
  const size_t d = dimension_;
  std::vector<int32_t> ids, one(max_tokens_);
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < count; i++) {
    const size_t length = tokenize({}, {texts[i].data, texts[i].size}, one.data());
    ids.insert(ids.end(), one.data(), one.data() + length);
    starts.push_back(ids.size());
  }
  const auto length_of = [&starts](size_t i) { return starts[i + 1] - starts[i]; };
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (batch_size_ > 1) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return length_of(a) < length_of(b); });
  }
  std::vector<float> vectors(count * d), part(batch_size_ * d);
  std::vector<int32_t> rows;
  for (size_t at = 0, next = 0; at < count; at = next) {
    if (finch::cancelled(cancel)) return finch::fail(FINCH_ABORTED, "cancelled after %zu of %zu texts.", at, count);
    const size_t length = length_of(order[at]);
    rows.clear();
    for (next = at; next < count && next - at < batch_size_ && length_of(order[next]) == length; next++) {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(starts[order[next]]);
      rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(length));
    }
    if (const finch_status status = run(rows.data(), next - at, length, part.data()); status != FINCH_OK) return status;
    for (size_t i = at; i < next; i++) std::copy_n(part.data() + (i - at) * d, d, vectors.data() + order[i] * d);
  }
  std::copy(vectors.begin(), vectors.end(), out);
  return FINCH_OK;
}

extern "C" {

finch_status finch_encoder_open(const finch_encoder_options* options, finch_encoder** out) {
  return finch::guarded([&]() -> finch_status {
    if (options == nullptr || out == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "options or out is NULL; both are required.");
    }
    finch_encoder_options known;
    if (const finch_status status = finch::check_options(options, &known); status != FINCH_OK) return status;
    // Makes the pool, whose exit hook then comes after the gate's: runs are told to stop before the pool waits for its
    // threads.
    finch_pool_threads();
    std::unique_ptr<finch::Session> session;
    const finch::SessionOptions wanted = {
        known.runtime_path, known.model_path, known.output_name, known.dimension, finch::head_of(known.pooling),
        FINCH_PROVIDER_CPU};
    if (const finch_status status = finch::Session::open(wanted, &session); status != FINCH_OK) return status;
    auto fresh = std::make_unique<finch_encoder>(known, std::move(session));
    if (const finch_status status = finch::try_out(*fresh); status != FINCH_OK) return status;
    *out = fresh.release();
    return FINCH_OK;
  });
}

void finch_encoder_retain(finch_encoder* encoder) {
  if (encoder != nullptr) encoder->retain();
}

void finch_encoder_release(finch_encoder* encoder) {
  if (encoder != nullptr) encoder->release();
}

const char* finch_encoder_runtime(const finch_encoder* encoder) {
  return encoder == nullptr ? "" : encoder->session->runtime_version().c_str();
}

finch_status finch_encode(finch_encoder* encoder, const finch_string* texts, size_t count, float* out,
                          const finch_cancel* cancel) {
  return finch::guarded([&]() -> finch_status {
    if (const finch_status status = finch::check_texts(encoder, texts, count); status != FINCH_OK) return status;
    if (out == nullptr && count != 0) return finch::fail(FINCH_INVALID_ARGUMENT, "out is NULL; it takes the vectors.");
    // Released by another thread in the meantime, the encoder still lives until this call is over.
    encoder->retain();
    const std::unique_ptr<finch_encoder, void (*)(finch_encoder*)> held(encoder, finch_encoder_release);
    return encoder->encode(texts, count, out, cancel);
  });
}

finch_status finch_encode_submit(finch_encoder* encoder, const finch_string* texts, size_t count, finch_cancel* cancel,
                                 finch_encode_done done, void* user) {
  return finch::guarded([&]() -> finch_status {
    if (const finch_status status = finch::check_texts(encoder, texts, count); status != FINCH_OK) return status;
    if (done == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "done is NULL; it takes the vectors.");
    finch::TextQueue::Order order;
    order.texts = texts;
    order.count = count;
    order.cancel = cancel;
    order.done = done;
    order.user = user;
    return encoder->queue.submit(order);
  });
}

}  // extern "C"
