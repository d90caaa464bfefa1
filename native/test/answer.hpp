// What `done` of a queued request said.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "toolfinch.h"

namespace finch_test {

struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t width = 1;  // floats a text; to be set before the request
  int calls = 0;
  finch_status status = -1;
  std::string message;
  std::vector<float> results;
  bool had_results = false;
  size_t count = 0;
  std::function<void()> then;

  static void done(void* user, finch_status status, const char* message, const float* results, size_t count) {
    auto& answer = *static_cast<Answer*>(user);
    if (answer.then) answer.then();
    std::lock_guard lock(answer.mutex);
    answer.calls++;
    answer.status = status;
    answer.message = message;
    answer.count = count;
    answer.had_results = results != nullptr;
    if (results != nullptr) answer.results.assign(results, results + count * answer.width);
    answer.changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return calls > 0; });
  }
  bool wait_for(std::chrono::seconds longest) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, longest, [this] { return calls > 0; });
  }
};

// Of texts that outlive the views.
inline std::vector<finch_string> views(const std::vector<std::string>& texts) {
  std::vector<finch_string> list;
  for (const std::string& text : texts) list.push_back({text.data(), text.size()});
  return list;
}

}  // namespace finch_test
