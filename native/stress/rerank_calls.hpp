// Reranking for the stress program: calls, queued calls with budgets and cancels, and the reranker closed amid them.
// Every score must have the bits it had at the start, or be NaN where a budget allows it. Needs TOOLFINCH_ONNXRUNTIME,
// the path of libonnxruntime; without it the calls do nothing, and the summary says so.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "shared.hpp"

namespace finch_stress {

class RerankCalls {
 public:
  // `leaving`: exit() has been or is about to be called, and work is refused.
  void begin(const std::atomic<bool>& leaving) {
    leaving_ = &leaving;
    const char* path = std::getenv("TOOLFINCH_ONNXRUNTIME");
    if (path == nullptr || path[0] == 0) return;
    runtime_ = path;
    const char* words[] = {"send", "weather", "music", "flight", "query", "repository", "x9"};
    for (size_t i = 0; i < kDocuments; ++i) {
      documents_[i] = std::to_string(i);
      for (size_t k = 0; k < i % 30; ++k) documents_[i] += std::string(" ") + words[(i * 7 + k) % 7];
    }
    close();
    const auto reranker = handle_.get();
    std::vector<finch_string> all;
    for (const std::string& document : documents_) all.push_back(text(document));
    for (size_t q = 0; q < kQueries; ++q) {
      MUST(finch_rerank(reranker.get(), text(queries_[q]), all.data(), all.size(), 0, expected_[q].data(), nullptr) ==
           FINCH_OK);
      for (const float logit : expected_[q]) MUST(std::isfinite(logit));
    }
  }

  void score(Random& random, Cancel& cancels) {
    if (runtime_.empty()) return;
    const Call call = draw(random);
    const auto reranker = handle_.get();
    const auto cancel = cancels.get();
    const std::vector<finch_string> list = views(call);
    std::vector<float> logits(list.size());
    const finch_status status = finch_rerank(reranker.get(), text(queries_[call.query]), list.data(), list.size(),
                                             call.budget_us, logits.data(), call.cancellable ? cancel.get() : nullptr);
    check(call, status, "", logits.data(), logits.size());
  }

  void submit(Random& random, Cancel& cancels) {
    if (runtime_.empty()) return;
    if (queued_.load() - answered_.load() > 50) {
      std::this_thread::yield();
      return;
    }
    auto call = std::make_unique<Call>(draw(random));
    const auto reranker = handle_.get();
    const auto cancel = cancels.get();
    const std::vector<finch_string> list = views(*call);
    queued_.fetch_add(1);
    const finch_status status =
        finch_rerank_submit(reranker.get(), text(queries_[call->query]), list.data(), list.size(), call->budget_us,
                            call->cancellable ? cancel.get() : nullptr, answered, call.get());
    if (status != FINCH_OK && leaving_->load()) return;
    MUST(status == FINCH_OK, "status %d", status);
    call.release();
  }

  // Others may be at work with the one before; they hold it.
  void close() {
    if (runtime_.empty()) return;
    const std::string folder = std::string(TOOLFINCH_ROOT) + "/native/test/fixtures/reranker/";
    const std::string vocab = folder + "vocab.txt", model = folder + "model.onnx";
    finch_tokenizer_options words{};
    words.size = sizeof(words);
    words.vocab_path = vocab.c_str();
    words.lowercase = words.strip_accents = words.chinese_characters = 1;
    finch_tokenizer* tokenizer = nullptr;
    MUST(finch_tokenizer_open(&words, &tokenizer) == FINCH_OK);
    finch_reranker_options options{};
    options.size = sizeof(options);
    options.runtime_path = runtime_.c_str();
    options.model_path = model.c_str();
    options.tokenizer = tokenizer;
    options.output_name = "logits";
    options.max_tokens = 64;
    finch_reranker* next = nullptr;
    const finch_status status = finch_reranker_open(&options, &next);
    finch_tokenizer_release(tokenizer);
    if (status != FINCH_OK && leaving_->load()) return;
    MUST(status == FINCH_OK, "status %d", status);
    handle_.put(next);
  }

  // Until every queued call has its answer.
  void finish() const {
    while (answered_.load() < queued_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::string summary() const {
    if (runtime_.empty()) return "no reranking: TOOLFINCH_ONNXRUNTIME is not set";
    return std::to_string(queued_.load()) + " queued reranks, " + std::to_string(scored_.load()) + " pairs scored, " +
           std::to_string(late_.load()) + " over budget, " + std::to_string(aborted_.load()) + " calls aborted";
  }

 private:
  static constexpr size_t kDocuments = 40;
  static constexpr size_t kQueries = 3;

  struct Call {
    RerankCalls* calls;
    size_t query, first, count;
    uint64_t budget_us;
    bool cancellable;
    std::atomic<int> answers{0};
    Call(RerankCalls* of, size_t q, size_t from, size_t n, uint64_t budget, bool can)
        : calls(of), query(q), first(from), count(n), budget_us(budget), cancellable(can) {}
    Call(Call&& other) noexcept
        : Call(other.calls, other.query, other.first, other.count, other.budget_us, other.cancellable) {}
  };

  Call draw(Random& random) {
    constexpr uint64_t kBudgets[] = {0, 0, 1, 300, 5000};
    const uint32_t query = below(random, kQueries), first = below(random, kDocuments);
    const uint32_t count = below(random, kDocuments + 1);
    const uint64_t budget = kBudgets[below(random, 5)];
    return Call(this, query, first, count, budget, below(random, 2) == 0);
  }

  std::vector<finch_string> views(const Call& call) const {
    std::vector<finch_string> list;
    for (size_t i = 0; i < call.count; ++i) list.push_back(text(documents_[(call.first + i) % kDocuments]));
    return list;
  }

  void check(const Call& call, finch_status status, const char* message, const float* logits, size_t count) {
    if (status != FINCH_OK) {
      if (leaving_->load()) return;
      MUST(status == FINCH_ABORTED && call.cancellable, "status %d: %s", status, message);
      aborted_.fetch_add(1);
      return;
    }
    MUST(count == call.count);
    for (size_t i = 0; i < count; ++i) {
      const float expected = expected_[call.query][(call.first + i) % kDocuments];
      const bool late = std::isnan(logits[i]);
      MUST(late ? call.budget_us > 0 : std::memcmp(&logits[i], &expected, sizeof(float)) == 0, "pair %zu: %g, not %g",
           i, static_cast<double>(logits[i]), static_cast<double>(expected));
      (late ? late_ : scored_).fetch_add(1, std::memory_order_relaxed);
    }
  }

  static void answered(void* user, finch_status status, const char* message, const float* logits, size_t count) {
    auto* call = static_cast<Call*>(user);
    MUST(call->answers.fetch_add(1) == 0, "answered twice");
    RerankCalls* calls = call->calls;
    calls->check(*call, status, message, logits, count);
    delete call;
    calls->answered_.fetch_add(1);
  }

  const std::atomic<bool>* leaving_ = nullptr;
  std::string runtime_;
  const std::array<std::string, kQueries> queries_{"play music", "send message", "find flight"};
  std::array<std::string, kDocuments> documents_;
  std::array<std::array<float, kDocuments>, kQueries> expected_{};
  Shared<finch_reranker, finch_reranker_retain, finch_reranker_release> handle_;
  std::atomic<uint64_t> queued_{0}, answered_{0}, scored_{0}, late_{0}, aborted_{0};
};

}  // namespace finch_stress
