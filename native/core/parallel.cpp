#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "toolfinch.h"

namespace finch {
namespace {

struct Job {
  size_t items;
  void (*body)(void*, uint32_t, size_t);
  void* context;
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> workers{0};  // numbers given out
  std::atomic<uint32_t> inside{0};   // helpers that may hold an item

  void work() noexcept {
    const uint32_t worker = workers.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
      const size_t item = next.fetch_add(1, std::memory_order_acq_rel);
      if (item >= items) return;
      body(context, worker, item);
    }
  }
};

void help(void* argument) {
  const std::unique_ptr<std::shared_ptr<Job>> job(static_cast<std::shared_ptr<Job>*>(argument));
  Job& shared = **job;
  // Entered before an item is taken: a caller that finds no item left and nobody inside may leave.
  shared.inside.fetch_add(1, std::memory_order_acq_rel);
  shared.work();
  if (shared.inside.fetch_sub(1, std::memory_order_acq_rel) == 1) shared.inside.notify_all();
}

}  // namespace

void parallel_for(size_t items, uint32_t threads, void (*body)(void* context, uint32_t worker, size_t item),
                  void* context) noexcept {
  threads = static_cast<uint32_t>(std::min<size_t>(threads, items));
  std::shared_ptr<Job> job;
  if (threads > 1) {
    try {
      job = std::make_shared<Job>();
    } catch (...) {
    }
  }
  if (job == nullptr) {
    for (size_t item = 0; item < items; ++item) body(context, 0, item);
    return;
  }
  job->items = items;
  job->body = body;
  job->context = context;
  for (uint32_t i = 1; i < threads; ++i) {
    // Help that cannot be had is done without.
    auto* share = new (std::nothrow) std::shared_ptr<Job>(job);
    if (share == nullptr) break;
    if (finch_pool_run(help, share) != FINCH_OK) {
      delete share;
      break;
    }
  }
  job->work();
  for (uint32_t inside; (inside = job->inside.load(std::memory_order_acquire)) != 0;) job->inside.wait(inside);
}

}  // namespace finch
