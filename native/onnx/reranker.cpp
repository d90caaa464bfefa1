// The C ABI of rerankers: options, the choice of a provider, references, scoring on the calling thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/sized.hpp"
#include "open_model.hpp"
#include "provider.hpp"
#include "session.hpp"
#include "text_queue.hpp"
#include "wordpiece.hpp"

namespace {

// On a device pairs are padded to a multiple of this, so that many share a run; a pair's padding depends on nothing
// else.
constexpr size_t kDeviceStep = 32;
constexpr uint32_t kDeviceBatch = 32, kDeviceLanes = 2;

using Clock = finch::TextQueue::Clock;

// Budgets beyond this are no limit; adding one to a time cannot overflow.
constexpr uint64_t kLongestBudget = 1'000'000ull * 3600 * 24 * 365;

Clock::time_point deadline_of(uint64_t budget_us) {
  if (budget_us == 0 || budget_us > kLongestBudget) return finch::TextQueue::kNever;
  return Clock::now() + std::chrono::microseconds(budget_us);
}

}  // namespace

struct finch_reranker final : finch::TextModel {
  finch_reranker(const finch_reranker_options& options, finch_provider taken, std::unique_ptr<finch::Session> opened)
      : tokenizer(options.tokenizer),
        session(std::move(opened)),
        provider(taken),
        truncation_(options.truncation),
        max_tokens_(options.max_tokens),
        batch_size_(options.batch_size != 0 ? options.batch_size
                    : on_device()           ? kDeviceBatch
                                            : 1),
        queue(*this) {
    finch_tokenizer_retain(tokenizer);
  }
  ~finch_reranker() { finch_tokenizer_release(tokenizer); }

  size_t tokenize(std::string_view query, std::string_view document, int32_t* ids) const override {
    size_t document_at = 0;
    size_t count = tokenizer->words.tokenize_pair(query, document, max_tokens_, truncation_, ids, &document_at);
    if (on_device()) {
      const size_t padded = std::min<size_t>((count + kDeviceStep - 1) / kDeviceStep * kDeviceStep, max_tokens_);
      std::fill(ids + count, ids + padded, tokenizer->words.pad());
      count = std::max(count, padded);
    }
    return count;
  }

  // Text never yields a special token's id: the first end closes the query, the second one the document, and what
  // follows is padding.
  finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const override {
    const size_t count = batch * length;
    std::vector<int64_t> numbers(count * 3, 0);
    std::copy_n(ids, count, numbers.begin());
    int64_t* mask = numbers.data() + count;
    int64_t* segments = mask + count;
    const int32_t end = tokenizer->words.end();
    for (size_t row = 0; row < count; row += length) {
      size_t ends = 0;
      for (size_t i = row; i < row + length && ends < 2; i++) {
        mask[i] = 1;
        segments[i] = static_cast<int64_t>(ends);
        if (ids[i] == end) ends++;
      }
    }
    return session->run(numbers, batch, length, out);
  }
  uint32_t dimension() const noexcept override { return 1; }
  uint32_t max_tokens() const noexcept override { return max_tokens_; }
  uint32_t batch_size() const noexcept override { return batch_size_; }
  uint32_t lanes() const noexcept override {
    return on_device() ? std::min(kDeviceLanes, finch_pool_threads()) : finch_pool_threads();
  }
  void retain() noexcept override { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept override {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  bool on_device() const noexcept { return provider != FINCH_PROVIDER_CPU; }
  finch_status score(finch_string query, const finch_string* documents, size_t count, Clock::time_point deadline,
                     float* logits, const finch_cancel* cancel) const;

  std::atomic<uint32_t> references{1};
  finch_tokenizer* const tokenizer;
  const std::unique_ptr<finch::Session> session;
  const finch_provider provider;
  std::string reason = "asked for";
  const finch_truncation truncation_;
  const uint32_t max_tokens_, batch_size_;
  finch::TextQueue queue;
};

finch_status finch_reranker::score(finch_string query, const finch_string* documents, size_t count,
                                   Clock::time_point deadline, float* logits, const finch_cancel* cancel) const {
  std::vector<float> scores(count, std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> rows, ids(max_tokens_);
  std::vector<float> part(batch_size_);
  const auto tokenized = [&](size_t i) {
    return tokenize({query.data, query.size}, {documents[i].data, documents[i].size}, ids.data());
  };
  size_t length = count > 0 ? tokenized(0) : 0;
  for (size_t at = 0, next = 0; at < count; at = next) {
    if (finch::cancelled(cancel)) return finch::fail(FINCH_ABORTED, "cancelled after %zu of %zu pairs.", at, count);
    if (Clock::now() >= deadline) break;
    // Neighbours of equal length share a run: the order stays the documents'.
    const size_t run_length = length;
    rows.clear();
    for (next = at; next < count && next - at < batch_size_ && length == run_length;) {
      rows.insert(rows.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
      if (++next < count) length = tokenized(next);
    }
    if (const finch_status status = run(rows.data(), next - at, run_length, part.data()); status != FINCH_OK) {
      return status;
    }
    std::copy_n(part.begin(), next - at, scores.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::copy(scores.begin(), scores.end(), logits);
  return FINCH_OK;
}

namespace finch {
namespace {

finch_status check_pairs(const finch_reranker* reranker, finch_string query, const finch_string* documents,
                         size_t count) {
  if (reranker == nullptr) return fail(FINCH_INVALID_ARGUMENT, "reranker is NULL; open one with finch_reranker_open.");
  if (query.data == nullptr && query.size != 0) {
    return fail(FINCH_INVALID_ARGUMENT, "query is NULL with size %zu; give its bytes, or size 0.", query.size);
  }
  return check_strings("document", documents, count);
}

finch_status check_options(const finch_reranker_options* given, finch_reranker_options* options) {
  if (!read_sized(given, sizeof(finch_reranker_options), options)) {
    return fail(FINCH_INVALID_ARGUMENT, "options->size is %zu; set it to sizeof(finch_reranker_options), %zu.",
                given->size, sizeof(finch_reranker_options));
  }
  const finch_status files =
      check_model_files(options->runtime_path, options->model_path, options->output_name, options->tokenizer);
  if (files != FINCH_OK) return files;
  if (const finch_status status = check_max_tokens(5, &options->max_tokens); status != FINCH_OK) return status;
  if (const finch_status status = check_truncation(options->truncation); status != FINCH_OK) return status;
  if (options->provider < FINCH_PROVIDER_CPU || options->provider > FINCH_PROVIDER_AUTO) {
    return fail(FINCH_INVALID_ARGUMENT, "provider is %d; expected 0 (cpu), 1 (cuda), 2 (coreml) or 3 (auto).",
                options->provider);
  }
  return check_batch_size(options->batch_size);
}

// A query and a document, each closed by its end.
void write_trial(const finch_tokenizer& tokenizer, int32_t* ids, size_t length) {
  std::fill_n(ids, length, tokenizer.words.last_id());
  ids[length / 2] = ids[length - 1] = tokenizer.words.end();
}

finch_status open_on(const finch_reranker_options& options, finch_provider provider,
                     std::unique_ptr<finch_reranker>* out) {
  const SessionOptions wanted = {
      options.runtime_path, options.model_path, options.output_name, 1, Head::kLogit, provider};
  std::unique_ptr<Session> session;
  if (const finch_status status = Session::open(wanted, &session); status != FINCH_OK) return status;
  auto fresh = std::make_unique<finch_reranker>(options, provider, std::move(session));
  const finch_status tried = try_model(*fresh, *options.tokenizer, "pairs", 5, write_trial);
  if (tried != FINCH_OK) return tried;
  *out = std::move(fresh);
  return FINCH_OK;
}

// The first provider that runs the model; what was wrong with those before it becomes the reason.
finch_status open_anywhere(const finch_reranker_options& options, std::unique_ptr<finch_reranker>* out) {
  std::string reason;
  for (const finch_provider provider : {FINCH_PROVIDER_CUDA, FINCH_PROVIDER_COREML, FINCH_PROVIDER_CPU}) {
    const finch_status status = open_on(options, provider, out);
    if (status == FINCH_OK) {
      (*out)->reason = reason.empty() ? "the first that was tried" : reason;
      return FINCH_OK;
    }
    // Other failures than the device's (files, the output's shape) would meet every provider.
    if (status != FINCH_DEVICE || provider == FINCH_PROVIDER_CPU) return status;
    if (!reason.empty()) reason += ' ';
    reason += std::string("not ") + provider_name(provider) + ": " + finch_last_error();
  }
  return FINCH_INTERNAL;
}

}  // namespace
}  // namespace finch

extern "C" {

finch_status finch_reranker_open(const finch_reranker_options* options, finch_reranker** out) {
  return finch::guarded([&]() -> finch_status {
    if (options == nullptr || out == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "options or out is NULL; both are required.");
    }
    finch_reranker_options known;
    if (const finch_status status = finch::check_options(options, &known); status != FINCH_OK) return status;
    // Makes the pool, whose exit hook then comes after the gate's: runs are told to stop before the pool waits for its
    // threads.
    finch_pool_threads();
    std::unique_ptr<finch_reranker> fresh;
    const finch_status status = known.provider == FINCH_PROVIDER_AUTO ? finch::open_anywhere(known, &fresh)
                                                                      : finch::open_on(known, known.provider, &fresh);
    if (status == FINCH_OK) *out = fresh.release();
    return status;
  });
}

void finch_reranker_retain(finch_reranker* reranker) {
  if (reranker != nullptr) reranker->retain();
}

void finch_reranker_release(finch_reranker* reranker) {
  if (reranker != nullptr) reranker->release();
}

const char* finch_reranker_runtime(const finch_reranker* reranker) {
  return reranker == nullptr ? "" : reranker->session->runtime_version().c_str();
}

finch_provider finch_reranker_provider(const finch_reranker* reranker) {
  return reranker == nullptr ? FINCH_PROVIDER_CPU : reranker->provider;
}

const char* finch_reranker_provider_reason(const finch_reranker* reranker) {
  return reranker == nullptr ? "" : reranker->reason.c_str();
}

finch_status finch_rerank(finch_reranker* reranker, finch_string query, const finch_string* documents, size_t count,
                          uint64_t budget_us, float* logits, const finch_cancel* cancel) {
  return finch::guarded([&]() -> finch_status {
    const Clock::time_point deadline = deadline_of(budget_us);
    if (const finch_status status = finch::check_pairs(reranker, query, documents, count); status != FINCH_OK) {
      return status;
    }
    if (logits == nullptr && count != 0) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "logits is NULL; it takes the scores.");
    }
    // Released by another thread in the meantime, the reranker still lives until this call is over.
    reranker->retain();
    const std::unique_ptr<finch_reranker, void (*)(finch_reranker*)> held(reranker, finch_reranker_release);
    return reranker->score(query, documents, count, deadline, logits, cancel);
  });
}

finch_status finch_rerank_submit(finch_reranker* reranker, finch_string query, const finch_string* documents,
                                 size_t count, uint64_t budget_us, finch_cancel* cancel, finch_rerank_done done,
                                 void* user) {
  return finch::guarded([&]() -> finch_status {
    finch::TextQueue::Order order;
    order.deadline = deadline_of(budget_us);
    if (const finch_status status = finch::check_pairs(reranker, query, documents, count); status != FINCH_OK) {
      return status;
    }
    if (done == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "done is NULL; it takes the scores.");
    order.query = query;
    order.texts = documents;
    order.count = count;
    order.cancel = cancel;
    order.done = done;
    order.user = user;
    return reranker->queue.submit(order);
  });
}

}  // extern "C"
