#include "exit_gate.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace finch {
namespace {

// Runs end within one operator of being told to; only making a session (reading a model) can take longer.
constexpr std::chrono::milliseconds kLongestWait{1500};
// Before exit() there is time for that too: no hook can be sure to come before what it makes.
constexpr std::chrono::seconds kLongestShutdown{10};

int64_t process_id() noexcept {
#if defined(_WIN32)
  return 0;  // no fork()
#else
  return getpid();
#endif
}

// How often this thread is inside: a thread that calls exit() from there must not wait for itself.
thread_local uint32_t own_stays = 0;

}  // namespace

struct GateState {
  std::mutex mutex;
  std::condition_variable left;
  ExitGate* first = nullptr;
  uint32_t inside = 0;
  std::atomic<bool> closed{false};
  // Threads that were inside are not in a forked child, so it must not wait for them.
  const int64_t process = process_id();

  void enter(ExitGate* stay) noexcept {
    std::lock_guard lock(mutex);
    if (closed.load(std::memory_order_relaxed)) return;
    stay->after_ = first;
    if (first != nullptr) first->before_ = stay;
    first = stay;
    inside++;
    own_stays++;
    stay->open_ = true;
  }

  void leave(ExitGate* stay) noexcept {
    {
      std::lock_guard lock(mutex);
      (stay->before_ != nullptr ? stay->before_->after_ : first) = stay->after_;
      if (stay->after_ != nullptr) stay->after_->before_ = stay->before_;
      inside--;
      own_stays--;
    }
    left.notify_all();
  }

  // False when somebody is still inside after the longest wait.
  bool close(std::chrono::milliseconds longest) noexcept {
    std::unique_lock lock(mutex);
    closed.store(true, std::memory_order_relaxed);
    for (ExitGate* stay = first; stay != nullptr; stay = stay->after_) {
      if (stay->options_ == nullptr) continue;
      ort::Status* status = stay->api_->set_terminate(stay->options_);
      if (status != nullptr) stay->api_->release_status(status);
    }
    return left.wait_for(lock, longest, [this] { return inside <= own_stays; });
  }
};

namespace {

// Never destroyed: it is used until the last moment of the process.
GateState& state() noexcept {
  static GateState* const gate = new GateState;
  return *gate;
}

void on_exit_hook(int status) noexcept {
  GateState& gate = state();
  if (gate.process != process_id() || gate.close(kLongestWait)) return;
#if defined(__GLIBC__)
  // Going on would destroy what is in use. Leave as exit() would have in the end, without the destructors.
  std::fflush(nullptr);
  _exit(status);
#else
  (void)status;
#endif
}

}  // namespace

void exit_gate_register() noexcept {
  state();
#if defined(_WIN32)
  // Other threads are gone before a library's exit hooks run.
#elif defined(__GLIBC__)
  on_exit([](int status, void*) { on_exit_hook(status); }, nullptr);
#else
  std::atexit([] { on_exit_hook(0); });
#endif
}

void exit_gate_close(std::chrono::milliseconds longest) noexcept {
  // Who is still inside may have made static objects since the hook was registered: it must come before them.
  if (!state().close(longest)) exit_gate_register();
}

bool exit_gate_closed() noexcept { return state().closed.load(std::memory_order_relaxed); }

ExitGate::ExitGate(const ort::Api* api, ort::RunOptions* options) noexcept : api_(api), options_(options) {
  state().enter(this);
}

ExitGate::~ExitGate() {
  if (open_) state().leave(this);
}

}  // namespace finch

extern "C" void finch_shutdown(void) { finch::exit_gate_close(finch::kLongestShutdown); }
