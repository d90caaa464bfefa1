// The end of the process while encoders are at work.
#if !defined(_WIN32)
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "encoder_fixture.hpp"
#include "onnx/exit_gate.hpp"
#include "toolfinch.h"

namespace {

using namespace finch_test;

// Each try is a process of its own: threads encode and requests wait when it leaves, at another moment each time. A
// crash, an abort, a hang (SIGALRM) or a word on stderr fails the test.

int tries() {
  const char* given = std::getenv("TOOLFINCH_EXIT_TRIES");
  return given != nullptr ? std::atoi(given) : 12;
}

finch_encoder* busy_encoder() {
  alarm(60);
  finch_encoder* encoder = nullptr;
  if (Settings{}.open(&encoder) != FINCH_OK) std::_Exit(99);
  static constexpr std::string_view text = "send the message for the calendar event to pay x light on the map";
  for (int t = 0; t < 4; t++) {
    finch_encoder_retain(encoder);
    std::thread([encoder] {
      const std::vector<finch_string> texts(8, {text.data(), text.size()});
      std::vector<float> out(texts.size() * kDimension);
      // Refused once the process is leaving.
      while (finch_encode(encoder, texts.data(), texts.size(), out.data(), nullptr) == FINCH_OK) continue;
    }).detach();
  }
  for (size_t i = 0; i < 10; i++) {
    const std::vector<finch_string> texts(300, {text.data(), text.size() - i});
    finch_encode_submit(
        encoder, texts.data(), texts.size(), nullptr, [](void*, finch_status, const char*, const float*, size_t) {},
        nullptr);
  }
  return encoder;
}

void wait_a_moment(int number) { std::this_thread::sleep_for(std::chrono::microseconds(number * 7919 % 30000)); }

class ProcessExit : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    NEEDS_RUNTIME();
  }
};

#define EXPECT_CLEAN_EXITS(...)                      \
  for (int number = 0; number < tries(); number++) { \
    EXPECT_EXIT(                                     \
        {                                            \
          finch_encoder* encoder = busy_encoder();   \
          wait_a_moment(number);                     \
          (void)encoder;                             \
          __VA_ARGS__;                               \
          for (;;) pause();                          \
        },                                           \
        testing::ExitedWithCode(7), testing::Eq("")) \
        << "try " << number;                         \
  }

TEST_F(ProcessExit, FromTheMainThread) { EXPECT_CLEAN_EXITS(std::exit(7)); }
TEST_F(ProcessExit, FromAnotherThread) {
  EXPECT_CLEAN_EXITS(std::thread([] { std::exit(7); }).detach());
}
TEST_F(ProcessExit, FromAPoolThread) {
  EXPECT_CLEAN_EXITS(finch_pool_run([](void*) { std::exit(7); }, nullptr));
}
TEST_F(ProcessExit, FromAnAnswer) {
  EXPECT_CLEAN_EXITS(finch_encode_submit(
      encoder, nullptr, 0, nullptr, [](void*, finch_status, const char*, const float*, size_t) { std::exit(7); },
      nullptr));
}
TEST_F(ProcessExit, AfterRelease) {
  EXPECT_CLEAN_EXITS({
    finch_encoder_release(encoder);
    std::exit(7);
  });
}
TEST_F(ProcessExit, WhileEncodersAreOpenedAndReleased) {
  EXPECT_CLEAN_EXITS({
    std::thread([] {
      for (finch_encoder* other = nullptr; Settings{}.open(&other) == FINCH_OK;) finch_encoder_release(other);
    }).detach();
    wait_a_moment(number + 1);
    std::exit(7);
  });
}

// Exit hooks run in reverse order, so a hook registered before the first encoder runs after the library's, like the
// destructors of everything that was there before.
TEST_F(ProcessExit, NothingIsEncodedAnyMore) {
  static std::atomic<finch_encoder*> late{nullptr};
  EXPECT_EXIT(
      {
        std::atexit([] {
          float vector[kDimension];
          const finch_string text{"x", 1};
          finch_encoder* other = nullptr;
          const bool refused = finch_encode(late, &text, 1, vector, nullptr) == FINCH_CLOSED && said("exiting") &&
                               Settings{}.open(&other) == FINCH_CLOSED;
          finch_encoder_release(late);
          _exit(refused ? 7 : 8);
        });
        late = busy_encoder();
        std::exit(1);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
}

TEST_F(ProcessExit, WaitsForWhoeverIsInside) {
  static std::atomic<bool> inside{false}, left{false};
  EXPECT_EXIT(
      {
        alarm(60);
        std::atexit([] { _exit(left ? 7 : 8); });
        finch::exit_gate_register();
        std::thread([] {
          const finch::ExitGate gate;
          inside = true;
          while (!finch::exit_gate_closed()) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          left = true;
        }).detach();
        while (!inside) std::this_thread::yield();
        std::exit(1);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
}

// A thread that leaves from inside must not wait for itself; one that never comes back must not hold up the process for
// good.
TEST_F(ProcessExit, DoesNotHang) {
  EXPECT_EXIT(
      {
        alarm(60);
        finch::exit_gate_register();
        const finch::ExitGate gate;
        std::exit(7);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
#if defined(__GLIBC__)
  static std::atomic<bool> inside{false};
  EXPECT_EXIT(
      {
        alarm(60);
        std::atexit([] { _exit(8); });
        finch::exit_gate_register();
        std::thread([] {
          const finch::ExitGate gate;
          inside = true;
          for (;;) pause();
        }).detach();
        while (!inside) std::this_thread::yield();
        std::exit(7);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
#endif
}

#if defined(__GLIBC__)
// What is still being opened when a shutdown has waited long enough may have made static objects, whose destructors
// come before the hook that was registered before them.
TEST_F(ProcessExit, AfterAShutdownThatWaitedInVain) {
  static std::atomic<bool> inside{false};
  EXPECT_EXIT(
      {
        alarm(60);
        finch::exit_gate_register();
        std::thread([] {
          const finch::ExitGate gate;
          std::atexit([] { _exit(8); });
          inside = true;
          for (;;) pause();
        }).detach();
        while (!inside) std::this_thread::yield();
        finch::exit_gate_close(std::chrono::milliseconds(20));
        std::exit(7);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
}
#endif

TEST_F(ProcessExit, Quickly) { EXPECT_CLEAN_EXITS(std::quick_exit(7)); }
TEST_F(ProcessExit, AtOnce) { EXPECT_CLEAN_EXITS(_exit(7)); }

}  // namespace
#endif
