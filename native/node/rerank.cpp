// Rerankers, and the pairs they read.
#include <cmath>
#include <vector>

#include "entry.hpp"
#include "fault.hpp"
#include "model_calls.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

constexpr uint32_t kMostTokens = 65536;

finch_truncation truncation_of(const Options& options) {
  return options.choice(
      "truncation",
      {{"longest-first", FINCH_TRUNCATE_LONGEST_FIRST}, {"document-first", FINCH_TRUNCATE_DOCUMENT_FIRST}}, true);
}

Napi::Value tokenize_pair(const Arguments& arguments) {
  const Napi::Env env = arguments.env();
  const std::shared_ptr<finch_tokenizer> tokenizer = arguments.handle<finch_tokenizer>(0, "tokenizer").object;
  const std::string query = read_string(env, arguments[1], "query", Surrogates::replace);
  const std::string document = read_string(env, arguments[2], "document", Surrogates::replace);
  const Options options(env, arguments[3], "options", false);
  const uint32_t max_tokens = options.whole("maxTokens", 5, kMostTokens);
  std::vector<int32_t> ids(max_tokens);
  size_t count = 0, document_at = 0;
  check(finch_tokenize_pair(tokenizer.get(), {query.data(), query.size()}, {document.data(), document.size()},
                            max_tokens, truncation_of(options), ids.data(), &count, &document_at));
  Napi::Object pair = Napi::Object::New(env);
  pair.Set("ids", Napi::Value(env, copy_array<int32_t>(env, {ids.data(), count})));
  pair.Set("documentAt", Napi::Number::New(env, static_cast<double>(document_at)));
  return pair;
}

class RerankerOpenCall final : public ModelOpenCall<finch_reranker_options, finch_reranker, finch_reranker_open> {
 public:
  explicit RerankerOpenCall(const Options& given) : ModelOpenCall(given) {
    options().max_tokens = given.whole_or("maxTokens", 5, 0xffffffff, 0);
    options().truncation = truncation_of(given);
    options().provider = given.choice("provider",
                                      {{"cpu", FINCH_PROVIDER_CPU},
                                       {"cuda", FINCH_PROVIDER_CUDA},
                                       {"coreml", FINCH_PROVIDER_COREML},
                                       {"auto", FINCH_PROVIDER_AUTO}},
                                      true);
  }

 private:
  Napi::Value result(Napi::Env env) override { return make_handle(env, take()); }
};

Napi::Value reranker_open(const Arguments& arguments) {
  const Options options(arguments.env(), arguments[0], "options", false);
  return RerankerOpenCall::open(arguments, options, std::make_unique<RerankerOpenCall>(options));
}

Napi::Value reranker_close(const Arguments& arguments) {
  arguments.close<finch_reranker>(0, "reranker");
  return arguments.env().Undefined();
}

Napi::Value reranker_runtime(const Arguments& arguments) {
  const std::shared_ptr<finch_reranker> reranker = arguments.handle<finch_reranker>(0, "reranker").object;
  return Napi::String::New(arguments.env(), finch_reranker_runtime(reranker.get()));
}

Napi::Value reranker_provider(const Arguments& arguments) {
  const std::shared_ptr<finch_reranker> reranker = arguments.handle<finch_reranker>(0, "reranker").object;
  const finch_provider provider = finch_reranker_provider(reranker.get());
  Napi::Object taken = Napi::Object::New(arguments.env());
  taken.Set("provider", provider == FINCH_PROVIDER_CUDA     ? "cuda"
                        : provider == FINCH_PROVIDER_COREML ? "coreml"
                                                            : "cpu");
  taken.Set("reason", finch_reranker_provider_reason(reranker.get()));
  return taken;
}

class RerankCall final : public QueuedCall {
 public:
  RerankCall(std::shared_ptr<finch_reranker> reranker, std::string query, Strings documents, uint64_t budget_us,
             std::shared_ptr<finch_cancel> cancel)
      : QueuedCall(std::move(cancel), 1,
                   "Out of memory; nothing was changed. Free some or score fewer pairs at a time."),
        reranker_(std::move(reranker)),
        query_(std::move(query)),
        documents_(std::move(documents)),
        budget_us_(budget_us) {}

 private:
  finch_status submit() override {
    return finch_rerank_submit(reranker_.get(), {query_.data(), query_.size()}, documents_.data(), documents_.size(),
                               budget_us_, cancel(), on_done, this);
  }

  std::shared_ptr<finch_reranker> reranker_;
  std::string query_;
  Strings documents_;
  uint64_t budget_us_;
};

Napi::Value rerank(const Arguments& arguments) {
  const Napi::Env env = arguments.env();
  std::shared_ptr<finch_reranker> reranker = arguments.handle<finch_reranker>(0, "reranker").object;
  std::string query = read_string(env, arguments[1], "query", Surrogates::replace);
  Strings documents(env, arguments[2], "documents", Surrogates::replace);
  // Microseconds; absent: no limit.
  constexpr uint32_t kLongestBudget = 0xffffffff;
  const uint64_t budget_us = arguments.absent(3) ? 0 : arguments.whole(3, "budget", 1, kLongestBudget);
  return AsyncCall::start(env, std::make_unique<RerankCall>(std::move(reranker), std::move(query), std::move(documents),
                                                            budget_us, arguments.cancel(4)));
}

constexpr Export kExports[] = {
    {"tokenizePair", sync_entry<tokenize_pair>},         {"rerankerOpen", async_entry<reranker_open>},
    {"rerankerClose", sync_entry<reranker_close>},       {"rerankerRuntime", sync_entry<reranker_runtime>},
    {"rerankerProvider", sync_entry<reranker_provider>}, {"rerank", async_entry<rerank>},
};

}  // namespace

std::span<const Export> rerank_exports() { return kExports; }

}  // namespace finch::node
