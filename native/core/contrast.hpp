// Contrast: failures that depend on what a tool is asked. A tool that failed and worked again keeps the mean direction
// of the contexts it worked in since its first failure and that of those it failed in. A context nearer to the second
// is foreseen to fail: the tool waits there, and goes on elsewhere. Such a wait is ended by trials on a budget of their
// own, and by the contrast's own record: once it foresees failures that do not come, it is not believed.
//
// Every table of kernels gives the same bits, and the rest is single additions, multiplications, divisions and square
// roots: the same outcomes give the same bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trials.hpp"

namespace finch {

class Contrast {
 public:
  // Throws std::bad_alloc.
  explicit Contrast(size_t dimension);

  // cos(x, contexts that worked) - cos(x, contexts that failed) for |x| = `length`, in [-2, 2]; NaN while there are not
  // both.
  float at(const float* x, double length) const noexcept;
  // The same, with x's products with worked() and failed() at hand; `rules` must hold.
  float of(const float* products, double length) const noexcept;
  // Whether there are contexts of both kinds.
  bool rules() const noexcept { return worked_length_ > 0.0 && failed_length_ > 0.0; }
  // Whether a context with this `at` is foreseen to fail. Contexts that are the same but for rounding are not.
  static bool foresees(float at) noexcept { return at < -1e-4f; }
  // Whether what it foresees has come true at least as often as not, of late.
  bool is_believed() const noexcept { return balance >= 0.0; }
  // Whether a context that is foreseen to fail has to wait at `now`: after a failure h 2^(f - 1), at most h_max, f the
  // failures in a row that were foreseen; then until the budget has room.
  bool waits(const AvailabilityRule& rule, const TrialBudget& budget, double now) const noexcept;
  // Learns an outcome in the context x, of the same length in all calls; `seen` is at(x, its length).
  void learn(const float* x, float seen, double y, double now) noexcept;

  // Nothing was learnt.
  bool is_empty() const noexcept { return !(failed_length_ > 0.0); }
  size_t dimension() const noexcept { return dimension_; }
  const float* worked() const noexcept { return vectors_.get(); }
  const float* failed() const noexcept { return vectors_.get() + dimension_; }
  // Both sums as they were stored, not looked at.
  float* room() noexcept { return vectors_.get(); }
  // After `room` was written.
  void measure() noexcept;

  double balance = 0.0;   // t <- 0.8 t + 1 for a failure that was foreseen, - 1 for a success in place of one
  double time = 0.0;      // of the latest failure in a context
  uint32_t foreseen = 0;  // failures in a row that came as foreseen

 private:
  size_t dimension_;
  std::unique_ptr<float[]> vectors_;  // sums of contexts: s <- 0.9 s + x
  double worked_length_ = 0.0;
  double failed_length_ = 0.0;
};

}  // namespace finch
