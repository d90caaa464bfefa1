// Texts waiting for an encoder. Requests take turns, one text each, so that a long one does not hold up a short one;
// the pool's threads work on them together; equal texts on their way at the same time are encoded once.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "toolfinch.h"

namespace finch {

constexpr uint32_t kMaxBatch = 256;

// What the queue needs of an encoder.
class TextEncoder {
 public:
  // ids has room for max_tokens().
  virtual size_t tokenize(const char* text, size_t size, int32_t* ids) const = 0;
  // ids: batch x length, out: batch x dimension(). The message goes to fail().
  virtual finch_status run(const int32_t* ids, size_t batch, size_t length, float* out) const = 0;
  virtual uint32_t dimension() const noexcept = 0;
  virtual uint32_t max_tokens() const noexcept = 0;
  virtual uint32_t batch_size() const noexcept = 0;  // 1 ... kMaxBatch texts of equal length per run
  // The queue holds a reference for each of its tasks on the pool.
  virtual void retain() noexcept = 0;
  virtual void release() noexcept = 0;

 protected:
  ~TextEncoder() = default;
};

class EncodeQueue {
 public:
  explicit EncodeQueue(TextEncoder& encoder) : encoder_(encoder) {}
  EncodeQueue(const EncodeQueue&) = delete;
  EncodeQueue& operator=(const EncodeQueue&) = delete;

  // See finch_encode_submit. On failure `done` is not called. Once the process is exiting `done` is no longer called at
  // all: what it would touch may be gone.
  finch_status submit(const finch_string* texts, size_t count, finch_cancel* cancel, finch_encode_done done,
                      void* user);

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
  void encode(std::span<Claim> claims, std::span<Flight> room, size_t* used);
  void land(Flight& flight, finch_status status, const float* vector) noexcept;
  void settle(const Claim& claim, finch_status status, const float* vector, Row* finished) noexcept;
  static void deliver(Row finished) noexcept;

  TextEncoder& encoder_;
  std::mutex mutex_;
  Row turns_;           // requests with texts that nobody has taken yet (or without texts)
  size_t waiting_ = 0;  // how many such texts
  uint32_t drainers_ =
      0;  // tasks on the pool: never more than it has threads, and at least one while turns_ has somebody
  std::unordered_map<std::string, Flight*> flights_;  // texts being encoded, by token ids
};

}  // namespace finch
