// Cross-encoders over onnxruntime: logits against a float64 reference, order and company, budgets, cancellation,
// providers, refusals. TOOLFINCH_ONNXRUNTIME is the library's path; without it only what needs no library is tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "answer.hpp"
#include "encoder_fixture.hpp"
#include "toolfinch.h"

namespace {

using namespace finch_test;
using Json = nlohmann::json;

const std::string kFolder = kFixtures + "reranker/";

struct PairSettings {
  std::string runtime = runtime_path() != nullptr ? runtime_path() : "/no/such/library";
  std::string model = kFolder + "model.onnx", vocab = kFolder + "vocab.txt", output = "logits";
  uint32_t max_tokens = 64, batch_size = 0;
  finch_truncation truncation = FINCH_TRUNCATE_LONGEST_FIRST;
  finch_provider provider = FINCH_PROVIDER_CPU;

  finch_tokenizer* tokenizer() const {
    finch_tokenizer_options words{};
    words.size = sizeof(words);
    words.vocab_path = vocab.c_str();
    words.lowercase = words.strip_accents = words.chinese_characters = 1;
    finch_tokenizer* tokenizer = nullptr;
    EXPECT_EQ(finch_tokenizer_open(&words, &tokenizer), FINCH_OK) << finch_last_error();
    return tokenizer;
  }

  finch_status open(finch_reranker** out) const {
    finch_tokenizer* words = tokenizer();
    finch_reranker_options options{};
    options.size = sizeof(options);
    options.runtime_path = runtime.c_str();
    options.model_path = model.c_str();
    options.tokenizer = words;
    options.output_name = output.c_str();
    options.max_tokens = max_tokens;
    options.batch_size = batch_size;
    options.truncation = truncation;
    options.provider = provider;
    const finch_status status = finch_reranker_open(&options, out);
    finch_tokenizer_release(words);
    return status;
  }

  // Opening must fail and leave the output alone.
  finch_status refused() const {
    auto* untouched = reinterpret_cast<finch_reranker*>(0x10);
    const finch_status status = open(&untouched);
    EXPECT_EQ(untouched, reinterpret_cast<finch_reranker*>(0x10));
    return status;
  }
};

class Reranker {
 public:
  explicit Reranker(const PairSettings& settings) {
    EXPECT_EQ(settings.open(&handle_), FINCH_OK) << finch_last_error();
  }
  ~Reranker() { finch_reranker_release(handle_); }
  Reranker(const Reranker&) = delete;
  Reranker& operator=(const Reranker&) = delete;

  std::vector<float> operator()(const std::string& query, const std::vector<std::string>& documents,
                                uint64_t budget_us = 0) const {
    const std::vector<finch_string> list = views(documents);
    std::vector<float> logits(documents.size());
    EXPECT_EQ(finch_rerank(handle_, {query.data(), query.size()}, list.data(), list.size(), budget_us, logits.data(),
                           nullptr),
              FINCH_OK)
        << finch_last_error();
    return logits;
  }
  finch_reranker* get() const { return handle_; }

 private:
  finch_reranker* handle_ = nullptr;
};

void submit(const Reranker& reranker, const std::string& query, const std::vector<std::string>& documents,
            Answer& answer, uint64_t budget_us = 0, finch_cancel* cancel = nullptr) {
  const std::vector<finch_string> list = views(documents);
  const finch_status status = finch_rerank_submit(reranker.get(), {query.data(), query.size()}, list.data(),
                                                  list.size(), budget_us, cancel, Answer::done, &answer);
  EXPECT_EQ(status, FINCH_OK) << finch_last_error();
  // Nobody waits for an answer that will not come.
  if (status != FINCH_OK) Answer::done(&answer, status, finch_last_error(), nullptr, 0);
}

std::vector<std::string> many_documents(size_t count) {
  const std::vector<std::string> words = {"send", "weather", "music", "flight", "query", "repository", "x9"};
  std::vector<std::string> documents;
  for (size_t i = 0; i < count; i++) {
    std::string text = std::to_string(i);
    for (size_t k = 0; k < i % 30; k++) text += " " + words[(i * 7 + k) % words.size()];
    documents.push_back(text);
  }
  return documents;
}

Json cases() {
  std::ifstream file(kFolder + "reranker_logits.json");
  return Json::parse(file)["cases"];
}

TEST(Pair, IdsAreTheReferences) {
  const PairSettings settings;
  finch_tokenizer* tokenizer = settings.tokenizer();
  for (const Json& each : cases()) {
    const auto query = each["query"].get<std::string>(), document = each["document"].get<std::string>();
    std::vector<int32_t> ids(64);
    size_t count = 0, at = 0;
    ASSERT_EQ(finch_tokenize_pair(tokenizer, {query.data(), query.size()}, {document.data(), document.size()}, 64,
                                  FINCH_TRUNCATE_LONGEST_FIRST, ids.data(), &count, &at),
              FINCH_OK);
    ids.resize(count);
    EXPECT_EQ(ids, each["ids"].get<std::vector<int32_t>>()) << each["query"];
    EXPECT_EQ(at, each["documentAt"].get<size_t>());
  }
  finch_tokenizer_release(tokenizer);
}

TEST(Pair, IdsAreHuggingFaces) {
  PairSettings settings;
  settings.vocab = kRoot + "/models/all-minilm-l6-v2/vocab.txt";
  finch_tokenizer* tokenizer = settings.tokenizer();
  std::ifstream file(kRoot + "/test/golden/pairs.jsonl");
  size_t count_of_cases = 0;
  for (std::string line; std::getline(file, line); count_of_cases++) {
    const Json each = Json::parse(line);
    const auto query = each["query"].get<std::string>(), document = each["document"].get<std::string>();
    const auto room = each["maxTokens"].get<uint32_t>();
    const finch_truncation truncation =
        each["truncation"] == "longest-first" ? FINCH_TRUNCATE_LONGEST_FIRST : FINCH_TRUNCATE_DOCUMENT_FIRST;
    std::vector<int32_t> ids(room);
    size_t count = 0, at = 0;
    ASSERT_EQ(finch_tokenize_pair(tokenizer, {query.data(), query.size()}, {document.data(), document.size()}, room,
                                  truncation, ids.data(), &count, &at),
              FINCH_OK);
    ids.resize(count);
    EXPECT_EQ(ids, each["ids"].get<std::vector<int32_t>>()) << line;
    EXPECT_EQ(at, each["documentAt"].get<size_t>()) << line;
  }
  EXPECT_GT(count_of_cases, 500u);
  finch_tokenizer_release(tokenizer);
}

// Against the rule itself, one token at a time, for every share of the room.
TEST(Pair, TruncationFollowsItsRule) {
  const PairSettings settings;
  finch_tokenizer* tokenizer = settings.tokenizer();
  const auto text = [](const char* word, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; i++) all += std::string(word) + " ";
    return all;
  };
  for (const uint32_t room : {2u, 3u, 4u, 7u, 12u, 13u}) {
    for (size_t a = 0; a < 40; a++) {
      for (size_t b = 0; b < 40; b += 1 + b / 15) {
        for (const finch_truncation truncation : {FINCH_TRUNCATE_LONGEST_FIRST, FINCH_TRUNCATE_DOCUMENT_FIRST}) {
          size_t keep_a = a, keep_b = b;
          if (truncation == FINCH_TRUNCATE_DOCUMENT_FIRST && a < room) keep_b = std::min<size_t>(b, room - a);
          // Down to the room or to equal lengths; from there both lose, and an odd token stays with the longer text.
          while (keep_a + keep_b > room && keep_a != keep_b) (keep_a > keep_b ? keep_a : keep_b)--;
          if (keep_a + keep_b > room) {
            keep_a = keep_b = room / 2;
            (a > b ? keep_a : keep_b) += room % 2;
          }
          const std::string query = text("send", a), document = text("music", b);
          std::vector<int32_t> ids(room + 3);
          size_t count = 0, at = 0;
          ASSERT_EQ(finch_tokenize_pair(tokenizer, {query.data(), query.size()}, {document.data(), document.size()},
                                        room + 3, truncation, ids.data(), &count, &at),
                    FINCH_OK);
          ASSERT_EQ(at, keep_a + 2) << room << " " << a << " " << b << " " << truncation;
          ASSERT_EQ(count, keep_a + keep_b + 3) << room << " " << a << " " << b << " " << truncation;
        }
      }
    }
  }
  finch_tokenizer_release(tokenizer);
}

TEST(Pair, RefusesWhatItCannotDo) {
  const PairSettings settings;
  finch_tokenizer* tokenizer = settings.tokenizer();
  int32_t ids[8];
  size_t count = 0, at = 0;
  const finch_string word = {"a", 1}, wrong = {nullptr, 1};
  EXPECT_EQ(finch_tokenize_pair(nullptr, word, word, 8, 0, ids, &count, &at), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize_pair(tokenizer, word, word, 4, 0, ids, &count, &at), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize_pair(tokenizer, word, word, 8, 2, ids, &count, &at), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize_pair(tokenizer, wrong, word, 8, 0, ids, &count, &at), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize_pair(tokenizer, word, wrong, 8, 0, ids, &count, &at), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize_pair(tokenizer, word, word, 8, 0, ids, nullptr, &at), FINCH_INVALID_ARGUMENT);
  finch_tokenizer_release(tokenizer);
}

TEST(Reranker, RefusesWrongOptions) {
  EXPECT_EQ(finch_reranker_open(nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  PairSettings settings;
  settings.max_tokens = 4;
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  settings = {};
  settings.batch_size = 257;
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  settings = {};
  settings.truncation = 7;
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  settings = {};
  settings.provider = 9;
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  settings = {};
  settings.output = "";
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  settings = {};
  settings.model = "/no/such/model.onnx";
  EXPECT_EQ(settings.refused(), FINCH_IO);
  settings = {};
  settings.runtime = "/no/such/library";
  EXPECT_EQ(settings.refused(), FINCH_DEVICE);
}

TEST(Reranker, RefusesModelsThatGiveNoLogit) {
  NEEDS_RUNTIME();
  PairSettings settings;
  settings.output = "two_labels";
  EXPECT_EQ(settings.refused(), FINCH_DIMENSION);
  EXPECT_TRUE(said("one logit")) << finch_last_error();
  settings.output = "nothing";
  EXPECT_EQ(settings.refused(), FINCH_INVALID_ARGUMENT);
  EXPECT_TRUE(said("two_labels")) << finch_last_error();
  settings.output = "not_finite";
  EXPECT_EQ(settings.refused(), FINCH_NOT_FINITE);
  settings = {};
  settings.max_tokens = 65;  // the model has 64 positions
  EXPECT_EQ(settings.refused(), FINCH_DEVICE);
  EXPECT_TRUE(said("max_tokens")) << finch_last_error();
}

TEST(Reranker, LogitsAreTheReferences) {
  NEEDS_RUNTIME();
  for (const char* output : {"logits", "flat"}) {
    PairSettings settings;
    settings.output = output;
    const Reranker reranker(settings);
    for (const Json& each : cases()) {
      const std::vector<float> logits =
          reranker(each["query"].get<std::string>(), {each["document"].get<std::string>()});
      EXPECT_NEAR(logits[0], each["logit"].get<double>(), 5e-6) << each["query"];
    }
  }
}

// The same bits alone, in any company, in any order, through the queue and without it.
TEST(Reranker, APairsLogitDependsOnNothingElse) {
  NEEDS_RUNTIME();
  const Reranker reranker({});
  const std::vector<std::string> documents = many_documents(80);
  std::vector<float> alone;
  for (const std::string& document : documents) alone.push_back(reranker("play music", {document})[0]);
  EXPECT_EQ(reranker("play music", documents), alone);
  std::vector<Answer> answers(12);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < answers.size(); t++) {
    threads.emplace_back([&, t] {
      std::vector<std::string> turned = documents;
      std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(t * 5), turned.end());
      submit(reranker, t % 3 == 0 ? "send message" : "play music", turned, answers[t]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < answers.size(); t++) {
    answers[t].wait();
    ASSERT_EQ(answers[t].status, FINCH_OK) << answers[t].message;
    if (t % 3 == 0) continue;
    for (size_t i = 0; i < documents.size(); i++) {
      EXPECT_EQ(answers[t].results[i], alone[(i + t * 5) % documents.size()]);
    }
  }
}

TEST(Reranker, BatchesGiveTheSameToRounding) {
  NEEDS_RUNTIME();
  const std::vector<std::string> documents = many_documents(120);
  const std::vector<float> expected = Reranker({})("find flight", documents);
  PairSettings settings;
  settings.batch_size = 16;
  const Reranker reranker(settings);
  Answer answer;
  submit(reranker, "find flight", documents, answer);
  answer.wait();
  const std::vector<float> direct = reranker("find flight", documents);
  for (size_t i = 0; i < documents.size(); i++) {
    EXPECT_NEAR(answer.results[i], expected[i], 5e-6);
    EXPECT_NEAR(direct[i], expected[i], 5e-6);
  }
}

TEST(Reranker, WhatTheBudgetLeavesOutIsNaN) {
  NEEDS_RUNTIME();
  const Reranker reranker({});
  const std::vector<std::string> documents = many_documents(4000);
  const std::vector<float> first = reranker("play music", {documents[0], documents[1]});
  const std::vector<float> direct = reranker("play music", documents, 3000);
  EXPECT_EQ(direct.size(), documents.size());
  Answer answer;
  submit(reranker, "play music", documents, answer, 3000);
  answer.wait();
  ASSERT_EQ(answer.status, FINCH_OK) << answer.message;
  for (const std::vector<float>& logits : {direct, answer.results}) {
    EXPECT_TRUE(std::isnan(logits.back()));
    // What was scored came first, and is what it always is.
    const auto end = std::find_if(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); });
    for (auto at = end; at != logits.end(); ++at) EXPECT_TRUE(std::isnan(*at));
    if (end - logits.begin() > 1) {
      EXPECT_EQ(logits[0], first[0]);
      EXPECT_EQ(logits[1], first[1]);
    }
  }
  // A budget longer than any run is none.
  const std::vector<float> all = reranker("play music", documents, UINT64_MAX);
  for (const float logit : all) EXPECT_FALSE(std::isnan(logit));
}

TEST(Reranker, CancellingEndsARequest) {
  NEEDS_RUNTIME();
  const Reranker reranker({});
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  Answer cancelled, kept;
  const std::vector<std::string> documents = many_documents(20000);
  submit(reranker, "play music", documents, cancelled, 0, cancel);
  submit(reranker, "play music", {"map"}, kept);
  finch_cancel_signal(cancel);
  cancelled.wait();
  kept.wait();
  EXPECT_EQ(cancelled.status, FINCH_ABORTED);
  EXPECT_TRUE(cancelled.results.empty());
  EXPECT_EQ(kept.status, FINCH_OK);
  const std::vector<finch_string> list = views(documents);
  std::vector<float> untouched(documents.size(), 7);
  EXPECT_EQ(finch_rerank(reranker.get(), {"a", 1}, list.data(), list.size(), 0, untouched.data(), cancel),
            FINCH_ABORTED);
  EXPECT_EQ(untouched, std::vector<float>(documents.size(), 7));
  finch_cancel_release(cancel);
}

TEST(Reranker, RefusesWrongCalls) {
  NEEDS_RUNTIME();
  const Reranker reranker({});
  const finch_string word = {"a", 1}, wrong = {nullptr, 1};
  float logit = 0;
  EXPECT_EQ(finch_rerank(nullptr, word, &word, 1, 0, &logit, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_rerank(reranker.get(), wrong, &word, 1, 0, &logit, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_rerank(reranker.get(), word, &wrong, 1, 0, &logit, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_rerank(reranker.get(), word, nullptr, 1, 0, &logit, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_rerank(reranker.get(), word, &word, 1, 0, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_rerank(reranker.get(), word, nullptr, 0, 0, nullptr, nullptr), FINCH_OK);
  EXPECT_EQ(finch_rerank_submit(reranker.get(), word, &word, 1, 0, nullptr, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_STREQ(finch_reranker_runtime(nullptr), "");
  EXPECT_STREQ(finch_reranker_provider_reason(nullptr), "");
  finch_reranker_release(nullptr);
}

// Strict means strict; auto takes what works and says why.
TEST(Reranker, ProvidersAreHonest) {
  NEEDS_RUNTIME();
  finch_reranker* asked = nullptr;
  ASSERT_EQ(PairSettings{}.open(&asked), FINCH_OK);
  EXPECT_EQ(finch_reranker_provider(asked), FINCH_PROVIDER_CPU);
  EXPECT_STREQ(finch_reranker_provider_reason(asked), "asked for");
  finch_reranker_release(asked);

  PairSettings any;
  any.provider = FINCH_PROVIDER_AUTO;
  finch_reranker* taken = nullptr;
  ASSERT_EQ(any.open(&taken), FINCH_OK) << finch_last_error();
  const finch_provider provider = finch_reranker_provider(taken);
  const std::string reason = finch_reranker_provider_reason(taken);
  for (const auto& [strict, name] : {std::pair{FINCH_PROVIDER_CUDA, "CUDAExecutionProvider"},
                                     std::pair{FINCH_PROVIDER_COREML, "CoreMLExecutionProvider"}}) {
    PairSettings settings;
    settings.provider = strict;
    finch_reranker* on_device = nullptr;
    const finch_status status = settings.open(&on_device);
    if (status == FINCH_OK) {
      EXPECT_NE(provider, FINCH_PROVIDER_CPU) << "auto passed over " << name;
      finch_reranker_release(on_device);
    } else {
      EXPECT_EQ(status, FINCH_DEVICE);
      EXPECT_TRUE(said(name)) << finch_last_error();
      if (provider == FINCH_PROVIDER_CPU) {
        EXPECT_NE(reason.find(name), std::string::npos) << reason;
      }
    }
  }
  const std::string query = "send message", document = "delete file";
  const finch_string view = {document.data(), document.size()};
  float logit = 0;
  ASSERT_EQ(finch_rerank(taken, {query.data(), query.size()}, &view, 1, 0, &logit, nullptr), FINCH_OK);
  EXPECT_NEAR(logit, cases()[1]["logit"].get<double>(), 1e-2);
  finch_reranker_release(taken);
}

TEST(Reranker, OutlivesItsReleaseWhileRequestsWait) {
  NEEDS_RUNTIME();
  finch_reranker* reranker = nullptr;
  ASSERT_EQ(PairSettings{}.open(&reranker), FINCH_OK);
  Answer answer;
  const std::vector<std::string> documents = many_documents(200);
  const std::vector<finch_string> list = views(documents);
  ASSERT_EQ(finch_rerank_submit(reranker, {"map", 3}, list.data(), list.size(), 0, nullptr, Answer::done, &answer),
            FINCH_OK);
  finch_reranker_release(reranker);
  answer.wait();
  EXPECT_EQ(answer.status, FINCH_OK);
  EXPECT_EQ(answer.results.size(), documents.size());
}

}  // namespace
