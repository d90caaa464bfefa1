// Texts waiting for a model: an encoder's texts, or the documents that a reranker scores for a query. Requests take
// turns, one text each, so that a long one does not hold up a short one; the pool's threads work on them together;
// equal token sequences on their way at the same time are run once. A request may have a deadline: texts that nobody
// has taken by then stay without a result.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "toolfinch.h"

namespace finch {

constexpr uint32_t kMaxBatch = 256;

// What the queue needs of a model.
class TextModel {
 public:
  // The ids of a text in the company of its request's query (empty for encoders); ids has room for max_tokens().
  virtual size_t tokenize(std::string_view query, std::string_view text, int32_t* ids) const = 0;
  // ids: batch x length, out: batch x dimension(). The message goes to fail().
  virtual finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const = 0;
  virtual uint32_t dimension() const noexcept = 0;  // floats of a text's result
  virtual uint32_t max_tokens() const noexcept = 0;
  virtual uint32_t batch_size() const noexcept = 0;  // 1 ... kMaxBatch texts of equal length per run
  // Runs at a time: the pool's threads, unless a device does the work.
  virtual uint32_t lanes() const noexcept { return finch_pool_threads(); }
  // The queue holds a reference for each of its tasks on the pool.
  virtual void retain() noexcept = 0;
  virtual void release() noexcept = 0;

 protected:
  ~TextModel() = default;
};

class TextQueue {
 public:
  using Clock = std::chrono::steady_clock;
  // Nothing is due at it.
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  struct Order {
    finch_string query{};  // what a reranker scores the texts for
    const finch_string* texts = nullptr;
    size_t count = 0;
    Clock::time_point deadline = kNever;
    finch_cancel* cancel = nullptr;
    finch_encode_done done = nullptr;
    void* user = nullptr;
  };

  explicit TextQueue(TextModel& model) : model_(model) {}
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;

  // See finch_encode_submit and finch_rerank_submit; a text without a result has NaN. Texts are begun in their order.
  // On failure `done` is not called. Once the process is exiting `done` is no longer called at all: what it would touch
  // may be gone.
  finch_status submit(const Order& order);

 private:
  struct Request;
  struct Claim;
  struct Flight;

  // Requests in a row, linked through Request::after: moving them never allocates.
  struct Row {
    Request* first = nullptr;
    Request* last = nullptr;
    void push(Request* request) noexcept;
    Request* pop() noexcept;
  };

  static void task(void* queue) noexcept;
  void drain() noexcept;
  void work() noexcept;
  size_t take(std::span<Claim> room, Row* finished) noexcept;
  void expire(Row* finished) noexcept;
  void drop(Request& request, Row* finished) noexcept;
  void run(std::span<Claim> claims, std::span<Flight> room, size_t* used);
  bool give_up(Flight& flight) noexcept;
  void remove(const Flight& flight) noexcept;
  void land(Flight& flight, finch_status status, const float* vector) noexcept;
  void settle(const Claim& claim, finch_status status, const float* vector, Row* finished) noexcept;
  static void deliver(Row finished) noexcept;

  TextModel& model_;
  std::mutex mutex_;
  Row turns_;             // requests with texts that nobody has taken yet (or without texts)
  size_t waiting_ = 0;    // how many such texts
  size_t deadlines_ = 0;  // how many of those requests have a deadline
  uint32_t drainers_ =
      0;  // tasks on the pool: never more than it has threads, and at least one while turns_ has somebody
  std::unordered_map<std::string, Flight*> flights_;  // texts on their way, by token ids
};

}  // namespace finch
