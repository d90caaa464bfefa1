// Process exit. While exit() runs static destructors, threads that are inside onnxruntime would use destroyed objects
// and crash. So every call into it passes this gate, and an exit hook that runs before onnxruntime's destructors closes
// the gate, stops what is running and waits until nobody is inside.
#pragma once

#include <chrono>

#include "ort_api.hpp"

namespace finch {

// Registers the exit hook once more. Exit hooks run in reverse order of registration, so it is called after everything
// that may have made onnxruntime construct a static object: opening the library, a session, the first run. The hook may
// run many times.
void exit_gate_register() noexcept;

// Closes the gate now and waits until nobody is inside, `longest` at most. In vain: the exit hook will come before all
// that was made so far.
void exit_gate_close(std::chrono::milliseconds longest) noexcept;

// True once the process is exiting: nothing may be started, and nobody waits for results any more.
bool exit_gate_closed() noexcept;

// A stay inside onnxruntime: construct it before the call, check open(), destroy it after.
class ExitGate {
 public:
  ExitGate() noexcept : ExitGate(nullptr, nullptr) {}
  // With a run's options the run is terminated when the process exits; they must outlive the stay.
  ExitGate(const ort::Api* api, ort::RunOptions* options) noexcept;
  ~ExitGate();
  ExitGate(const ExitGate&) = delete;
  ExitGate& operator=(const ExitGate&) = delete;

  bool open() const noexcept { return open_; }

 private:
  friend struct GateState;

  const ort::Api* api_;
  ort::RunOptions* options_;
  ExitGate* before_ = nullptr;
  ExitGate* after_ = nullptr;
  bool open_ = false;
};

}  // namespace finch
