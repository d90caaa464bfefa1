#include "text_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/pool.hpp"
#include "exit_gate.hpp"

namespace finch {
namespace {

// With batches a task takes this many batches' worth of texts, to find some of equal length among them.
constexpr size_t kWindow = 4;

bool exiting() noexcept { return exit_gate_closed() || pool_stopping(); }

}  // namespace

struct TextQueue::Request {
  std::string query;
  std::string bytes;
  std::vector<size_t> ends;  // of each text in bytes
  std::vector<float> vectors;
  size_t next = 0;  // the first text that nobody has taken
  size_t left = 0;  // texts without a result
  Clock::time_point deadline = kNever;
  finch_status status = FINCH_OK;
  char message[512] = "";
  finch_cancel* cancel = nullptr;
  finch_encode_done done = nullptr;
  void* user = nullptr;
  Request* after = nullptr;

  size_t count() const noexcept { return ends.size(); }

  void stop(finch_status why, const char* said) noexcept {
    if (status != FINCH_OK) return;
    status = why;
    std::snprintf(message, sizeof(message), "%s", said);
  }
};

struct TextQueue::Claim {
  Request* request;  // NULL once its result is somebody else's business
  size_t index;
};

// One text on its way, and everybody who waits for it.
struct TextQueue::Flight {
  std::vector<int32_t> ids;
  std::vector<Claim> claims;
  bool landed = false;

  std::string key() const { return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)}; }
};

void TextQueue::Row::push(Request* request) noexcept {
  request->after = nullptr;
  (last != nullptr ? last->after : first) = request;
  last = request;
}

TextQueue::Request* TextQueue::Row::pop() noexcept {
  Request* request = first;
  if (request != nullptr && (first = request->after) == nullptr) last = nullptr;
  return request;
}

finch_status TextQueue::submit(const Order& order) {
  const size_t count = order.count;
  auto fresh = std::make_unique<Request>();
  if (order.query.size > 0) fresh->query.assign(order.query.data, order.query.size);
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += order.texts[i].size;
  fresh->bytes.reserve(total);
  fresh->ends.reserve(count);
  for (size_t i = 0; i < count; i++) {
    if (order.texts[i].size > 0) fresh->bytes.append(order.texts[i].data, order.texts[i].size);
    fresh->ends.push_back(fresh->bytes.size());
  }
  fresh->vectors.resize(std::max<size_t>(1, count * model_.dimension()), std::numeric_limits<float>::quiet_NaN());
  fresh->left = count;
  fresh->deadline = order.deadline;
  fresh->cancel = order.cancel;
  fresh->done = order.done;
  fresh->user = order.user;
  const uint32_t lanes = model_.lanes();

  std::lock_guard lock(mutex_);
  size_t wanted = count;
  // Without tasks nobody waits, so the row then holds the new request alone.
  if (drainers_ == 0) {
    if (wanted > 0) wanted--;
    model_.retain();
    if (const finch_status status = finch_pool_run(task, this); status != FINCH_OK) {
      model_.release();  // the caller has one too
      return status;
    }
    drainers_++;
  }
  finch_cancel_retain(order.cancel);
  if (fresh->deadline != kNever) deadlines_++;
  turns_.push(fresh.release());
  waiting_ += count;
  for (; drainers_ < lanes && wanted > 0; wanted--) {
    model_.retain();
    if (finch_pool_run(task, this) != FINCH_OK) {
      model_.release();
      break;
    }
    drainers_++;
  }
  return FINCH_OK;
}

void TextQueue::task(void* queue) noexcept { static_cast<TextQueue*>(queue)->drain(); }

// One text (or window of texts), then back to the end of the pool's queue, so that other work gets its turn as well.
void TextQueue::drain() noexcept {
  do {
    work();
    // Nobody waits for results any more; everything stays where it is until the process is gone.
    if (exiting()) return;
    std::unique_lock lock(mutex_);
    if (turns_.first == nullptr) {
      drainers_--;
      lock.unlock();
      model_.release();  // maybe the last reference: `this` may be gone
      return;
    }
  } while (finch_pool_run(task, this) != FINCH_OK);
}

void TextQueue::work() noexcept {
  Claim room[kMaxBatch];
  Row finished;
  const std::span<Claim> claims(room, take(room, &finished));
  deliver(finished);
  if (claims.empty()) return;
  std::unique_ptr<Flight[]> flights;
  size_t used = 0;
  try {
    flights.reset(new Flight[claims.size()]);
    run(claims, {flights.get(), claims.size()}, &used);
    return;
  } catch (...) {
    fail(FINCH_NO_MEMORY, "out of memory while running a text; free some or send shorter texts.");
  }
  for (size_t i = 0; i < used; i++) {
    if (!flights[i].landed) land(flights[i], FINCH_NO_MEMORY, nullptr);
  }
  Row failed;
  {
    std::lock_guard lock(mutex_);
    for (const Claim& claim : claims) {
      if (claim.request != nullptr) settle(claim, FINCH_NO_MEMORY, nullptr, &failed);
    }
  }
  deliver(failed);
}

size_t TextQueue::take(std::span<Claim> room, Row* finished) noexcept {
  const size_t batch = model_.batch_size();
  const size_t threads = model_.lanes();
  std::lock_guard lock(mutex_);
  if (deadlines_ > 0) expire(finished);
  // Never more than a fair share of what waits: the other threads shall have work too.
  const size_t share = batch == 1 ? 1 : std::max<size_t>(1, (waiting_ + threads - 1) / threads);
  const size_t limit = std::min({share, batch * kWindow, room.size()});
  size_t count = 0;
  while (count < limit) {
    Request* request = turns_.pop();
    if (request == nullptr) break;
    if (cancelled(request->cancel)) request->stop(FINCH_ABORTED, "cancelled before all texts were done.");
    if (request->status != FINCH_OK || request->count() == 0) {
      drop(*request, finished);
      continue;
    }
    room[count++] = {request, request->next++};
    waiting_--;
    if (request->next < request->count()) {
      turns_.push(request);
    } else if (request->deadline != kNever) {
      deadlines_--;
    }
  }
  return count;
}

// Gives up what nobody has taken of a request that left the row. Holds the mutex.
void TextQueue::drop(Request& request, Row* finished) noexcept {
  const size_t dropped = request.count() - request.next;
  request.next = request.count();
  request.left -= dropped;
  waiting_ -= dropped;
  if (request.deadline != kNever) deadlines_--;
  if (request.left == 0) finished->push(&request);
}

// Takes requests whose time is over out of the row, wherever they stand: none waits for its turn to be told so. Holds
// the mutex.
void TextQueue::expire(Row* finished) noexcept {
  const Clock::time_point now = Clock::now();
  Row kept;
  while (Request* request = turns_.pop()) {
    if (request->deadline > now) {
      kept.push(request);
    } else {
      drop(*request, finished);
    }
  }
  turns_ = kept;
}

void TextQueue::run(std::span<Claim> claims, std::span<Flight> room, size_t* used) {
  std::vector<int32_t> ids(model_.max_tokens());
  for (Claim& claim : claims) {
    const Request& request = *claim.request;
    const size_t from = claim.index == 0 ? 0 : request.ends[claim.index - 1];
    const std::string_view text(request.bytes.data() + from, request.ends[claim.index] - from);
    const size_t length = model_.tokenize(request.query, text, ids.data());
    Flight& flight = room[*used];
    flight.ids.assign(ids.data(), ids.data() + length);
    flight.claims.assign(1, claim);
    std::string key = flight.key();
    std::lock_guard lock(mutex_);
    const auto [present, fresh] = flights_.try_emplace(std::move(key), &flight);
    if (fresh) {
      ++*used;
    } else {
      present->second->claims.push_back(claim);
    }
    claim.request = nullptr;
  }

  std::vector<Flight*> order;
  order.reserve(*used);
  for (size_t i = 0; i < *used; i++) order.push_back(&room[i]);
  std::stable_sort(order.begin(), order.end(),
                   [](const Flight* a, const Flight* b) { return a->ids.size() < b->ids.size(); });
  const size_t d = model_.dimension();
  std::vector<int32_t> rows;
  std::vector<float> vectors;
  for (size_t at = 0, next = 0; at < order.size(); at = next) {
    // A window of several runs may take long: what nobody wants any more is left out of the later ones.
    if (at > 0 && give_up(*order[at])) {
      next = at + 1;
      continue;
    }
    const size_t length = order[at]->ids.size();
    rows.clear();
    for (next = at; next < order.size() && next - at < model_.batch_size() && order[next]->ids.size() == length;
         next++) {
      rows.insert(rows.end(), order[next]->ids.begin(), order[next]->ids.end());
    }
    vectors.resize((next - at) * d);
    const finch_status status = model_.run(rows.data(), next - at, length, vectors.data());
    for (size_t i = at; i < next; i++) {
      // One bad text must not fail the others of its batch.
      if (status != FINCH_OK && next - at > 1) {
        const finch_status own = model_.run(order[i]->ids.data(), 1, length, vectors.data());
        land(*order[i], own, vectors.data());
      } else {
        land(*order[i], status, vectors.data() + (i - at) * d);
      }
    }
  }
}

// Holds the mutex.
void TextQueue::remove(const Flight& flight) noexcept {
  // Found by pointer: making the key could fail.
  for (auto at = flights_.begin(); at != flights_.end(); ++at) {
    if (at->second == &flight) {
      flights_.erase(at);
      return;
    }
  }
}

// Ends a flight that was not run, if everybody who waits for it was cancelled or is past his deadline.
bool TextQueue::give_up(Flight& flight) noexcept {
  Row finished;
  {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (const Claim& claim : flight.claims) {
      if (!cancelled(claim.request->cancel) && claim.request->deadline > now) return false;
    }
    remove(flight);
    flight.landed = true;
    if (exiting()) return true;
    for (const Claim& claim : flight.claims) settle(claim, FINCH_OK, nullptr, &finished);
  }
  deliver(finished);
  return true;
}

// Gives a result to everybody who waits for it; a failure's message is this thread's last one.
void TextQueue::land(Flight& flight, finch_status status, const float* vector) noexcept {
  flight.landed = true;
  Row finished;
  {
    std::lock_guard lock(mutex_);
    remove(flight);
    if (exiting()) return;
    for (const Claim& claim : flight.claims) settle(claim, status, vector, &finished);
  }
  deliver(finished);
}

// A text that was given up has no vector and stays without a result. Holds the mutex.
void TextQueue::settle(const Claim& claim, finch_status status, const float* vector, Row* finished) noexcept {
  Request& request = *claim.request;
  if (status == FINCH_OK) {
    if (vector != nullptr) {
      std::copy_n(vector, model_.dimension(), request.vectors.data() + claim.index * model_.dimension());
    }
  } else {
    request.stop(status, finch_last_error());
  }
  // A request that failed may still stand in the row of turns; there it is dropped when its turn comes.
  if (--request.left == 0) finished->push(&request);
}

void TextQueue::deliver(Row finished) noexcept {
  while (Request* request = finished.pop()) {
    if (exiting()) return;
    const std::unique_ptr<Request> owned(request);
    if (cancelled(request->cancel)) request->stop(FINCH_ABORTED, "cancelled.");
    const bool ok = request->status == FINCH_OK;
    request->done(request->user, request->status, request->message, ok ? request->vectors.data() : nullptr,
                  request->count());
    finch_cancel_release(request->cancel);
  }
}

}  // namespace finch
