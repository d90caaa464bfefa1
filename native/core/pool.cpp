#include "pool.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "error.hpp"
#include "threads.hpp"
#include "toolfinch.h"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

namespace finch {
namespace {

int64_t process_id() {
#if defined(_WIN32)
  return 0;  // no fork()
#else
  return getpid();
#endif
}

// Signals belong to the host's threads: a thread made inside this scope inherits a mask that blocks them.
class BlockSignals {
 public:
#if defined(_WIN32)
  BlockSignals() = default;
#else
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    // Faults must stay with the thread that caused them.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

thread_local bool on_pool_thread = false;

struct Task {
  void (*run)(void*);
  void* argument;
};

class Pool {
 public:
  // May throw; then the task was not queued.
  finch_status submit(Task task) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_.load(std::memory_order_relaxed)) {
        return fail(FINCH_CLOSED, "the process is exiting: no more work is taken.");
      }
      if (threads_.empty() && !start()) {
        return fail(FINCH_NO_MEMORY,
                    "the operating system refused to start a thread; raise the process's thread limit.");
      }
      queue_.push_back(task);
    }
    wake_.notify_one();
    return FINCH_OK;
  }

  uint32_t size() const noexcept { return size_; }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
  bool of_this_process() const noexcept { return process_ == process_id(); }

  // Waits for running tasks; queued ones never run. The threads leave the library's code for good, since after an
  // unload that code is gone.
  void stop() noexcept {
    std::vector<std::thread> threads;
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
      threads.swap(threads_);
    }
    wake_.notify_all();
    for (std::thread& thread : threads) {
      // A task that called exit() must not wait for itself, nor for others that may wait for it.
      if (on_pool_thread) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  }

 private:
  // Holds the mutex. Fewer threads than planned will do; none will not.
  bool start() {
    threads_.reserve(size_);
    const BlockSignals block;
    try {
      while (threads_.size() < size_) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      return !threads_.empty();
    }
    return true;
  }

  void work() noexcept {
    on_pool_thread = true;
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "toolfinch");
#endif
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !queue_.empty() || stopping_.load(std::memory_order_relaxed); });
      if (stopping_.load(std::memory_order_relaxed)) return;
      const Task task = queue_.front();
      queue_.pop_front();
      lock.unlock();
      task.run(task.argument);
      lock.lock();
    }
  }

  const int64_t process_ = process_id();
  const uint32_t size_ = usable_threads();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
};

// Never destroyed: tasks, and threads that outlive main(), may use it until the end of the process.
std::atomic<Pool*> current{nullptr};

void exit_hook() {
#if !defined(_WIN32)  // there, other threads are already gone when a library's exit hooks run
  Pool* pool = current.load(std::memory_order_acquire);
  // A forked child has its parent's pool but none of its threads.
  if (pool != nullptr && pool->of_this_process()) pool->stop();
#endif
}

// After fork() a child gets a pool of its own at first use; the parent's, whose threads and locks are not usable here,
// is left alone. (Tasks that were queued or running at the fork stay the parent's.)
Pool& pool() {
  Pool* present = current.load(std::memory_order_acquire);
  while (present == nullptr || !present->of_this_process()) {
    Pool* fresh = new Pool;
    if (current.compare_exchange_strong(present, fresh, std::memory_order_acq_rel)) {
      pool_register_exit_hook();
      return *fresh;
    }
    delete fresh;
  }
  return *present;
}

}  // namespace

bool pool_stopping() noexcept {
  const Pool* present = current.load(std::memory_order_acquire);
  return present != nullptr && present->stopping();
}

void pool_register_exit_hook() noexcept { std::atexit(exit_hook); }

}  // namespace finch

extern "C" {

uint32_t finch_pool_threads(void) {
  try {
    return finch::pool().size();
  } catch (...) {
    return 1;
  }
}

finch_status finch_pool_run(void (*task)(void*), void* argument) {
  return finch::guarded([&]() -> finch_status {
    if (task == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "task is NULL; pass the function to run.");
    return finch::pool().submit({task, argument});
  });
}

}  // extern "C"
