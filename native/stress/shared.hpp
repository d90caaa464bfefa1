// What the parts of the stress program share: checks, draws, and handles that one thread replaces while others use
// them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "toolfinch.h"

#define MUST(condition, ...)                                                                         \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      std::fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n  ", __FILE__, __LINE__, #condition, \
                   finch_last_error());                                                              \
      std::fprintf(stderr, " " __VA_ARGS__);                                                         \
      std::fputc('\n', stderr);                                                                      \
      std::_Exit(3);                                                                                 \
    }                                                                                                \
  } while (false)

namespace finch_stress {

using Random = std::mt19937;

inline finch_string text(const std::string& s) { return {s.data(), s.size()}; }

inline uint32_t below(Random& random, uint32_t limit) { return static_cast<uint32_t>(random()) % limit; }

// A handle that threads share while one of them may put another in its place ("close").
template <typename T, void (*Retain)(T*), void (*Release)(T*)>
class Shared {
 public:
  ~Shared() { Release(handle_); }
  std::unique_ptr<T, void (*)(T*)> get() {
    std::lock_guard lock(mutex_);
    Retain(handle_);
    return {handle_, Release};
  }
  void put(T* next) {
    T* old;
    {
      std::lock_guard lock(mutex_);
      old = std::exchange(handle_, next);
    }
    Release(old);
  }

 private:
  std::mutex mutex_;
  T* handle_ = nullptr;
};
using Cancel = Shared<finch_cancel, finch_cancel_retain, finch_cancel_release>;

}  // namespace finch_stress
