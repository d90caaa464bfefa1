// The queue in front of an encoder, with a stand-in for the model: order, fairness, sharing, cancellation, failures.
#include "onnx/text_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "answer.hpp"
#include "core/error.hpp"
#include "toolfinch.h"

namespace {

constexpr uint32_t kDimension = 3;

// A text's vector: its length, its first byte, the sum of its bytes. A text with '!' fails. run() waits while the gate
// is shut.
class StandIn final : public finch::TextModel {
 public:
  explicit StandIn(uint32_t batch = 1) : batch_(batch), queue(*this) {}

  // With a query: its bytes, then the text's.
  size_t tokenize(std::string_view query, std::string_view text, int32_t* ids) const override {
    const std::string all = std::string(query) + std::string(text);
    const size_t length = std::min<size_t>(all.size(), max_tokens());
    for (size_t i = 0; i < length; i++) ids[i] = static_cast<unsigned char>(all[i]);
    std::lock_guard lock(mutex_);
    tokenized_++;
    changed_.notify_all();
    return length;
  }

  finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const override {
    std::unique_lock lock(mutex_);
    runs_++;
    texts_ += batch;
    largest_ = std::max(largest_, batch);
    inside_++;
    most_inside_ = std::max(most_inside_, inside_);
    changed_.notify_all();
    const bool is_exempt = std::string(ids, ids + length) == exempt_;
    changed_.wait(lock, [&] { return open_ && (is_exempt || may_pass_ > 0); });
    if (!is_exempt) may_pass_--;
    inside_--;
    for (size_t b = 0; b < batch; b++) {
      const int32_t* row = ids + b * length;
      if (std::find(row, row + length, '!') != row + length) return finch::fail(FINCH_DEVICE, "no text with ! please");
      const std::vector<float> vector = expected(std::string(row, row + length));
      std::copy(vector.begin(), vector.end(), out + b * kDimension);
    }
    return FINCH_OK;
  }

  uint32_t dimension() const noexcept override { return kDimension; }
  uint32_t max_tokens() const noexcept override { return 64; }
  uint32_t batch_size() const noexcept override { return batch_; }
  void retain() noexcept override { references++; }
  void release() noexcept override {
    std::lock_guard lock(mutex_);
    references--;
    changed_.notify_all();
  }

  static std::vector<float> expected(const std::string& text) {
    int sum = 0;
    for (const char c : text) sum += static_cast<unsigned char>(c);
    return {static_cast<float>(text.size()), text.empty() ? 0.0f : static_cast<float>(text[0]),
            static_cast<float>(sum)};
  }

  void shut() { set(false); }
  void open() { set(true); }
  // Opens for so many runs, and for every run of the text `exempt`.
  void open_for(size_t runs, const std::string& exempt) {
    std::lock_guard lock(mutex_);
    may_pass_ = runs;
    exempt_ = exempt;
    open_ = true;
    changed_.notify_all();
  }
  template <typename Condition>
  void wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  // The queue's tasks are over; only then may this object go.
  void wait_idle() {
    wait_until([this] { return references == 1; });
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable size_t runs_ = 0, texts_ = 0, largest_ = 0, inside_ = 0, most_inside_ = 0, tokenized_ = 0;
  mutable size_t may_pass_ = std::numeric_limits<size_t>::max();
  std::string exempt_;
  bool open_ = true;
  const uint32_t batch_;
  std::atomic<int> references{1};
  finch::TextQueue queue;

 private:
  void set(bool open) {
    std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
};

struct Answer : finch_test::Answer {
  Answer() { width = kDimension; }
};

finch_status submit(StandIn& encoder, const std::vector<std::string>& texts, Answer& answer,
                    finch_cancel* cancel = nullptr,
                    finch::TextQueue::Clock::time_point deadline = finch::TextQueue::kNever,
                    const std::string& query = "") {
  const std::vector<finch_string> list = finch_test::views(texts);
  finch::TextQueue::Order order;
  order.query = {query.data(), query.size()};
  order.texts = list.data();
  order.count = list.size();
  order.deadline = deadline;
  order.cancel = cancel;
  order.done = Answer::done;
  order.user = &answer;
  return encoder.queue.submit(order);
}

std::vector<float> expected(const std::vector<std::string>& texts) {
  std::vector<float> vectors;
  for (const std::string& text : texts) {
    const auto one = StandIn::expected(text);
    vectors.insert(vectors.end(), one.begin(), one.end());
  }
  return vectors;
}

class TextQueueTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(BatchSizes, TextQueueTest, testing::Values(1, 4, 256));

TEST_P(TextQueueTest, AnswersEveryRequestOnceAndInOrder) {
  StandIn encoder(GetParam());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&encoder, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int round = 0; round < 50; round++) {
        std::vector<std::vector<std::string>> texts(4);
        std::vector<Answer> answers(4);
        for (size_t r = 0; r < texts.size(); r++) {
          const size_t count = random() % 12;
          for (size_t i = 0; i < count; i++)
            texts[r].push_back(std::string(random() % 6, static_cast<char>('a' + random() % 3)));
          ASSERT_EQ(submit(encoder, texts[r], answers[r]), FINCH_OK);
        }
        for (size_t r = 0; r < texts.size(); r++) {
          answers[r].wait();
          ASSERT_EQ(answers[r].status, FINCH_OK) << answers[r].message;
          ASSERT_EQ(answers[r].count, texts[r].size());
          ASSERT_EQ(answers[r].results, expected(texts[r]));
          ASSERT_TRUE(answers[r].had_results);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  encoder.wait_idle();
  EXPECT_LE(encoder.most_inside_, finch_pool_threads());
  EXPECT_LE(encoder.largest_, GetParam());
}

TEST(TextQueue, AShortRequestDoesNotWaitForALongOne) {
  StandIn encoder;
  encoder.shut();
  std::vector<std::string> many;
  for (int i = 0; i < 2000; i++) many.push_back("text " + std::to_string(i));
  Answer long_one, short_one;
  ASSERT_EQ(submit(encoder, many, long_one), FINCH_OK);
  ASSERT_EQ(submit(encoder, {"short"}, short_one), FINCH_OK);
  // Each thread may be in one text of the long request and start another one before the short request's turn. However
  // long a thread is kept waiting, no more of them pass.
  encoder.open_for(4 * finch_pool_threads() + 4, "short");
  const bool had_its_turn = short_one.wait_for(std::chrono::minutes(1));
  encoder.open_for(many.size(), "short");
  long_one.wait();
  short_one.wait();
  EXPECT_TRUE(had_its_turn) << "with more than " << 4 * finch_pool_threads() + 4 << " of 2000 texts before it";
  EXPECT_EQ(long_one.results, expected(many));
  encoder.wait_idle();
}

TEST(TextQueue, TextsOfOneLengthShareARun) {
  StandIn encoder(4);
  std::vector<std::string> texts;
  for (int i = 0; i < 400; i++)
    texts.push_back(std::string(1 + i % 2, static_cast<char>('a' + i % 20)) + std::to_string(100 + i));
  Answer answer;
  ASSERT_EQ(submit(encoder, texts, answer), FINCH_OK);
  answer.wait();
  EXPECT_EQ(answer.results, expected(texts));
  encoder.wait_idle();
  EXPECT_EQ(encoder.texts_, 400u);
  EXPECT_LT(encoder.runs_, 200u);
  EXPECT_EQ(encoder.largest_, 4u);
}

TEST(TextQueue, EqualTextsOnTheirWayAreEncodedOnce) {
  StandIn encoder;
  encoder.shut();
  const size_t threads = finch_pool_threads();
  std::vector<Answer> answers(10 * threads);
  for (Answer& answer : answers) ASSERT_EQ(submit(encoder, {"same"}, answer), FINCH_OK);
  if (threads > 1) encoder.wait_until([&] { return encoder.tokenized_ == answers.size(); });
  encoder.open();
  for (Answer& answer : answers) {
    answer.wait();
    EXPECT_EQ(answer.results, StandIn::expected("same"));
  }
  encoder.wait_idle();
  // One thread takes text after text: then there is nothing to share. With more, each may have been about to join the
  // first text when that one was done.
  EXPECT_LE(encoder.runs_, threads > 1 ? threads : answers.size());
}

TEST(TextQueue, CancelledRequestsAreDropped) {
  StandIn encoder;
  encoder.shut();
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  std::vector<std::string> many;
  for (int i = 0; i < 500; i++) many.push_back(std::to_string(i));
  Answer dropped, kept, late;
  ASSERT_EQ(submit(encoder, many, dropped, cancel), FINCH_OK);
  ASSERT_EQ(submit(encoder, {"kept"}, kept), FINCH_OK);
  encoder.wait_until([&] { return encoder.inside_ > 0; });
  finch_cancel_signal(cancel);
  ASSERT_EQ(submit(encoder, {"late"}, late, cancel), FINCH_OK);
  finch_cancel_release(cancel);  // the queue has its own reference
  encoder.open();
  dropped.wait();
  kept.wait();
  late.wait();
  encoder.wait_idle();
  EXPECT_EQ(dropped.status, FINCH_ABORTED);
  EXPECT_FALSE(dropped.had_results);
  EXPECT_NE(dropped.message, "");
  EXPECT_EQ(late.status, FINCH_ABORTED);
  EXPECT_EQ(kept.status, FINCH_OK);
  EXPECT_EQ(kept.results, StandIn::expected("kept"));
  EXPECT_LE(encoder.runs_, finch_pool_threads() + 1);
  for (const Answer* answer : {&dropped, &kept, &late}) EXPECT_EQ(answer->calls, 1);
}

// A request whose time is over is answered as soon as a thread is free, wherever it stands: what ran has its result,
// the rest NaN.
TEST_P(TextQueueTest, WhatIsNotBegunInTimeHasNoResult) {
  StandIn encoder(GetParam());
  encoder.shut();
  std::vector<std::string> many, others;
  for (int i = 0; i < 3000; i++) many.push_back(std::string(1 + i % 40, 'a') + std::to_string(i));
  for (int i = 0; i < 3000; i++) others.push_back(std::string(1 + i % 40, 'b') + std::to_string(i));
  Answer late, patient, over;
  const auto now = finch::TextQueue::Clock::now();
  ASSERT_EQ(submit(encoder, others, patient), FINCH_OK);
  ASSERT_EQ(submit(encoder, many, late, nullptr, now + std::chrono::milliseconds(1)), FINCH_OK);
  ASSERT_EQ(submit(encoder, {"x", "y"}, over, nullptr, now - std::chrono::milliseconds(1)), FINCH_OK);
  encoder.wait_until([&] { return encoder.inside_ > 0; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  encoder.open();
  for (Answer* answer : {&late, &over, &patient}) answer->wait();
  encoder.wait_idle();
  EXPECT_EQ(patient.results, expected(others));
  EXPECT_EQ(over.status, FINCH_OK);
  ASSERT_EQ(over.results.size(), 2 * kDimension);
  for (const float value : over.results) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(late.status, FINCH_OK) << late.message;
  ASSERT_EQ(late.results.size(), many.size() * kDimension);
  size_t done = 0;
  for (size_t i = 0; i < many.size(); i++) {
    const std::vector<float> got(late.results.begin() + static_cast<std::ptrdiff_t>(i * kDimension),
                                 late.results.begin() + static_cast<std::ptrdiff_t>((i + 1) * kDimension));
    if (std::isnan(got[0])) continue;
    EXPECT_EQ(got, StandIn::expected(many[i]));
    done++;
  }
  // At most what each thread had taken when the gate opened.
  EXPECT_LE(done, finch_pool_threads() * 256u);
  EXPECT_EQ(late.calls + over.calls + patient.calls, 3);
}

TEST(TextQueue, AQueryStandsBeforeEachOfItsTexts) {
  StandIn encoder;
  Answer first, second;
  ASSERT_EQ(submit(encoder, {"a", "b"}, first, nullptr, finch::TextQueue::kNever, "query "), FINCH_OK);
  ASSERT_EQ(submit(encoder, {"a"}, second), FINCH_OK);
  first.wait();
  second.wait();
  EXPECT_EQ(first.results, expected({"query a", "query b"}));
  EXPECT_EQ(second.results, expected({"a"}));
  encoder.wait_idle();
}

TEST_P(TextQueueTest, AFailureHitsOnlyItsOwnRequest) {
  StandIn encoder(GetParam());
  for (int round = 0; round < 20; round++) {
    Answer good, bad;
    const std::vector<std::string> good_texts = {"one", "three", "fo"}, bad_texts = {"xx", "four!", "yyyyyyy"};
    ASSERT_EQ(submit(encoder, good_texts, good), FINCH_OK);
    ASSERT_EQ(submit(encoder, bad_texts, bad), FINCH_OK);
    good.wait();
    bad.wait();
    EXPECT_EQ(good.status, FINCH_OK) << good.message;
    EXPECT_EQ(good.results, expected(good_texts));
    EXPECT_EQ(bad.status, FINCH_DEVICE);
    EXPECT_EQ(bad.message, "no text with ! please");
    EXPECT_FALSE(bad.had_results);
    EXPECT_EQ(bad.count, 3u);
    EXPECT_EQ(bad.calls + good.calls, 2);
  }
  encoder.wait_idle();
}

TEST(TextQueue, NoTextsAreAnAnswerToo) {
  StandIn encoder;
  Answer answer;
  ASSERT_EQ(submit(encoder, {}, answer), FINCH_OK);
  answer.wait();
  EXPECT_EQ(answer.status, FINCH_OK);
  EXPECT_EQ(answer.count, 0u);
  EXPECT_TRUE(answer.had_results);
  encoder.wait_idle();
}

TEST(TextQueue, AnAnswerMaySubmitAgain) {
  StandIn encoder;
  Answer first, second;
  first.then = [&] { EXPECT_EQ(submit(encoder, {"second"}, second), FINCH_OK); };
  ASSERT_EQ(submit(encoder, {"first"}, first), FINCH_OK);
  first.wait();
  second.wait();
  EXPECT_EQ(second.results, StandIn::expected("second"));
  encoder.wait_idle();
}

TEST(TextQueue, OtherWorkGetsItsTurn) {
  StandIn encoder;
  encoder.shut();
  std::vector<std::string> many;
  for (int i = 0; i < 1000; i++) many.push_back(std::to_string(i));
  Answer answer;
  ASSERT_EQ(submit(encoder, many, answer), FINCH_OK);
  encoder.wait_until([&] { return encoder.inside_ > 0; });
  struct Probe {
    StandIn& encoder;
    std::mutex mutex;
    std::condition_variable changed;
    size_t runs = 0;
  } probe{encoder, {}, {}, 0};
  ASSERT_EQ(finch_pool_run(
                [](void* user) {
                  auto& p = *static_cast<Probe*>(user);
                  size_t runs = 0;
                  {
                    std::lock_guard lock(p.encoder.mutex_);
                    runs = p.encoder.runs_;
                  }
                  std::lock_guard lock(p.mutex);
                  p.runs = runs;
                  p.changed.notify_all();
                },
                &probe),
            FINCH_OK);
  encoder.open();
  answer.wait();
  std::unique_lock lock(probe.mutex);
  probe.changed.wait(lock, [&] { return probe.runs > 0; });
  EXPECT_LE(probe.runs, 4 * finch_pool_threads() + 4) << "of 1000";
  lock.unlock();
  encoder.wait_idle();
}

}  // namespace
