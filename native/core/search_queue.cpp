// finch_search_submit: searches that wait for the pool are taken together where one pass over the vectors can serve
// them.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cancel.hpp"
#include "error.hpp"
#include "search.hpp"
#include "state.hpp"
#include "unit.hpp"

namespace finch {
namespace {

using Clock = std::chrono::steady_clock;

// What one pass of a scan takes.
constexpr size_t kBatchQueries = 256;
constexpr uint32_t kLongestWait = 100000;

struct Request {
  SnapshotRef snapshot;
  finch_search_options options;
  std::vector<float> queries;
  size_t count;
  finch_search_done done;
  void* user;
  Clock::time_point arrived;

  Request(SnapshotRef held, const finch_search_options& o, std::vector<float> copied, size_t n, finch_search_done d,
          void* u) noexcept
      : snapshot(std::move(held)),
        options(o),
        queries(std::move(copied)),
        count(n),
        done(d),
        user(u),
        arrived(Clock::now()) {
    finch_cancel_retain(const_cast<finch_cancel*>(options.cancel));
  }
  ~Request() { finch_cancel_release(const_cast<finch_cancel*>(options.cancel)); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Whether one call gives both the bits that each would get alone.
  bool joins(const Request& other) const noexcept {
    return snapshot.get() == other.snapshot.get() && options.k == other.options.k &&
           options.mode == other.options.mode && options.allow == other.options.allow &&
           options.overfetch == other.options.overfetch && options.expansion == other.options.expansion &&
           options.threads == other.options.threads;
  }
};
using RequestPointer = std::unique_ptr<Request>;

std::atomic<uint32_t> wait_microseconds{0};

// Never destroyed: pool threads may be at it until the end of the process.
struct Queue {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<RequestPointer> waiting;
};

Queue& queue() {
  static Queue* instance = new Queue;
  return *instance;
}

// Requests that one call serves. Of a fixed size: taking them must not fail.
struct Batch {
  std::array<RequestPointer, kBatchQueries> requests;
  size_t size = 0;

  void add(RequestPointer request) noexcept { requests[size++] = std::move(request); }
  std::span<const RequestPointer> all() const noexcept { return {requests.data(), size}; }
};

// Whether a task may wait for more requests: never the last free thread of the pool, since others' work would wait too.
class Waiter {
 public:
  Waiter() noexcept : allowed_(count.fetch_add(1) + 1 < finch_pool_threads()) {}
  ~Waiter() { count.fetch_sub(1); }
  bool allowed() const noexcept { return allowed_; }

 private:
  static inline std::atomic<uint32_t> count{0};
  bool allowed_;
};

// The oldest request and all that can go with it. Nothing when another task was there first.
void take_batch(Batch* batch) {
  constexpr auto kLook = std::chrono::milliseconds(1);  // how soon a cancelled request stops waiting
  Queue& q = queue();
  std::unique_lock lock(q.mutex);
  if (q.waiting.empty()) return;
  batch->add(std::move(q.waiting.front()));
  q.waiting.pop_front();
  const Request& oldest = *batch->requests[0];
  size_t queries = oldest.count;
  const auto until = oldest.arrived + std::chrono::microseconds(wait_microseconds.load());
  const Waiter waiter;
  for (;;) {
    for (auto it = q.waiting.begin(); it != q.waiting.end() && batch->size < kBatchQueries;) {
      if (queries + (*it)->count > kBatchQueries || !(*it)->joins(oldest)) {
        ++it;
        continue;
      }
      queries += (*it)->count;
      batch->add(std::move(*it));
      it = q.waiting.erase(it);
    }
    const auto now = Clock::now();
    if (queries >= kBatchQueries || now >= until || !waiter.allowed() || cancelled(oldest.options.cancel)) return;
    q.more.wait_until(lock, std::min(until, now + kLook));
  }
}

struct Results {
  std::vector<uint64_t> keys;
  std::vector<float> scores;
  std::vector<uint32_t> counts;
};

void tell(const Request& request, finch_status status, const Results& results, size_t first) noexcept {
  if (status == FINCH_OK && cancelled(request.options.cancel)) {
    status = fail(FINCH_ABORTED, "the search was cancelled.");
  }
  if (status != FINCH_OK) {
    request.done(request.user, status, finch_last_error(), nullptr, nullptr, nullptr);
    return;
  }
  const size_t k = request.options.k;
  request.done(request.user, FINCH_OK, "", results.keys.data() + first * k, results.scores.data() + first * k,
               results.counts.data() + first);
}

void answer(std::span<const RequestPointer> batch) noexcept {
  Results results;
  const finch_status status = guarded([&]() -> finch_status {
    size_t count = 0;
    for (const RequestPointer& request : batch) count += request->count;
    const Request& first = *batch.front();
    const size_t k = first.options.k;
    results.keys.resize(count * k);
    results.scores.resize(count * k);
    results.counts.resize(count);
    finch_search_options options = first.options;
    const float* queries = first.queries.data();
    std::vector<float> together;
    if (batch.size() > 1) {
      // One member's cancellation must not end the others' search.
      options.cancel = nullptr;
      together.reserve(count * first.snapshot.state().dimension);
      for (const RequestPointer& request : batch) {
        together.insert(together.end(), request->queries.begin(), request->queries.end());
      }
      queries = together.data();
    }
    return finch_search(first.snapshot.get(), queries, count, &options, results.keys.data(), results.scores.data(),
                        results.counts.data());
  });
  size_t first = 0;
  for (const RequestPointer& request : batch) {
    tell(*request, status, results, first);
    first += request->count;
  }
}

// One task for each request: it serves whichever has waited longest, so that none is forgotten.
void serve(void*) noexcept {
  Batch taken;
  take_batch(&taken);
  Batch batch;
  for (RequestPointer& request : std::span(taken.requests.data(), taken.size)) {
    if (cancelled(request->options.cancel)) {
      tell(*request, FINCH_OK, {}, 0);
    } else {
      batch.add(std::move(request));
    }
  }
  if (batch.size > 0) answer(batch.all());
}

}  // namespace
}  // namespace finch

using finch::fail;

extern "C" {

finch_status finch_search_submit(finch_snapshot* snapshot, const float* queries, size_t count,
                                 const finch_search_options* options, finch_search_done done, void* user) {
  return finch::guarded([&]() -> finch_status {
    finch_search_options read;
    if (const finch_status status = finch::read_search_options(snapshot, options, &read)) return status;
    if (done == nullptr) return fail(FINCH_INVALID_ARGUMENT, "done is NULL; pass the function to call.");
    if (count > 0 && queries == nullptr)
      return fail(FINCH_INVALID_ARGUMENT, "queries is NULL but count is %zu.", count);
    const uint32_t dimension = snapshot->state.dimension;
    std::vector<float> copied(count * dimension);
    if (count > 0) std::memcpy(copied.data(), queries, copied.size() * sizeof(float));
    std::vector<float> unit(dimension);
    for (size_t q = 0; q < count; ++q) {
      const finch_status status = finch::to_unit(copied.data() + q * dimension, dimension, unit.data());
      if (status != FINCH_OK) return finch::refuse_query(status, "queries", q);
    }
    finch_snapshot_retain(snapshot);
    auto request =
        std::make_unique<finch::Request>(finch::SnapshotRef(snapshot), read, std::move(copied), count, done, user);
    finch::Queue& queue = finch::queue();
    const finch::Request* const mine = request.get();
    {
      std::lock_guard lock(queue.mutex);
      queue.waiting.push_back(std::move(request));
    }
    queue.more.notify_all();
    const finch_status status = finch_pool_run(finch::serve, nullptr);
    if (status == FINCH_OK) return FINCH_OK;
    std::lock_guard lock(queue.mutex);
    const auto at = std::find_if(queue.waiting.begin(), queue.waiting.end(),
                                 [&](const finch::RequestPointer& r) { return r.get() == mine; });
    // Taken by another request's task meanwhile: then it is being answered.
    if (at == queue.waiting.end()) return FINCH_OK;
    queue.waiting.erase(at);
    return status;
  });
}

finch_status finch_search_set_wait(uint32_t microseconds) {
  return finch::guarded([&]() -> finch_status {
    if (microseconds > finch::kLongestWait) {
      return fail(FINCH_INVALID_ARGUMENT, "microseconds is %u; expected 0 to %u.", microseconds, finch::kLongestWait);
    }
    finch::wait_microseconds.store(microseconds);
    return FINCH_OK;
  });
}

}  // extern "C"
