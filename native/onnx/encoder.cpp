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
#include "core/sized.hpp"
#include "open_model.hpp"
#include "session.hpp"
#include "text_queue.hpp"
#include "wordpiece.hpp"

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
  return check_strings("text", texts, count);
}

finch_status check_options(const finch_encoder_options* given, finch_encoder_options* options) {
  if (!read_sized(given, sizeof(finch_encoder_options), options)) {
    return fail(FINCH_INVALID_ARGUMENT, "options->size is %zu; set it to sizeof(finch_encoder_options), %zu.",
                given->size, sizeof(finch_encoder_options));
  }
  const finch_status files =
      check_model_files(options->runtime_path, options->model_path, options->output_name, options->tokenizer);
  if (files != FINCH_OK) return files;
  if (options->dimension < 1 || options->dimension > FINCH_MAX_DIMENSION) {
    return fail(FINCH_INVALID_ARGUMENT, "dimension is %u; expected 1 to %u.", options->dimension, FINCH_MAX_DIMENSION);
  }
  if (const finch_status status = check_max_tokens(3, &options->max_tokens); status != FINCH_OK) return status;
  if (options->batch_size == 0) options->batch_size = 1;
  if (const finch_status status = check_batch_size(options->batch_size); status != FINCH_OK) return status;
  if (options->pooling < FINCH_POOL_NONE || options->pooling > FINCH_POOL_CLS) {
    return fail(FINCH_INVALID_ARGUMENT, "pooling is %d; expected 0 (none), 1 (mean) or 2 (cls).", options->pooling);
  }
  return FINCH_OK;
}

Head head_of(finch_pooling pooling) noexcept {
  return pooling == FINCH_POOL_MEAN ? Head::kMean : pooling == FINCH_POOL_CLS ? Head::kCls : Head::kVector;
}

void write_trial(const finch_tokenizer& tokenizer, int32_t* ids, size_t length) {
  std::fill_n(ids, length, tokenizer.words.last_id());
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
    if (const finch_status status = finch::try_model(*fresh, *known.tokenizer, "texts", 3, finch::write_trial);
        status != FINCH_OK)
      return status;
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
