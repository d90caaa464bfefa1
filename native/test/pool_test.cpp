#include "core/pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "toolfinch.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

class Latch {
 public:
  explicit Latch(int count) : count_(count) {}
  void count_down() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) done_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return count_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  int count_;
};

TEST(Pool, RunsEveryTaskOnceFromManyThreads) {
  constexpr int kSubmitters = 4, kTasks = 2000;
  struct Shared {
    Latch latch{kSubmitters * kTasks};
    std::atomic<int> ran{0};
  } shared;
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s) {
    submitters.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) {
        const finch_status status = finch_pool_run(
            [](void* argument) {
              auto* all = static_cast<Shared*>(argument);
              all->ran.fetch_add(1);
              all->latch.count_down();
            },
            &shared);
        ASSERT_EQ(status, FINCH_OK);
      }
    });
  }
  for (auto& thread : submitters) thread.join();
  shared.latch.wait();
  EXPECT_EQ(shared.ran.load(), kSubmitters * kTasks);
}

TEST(Pool, UsesAsManyThreadsAsItSaysAndNotTheCaller) {
  const uint32_t threads = finch_pool_threads();
  ASSERT_GE(threads, 1u);
  struct Shared {
    std::mutex mutex;
    std::condition_variable all_here;
    std::set<std::thread::id> ids;
    uint32_t wanted;
    Latch latch;
  } shared{{}, {}, {}, threads, Latch(static_cast<int>(threads))};
  // Each task holds its thread until all threads have one: fewer threads would never finish.
  for (uint32_t i = 0; i < threads; ++i) {
    ASSERT_EQ(finch_pool_run(
                  [](void* argument) {
                    auto* all = static_cast<Shared*>(argument);
                    std::unique_lock lock(all->mutex);
                    all->ids.insert(std::this_thread::get_id());
                    if (all->ids.size() == all->wanted) all->all_here.notify_all();
                    all->all_here.wait(lock, [all] { return all->ids.size() == all->wanted; });
                    lock.unlock();
                    all->latch.count_down();
                  },
                  &shared),
              FINCH_OK);
  }
  shared.latch.wait();
  EXPECT_EQ(shared.ids.size(), threads);
  EXPECT_EQ(shared.ids.count(std::this_thread::get_id()), 0u);
}

TEST(Pool, RefusesNoTask) {
  EXPECT_EQ(finch_pool_run(nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(finch_last_error()).find("task"), std::string::npos);
}

TEST(Pool, IsNotStoppingWhileTheProcessRuns) {
  ASSERT_EQ(finch_pool_threads() > 0, true);
  EXPECT_FALSE(finch::pool_stopping());
}

#if !defined(_WIN32)
TEST(PoolDeathTest, SizeFollowsTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // Each case in a process of its own, which finds the variable set from its start.
  const auto expect = [](const char* value, uint32_t threads) {
    setenv("TOOLFINCH_THREADS", value, 1);
    EXPECT_EXIT(std::_Exit(finch_pool_threads() == threads ? 0 : 1), testing::ExitedWithCode(0), "") << value;
    unsetenv("TOOLFINCH_THREADS");
  };
  const uint32_t usual = finch_pool_threads();
  expect("1", 1);
  expect("7", 7);
  expect("1024", 1024);
  for (const char* refused : {"", "0", "-1", "1025", "4294967297", "3x", " 3", "3.0"}) expect(refused, usual);
}

std::atomic<bool> started{false};

TEST(PoolDeathTest, ExitWaitsForRunningTasksThatHeedTheSignal) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        finch_pool_run(
            [](void*) {
              started = true;
              while (!finch::pool_stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              fprintf(stderr, "left early");
            },
            nullptr);
        while (!started) std::this_thread::yield();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "left early");
}

TEST(PoolDeathTest, ATaskMayEndTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        finch_pool_run([](void*) { std::exit(4); }, nullptr);
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
      },
      testing::ExitedWithCode(4), "");
}

TEST(Pool, AForkedChildGetsAPoolOfItsOwn) {
  Latch before(1);
  ASSERT_EQ(finch_pool_run([](void* p) { static_cast<Latch*>(p)->count_down(); }, &before), FINCH_OK);
  before.wait();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Latch inside(1);
    const finch_status status = finch_pool_run([](void* p) { static_cast<Latch*>(p)->count_down(); }, &inside);
    if (status == FINCH_OK) inside.wait();
    std::_Exit(status == FINCH_OK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(Cancel, IsCountedAndTakesNull) {
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  finch_cancel_retain(cancel);
  finch_cancel_signal(cancel);
  finch_cancel_release(cancel);
  finch_cancel_signal(cancel);
  finch_cancel_release(cancel);
  finch_cancel_signal(nullptr);
  finch_cancel_retain(nullptr);
  finch_cancel_release(nullptr);
  EXPECT_EQ(finch_cancel_create(nullptr), FINCH_INVALID_ARGUMENT);
}

}  // namespace
