// Encoders over onnxruntime: vectors against a float64 reference, refusals, threads, memory, and the end of the
// process. TOOLFINCH_ONNXRUNTIME is the library's path; without it only what needs no library is tested.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "answer.hpp"
#include "encoder_fixture.hpp"
#include "toolfinch.h"

#if !defined(_WIN32)
#include <unistd.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FINCH_TEST_SANITIZED 1
#else
#define FINCH_TEST_SANITIZED 0
#endif

namespace {

using namespace finch_test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

class Encoder {
 public:
  explicit Encoder(const Settings& settings) : dimension_(settings.dimension) {
    EXPECT_EQ(settings.open(&handle_), FINCH_OK) << finch_last_error();
  }
  ~Encoder() { finch_encoder_release(handle_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  std::vector<float> operator()(const std::vector<std::string>& texts) const {
    const std::vector<finch_string> list = views(texts);
    std::vector<float> out(texts.size() * dimension_);
    EXPECT_EQ(finch_encode(handle_, list.data(), list.size(), out.data(), nullptr), FINCH_OK) << finch_last_error();
    return out;
  }
  finch_encoder* get() const { return handle_; }
  uint32_t dimension() const { return dimension_; }

 private:
  finch_encoder* handle_ = nullptr;
  uint32_t dimension_;
};

void submit(const Encoder& encoder, const std::vector<std::string>& texts, Answer& answer,
            finch_cancel* cancel = nullptr) {
  answer.width = encoder.dimension();
  const std::vector<finch_string> list = views(texts);
  ASSERT_EQ(finch_encode_submit(encoder.get(), list.data(), list.size(), cancel, Answer::done, &answer), FINCH_OK)
      << finch_last_error();
}

Json vectors_file() {
  std::ifstream file(kFixtures + "encoder_vectors.json");
  return Json::parse(file);
}

void expect_reference(const std::vector<float>& got, const std::string& pooling, const std::vector<Json>& cases) {
  for (size_t i = 0; i < cases.size(); i++) {
    const auto expected = cases[i][pooling].get<std::vector<double>>();
    double norm = 0;
    for (size_t k = 0; k < kDimension; k++) {
      EXPECT_NEAR(got[i * kDimension + k], expected[k], 2e-6) << cases[i]["text"] << " " << k;
      norm += double{got[i * kDimension + k]} * got[i * kDimension + k];
    }
    EXPECT_NEAR(norm, 1, 1e-6);
  }
}

class EncoderBatches : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(BatchSizes, EncoderBatches, testing::Values(1, 2, 16));

TEST_P(EncoderBatches, VectorsAreTheReferences) {
  NEEDS_RUNTIME();
  const std::vector<Json> cases = vectors_file()["cases"];
  std::vector<std::string> texts;
  for (const Json& one : cases) texts.push_back(one["text"]);
  Settings settings;
  settings.batch_size = GetParam();
  expect_reference(Encoder(settings)(texts), "mean", cases);
  settings.output = "pooled";
  settings.pooling = FINCH_POOL_NONE;
  expect_reference(Encoder(settings)(texts), "mean", cases);
  settings.output = "hidden";
  settings.pooling = FINCH_POOL_CLS;
  const Encoder encoder(settings);
  expect_reference(encoder(texts), "cls", cases);
  Answer answer;
  submit(encoder, texts, answer);
  answer.wait();
  ASSERT_EQ(answer.status, FINCH_OK) << answer.message;
  expect_reference(answer.results, "cls", cases);
}

TEST(Encoder, ATextsBitsDependOnNothingElse) {
  NEEDS_RUNTIME();
  const Encoder encoder{Settings{}};
  std::vector<std::string> texts;
  for (int i = 0; i < 40; i++) {
    std::string text;
    for (int k = 0; k <= i % 9; k++) text += (i + k) % 3 == 0 ? "play music " : "pay x" + std::to_string(i) + " ";
    texts.push_back(text);
  }
  const std::vector<float> together = encoder(texts);
  for (size_t i = 0; i < texts.size(); i++) {
    const std::vector<float> alone = encoder({texts[i]});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(i * kDimension)))
        << i;
  }
  std::vector<Answer> answers(8);
  for (Answer& answer : answers) submit(encoder, texts, answer);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++) threads.emplace_back([&] { wrong += encoder(texts) != together; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (Answer& answer : answers) {
    answer.wait();
    EXPECT_EQ(answer.status, FINCH_OK) << answer.message;
    EXPECT_EQ(answer.results, together);
    EXPECT_EQ(answer.calls, 1);
  }
}

TEST(Encoder, TakesAnyText) {
  NEEDS_RUNTIME();
  const Encoder encoder{Settings{}};
  EXPECT_EQ(encoder({"play \xFF\xFEmusic"}), encoder({"play music"}));
  EXPECT_EQ(encoder({""}), encoder({" \n"}));
  EXPECT_NE(encoder({"[SEP]"}), encoder({""}));
  const std::string long_text(1 << 20, 'x');
  EXPECT_EQ(encoder({long_text}), encoder({long_text}));
  std::string words;
  for (int i = 0; i < 5000; i++) words += "map ";
  EXPECT_EQ(encoder({words}), encoder({words + "light"})) << "cut to max_tokens";
  EXPECT_EQ(finch_encode(encoder.get(), nullptr, 0, nullptr, nullptr), FINCH_OK);
}

TEST(Encoder, TheEmbeddedModelGivesTheGoldenVectors) {
  NEEDS_RUNTIME();
  const std::string folder = kRoot + "/models/toolfinch-retriever/";
  std::ifstream manifest_file(folder + "manifest.json");
  ASSERT_TRUE(manifest_file) << folder;
  const Json manifest = Json::parse(manifest_file);
  Settings settings;
  settings.model = folder + manifest["model"]["file"].get<std::string>();
  settings.vocab = folder + manifest["tokenizer"]["vocab"].get<std::string>();
  settings.output = manifest["model"]["output"];
  settings.dimension = manifest["dimension"];
  settings.max_tokens = manifest["maxTokens"];
  const std::string pooling = manifest["pooling"];
  settings.pooling = pooling == "mean" ? FINCH_POOL_MEAN : pooling == "cls" ? FINCH_POOL_CLS : FINCH_POOL_NONE;
  const Encoder encoder(settings);
  std::ifstream golden(kRoot + "/test/golden/encoder.jsonl");
  ASSERT_TRUE(golden);
  size_t count = 0;
  for (std::string line; std::getline(golden, line); count++) {
    const Json one = Json::parse(line);
    const auto expected = one["vector"].get<std::vector<double>>();
    const std::vector<float> got = encoder({one["text"].get<std::string>()});
    ASSERT_EQ(got.size(), expected.size());
    double cosine = 0, norm = 0;
    for (size_t k = 0; k < got.size(); k++) {
      cosine += got[k] * expected[k];
      norm += expected[k] * expected[k];
    }
    // int8 kernels of other processors round otherwise.
    EXPECT_GT(cosine / std::sqrt(norm), 0.999) << one["text"];
  }
  EXPECT_GT(count, 20u);
}

TEST(Encoder, CancelledWorkIsAborted) {
  NEEDS_RUNTIME();
  const Encoder encoder{Settings{}};
  finch_cancel* cancel = nullptr;
  ASSERT_EQ(finch_cancel_create(&cancel), FINCH_OK);
  Answer answer, other;
  submit(encoder, std::vector<std::string>(20000, "send the message to x"), answer, cancel);
  finch_cancel_signal(cancel);
  submit(encoder, {"play music"}, other);
  answer.wait();
  other.wait();
  EXPECT_EQ(answer.status, FINCH_ABORTED);
  EXPECT_TRUE(answer.results.empty());
  EXPECT_EQ(answer.calls, 1);
  EXPECT_EQ(other.status, FINCH_OK);
  const finch_string text{"x", 1};
  std::vector<float> out(kDimension, -7);
  EXPECT_EQ(finch_encode(encoder.get(), &text, 1, out.data(), cancel), FINCH_ABORTED);
  EXPECT_EQ(out, std::vector<float>(kDimension, -7));
  finch_cancel_release(cancel);
}

TEST(Encoder, RefusesAMissingOrWrongRuntime) {
  Settings settings;
  settings.runtime = "/no/such/libonnxruntime.so";
  EXPECT_EQ(settings.refused(), FINCH_DEVICE);
  EXPECT_TRUE(said("/no/such/libonnxruntime.so")) << finch_last_error();
  settings.runtime = kFixtures;
  EXPECT_EQ(settings.refused(), FINCH_DEVICE);
  settings.runtime = kFixtures + "encoder.onnx";
  EXPECT_EQ(settings.refused(), FINCH_DEVICE);
  EXPECT_TRUE(said("could not be loaded")) << finch_last_error();
#if defined(__linux__)
  for (const char* other :
       {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"}) {
    if (!fs::exists(other)) continue;
    settings.runtime = other;
    EXPECT_EQ(settings.refused(), FINCH_DEVICE);
    EXPECT_TRUE(said("OrtGetApiBase")) << finch_last_error();
  }
#endif
}

TEST(Encoder, RefusesUnsuitableModels) {
  NEEDS_RUNTIME();
  const auto expect = [](const Settings& settings, finch_status status, const std::string& part) {
    EXPECT_EQ(settings.refused(), status) << finch_last_error();
    EXPECT_TRUE(said(part)) << "expected \"" << part << "\" in: " << finch_last_error();
  };
  Settings s;
  s.model = "/no/such/model.onnx";
  expect(s, FINCH_IO, "/no/such/model.onnx");
  s = Settings{};
  s.model = kFixtures;
  expect(s, FINCH_IO, "folder");
  s = Settings{};
  s.model = kFixtures + "encoder_vocab.txt";
  expect(s, FINCH_DEVICE, "Protobuf");
  s = Settings{};
  s.model = kFixtures + "encoder_unknown_operator.onnx";
  expect(s, FINCH_DEVICE, "NoSuchOperator");
  s = Settings{};
  s.model = kFixtures + "encoder_extra_input.onnx";
  expect(s, FINCH_DEVICE, "pixel_values");
  s = Settings{};
  s.model = kFixtures + "encoder_int32.onnx";
  expect(s, FINCH_DEVICE, "int64");
  s = Settings{};
  s.output = "nothing";
  expect(s, FINCH_INVALID_ARGUMENT, "hidden, pooled");
  s = Settings{};
  s.output = "half";
  s.pooling = FINCH_POOL_NONE;
  expect(s, FINCH_DEVICE, "float32");
  s = Settings{};
  s.dimension = 384;
  expect(s, FINCH_DIMENSION, "dimension 16, expected 384");
  s = Settings{};
  s.pooling = FINCH_POOL_NONE;
  expect(s, FINCH_INVALID_ARGUMENT, "3 axes");
  s = Settings{};
  s.output = "pooled";
  expect(s, FINCH_INVALID_ARGUMENT, "2 axes");
  s.pooling = FINCH_POOL_NONE;
  s.output = "not_finite";
  expect(s, FINCH_NOT_FINITE, "NaN");
  s.output = "zeros";
  expect(s, FINCH_ZERO_VECTOR, "zeros");
  // The model has 64 positions and 97 words.
  s = Settings{};
  s.max_tokens = 65;
  expect(s, FINCH_DEVICE, "65 tokens");
  s = Settings{};
  const std::string vocab =
      (fs::temp_directory_path() / ("finch_words_" + std::to_string(std::random_device{}()))).string();
  {
    std::ifstream small(s.vocab);
    std::ofstream large(vocab);
    large << small.rdbuf() << "onetoomany\n";
  }
  s.vocab = vocab;
  expect(s, FINCH_DEVICE, "vocabulary");
  fs::remove(vocab);
}

TEST(Encoder, RefusesBadArguments) {
  const auto refused = [](auto change) {
    Settings settings;
    change(settings);
    return settings.refused();
  };
  EXPECT_EQ(refused([](Settings& s) { s.runtime = ""; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.model = ""; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.output = ""; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.dimension = 0; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.dimension = 65537; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.max_tokens = 2; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.max_tokens = 65537; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.batch_size = 257; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.pooling = 3; }), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](Settings& s) { s.pooling = -1; }), FINCH_INVALID_ARGUMENT);
  finch_encoder* out = nullptr;
  finch_encoder_options options{};
  EXPECT_EQ(finch_encoder_open(&options, &out), FINCH_INVALID_ARGUMENT) << "size is 0";
  options.size = sizeof(options);
  options.runtime_path = options.model_path = options.output_name = "x";
  options.dimension = 1;
  EXPECT_EQ(finch_encoder_open(&options, &out), FINCH_INVALID_ARGUMENT) << "no tokenizer";
  EXPECT_EQ(finch_encoder_open(nullptr, &out), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  finch_encoder_retain(nullptr);
  finch_encoder_release(nullptr);
  EXPECT_STREQ(finch_encoder_runtime(nullptr), "");

  const finch_string text{"x", 1}, missing{nullptr, 1};
  float vector[kDimension] = {-7};
  EXPECT_EQ(finch_encode(nullptr, &text, 1, vector, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_encode_submit(nullptr, &text, 1, nullptr, Answer::done, nullptr), FINCH_INVALID_ARGUMENT);
  NEEDS_RUNTIME();
  const Encoder encoder{Settings{}};
  EXPECT_EQ(finch_encode(encoder.get(), &missing, 1, vector, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_encode(encoder.get(), nullptr, 1, vector, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_encode(encoder.get(), &text, 1, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_encode_submit(encoder.get(), &text, 1, nullptr, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_encode_submit(encoder.get(), &missing, 1, nullptr, Answer::done, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(vector[0], -7);
}

TEST(Encoder, TellsTheRuntimesVersion) {
  NEEDS_RUNTIME();
  const Encoder encoder{Settings{}};
  int major = 0, minor = 0;
  EXPECT_EQ(std::sscanf(finch_encoder_runtime(encoder.get()), "%d.%d", &major, &minor), 2);
  EXPECT_EQ(major, 1);
  EXPECT_GE(minor, 17);
}

#if defined(__linux__)
// onnxruntime 1.30 would start an uploader and write a device id.
TEST(ProcessWide, TheRuntimeSendsNothingHome) {
  NEEDS_RUNTIME();
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const fs::path cache = fs::temp_directory_path() / ("finch_cache_" + std::to_string(std::random_device{}()));
  EXPECT_EXIT(
      {
        setenv("XDG_CACHE_HOME", cache.c_str(), 1);
        setenv("HOME", cache.c_str(), 1);
        unsetenv("ORT_DISABLE_TELEMETRY");
        const auto threads = [] {
          return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator{});
        };
        const auto before = threads();
        finch_encoder* encoder = nullptr;
        if (Settings{}.open(&encoder) != FINCH_OK) _exit(1);
        if (threads() != before) _exit(2);
        if (fs::exists(cache)) _exit(3);
        if (fs::exists(fs::temp_directory_path() / ("mat-debug-" + std::to_string(getpid()) + ".log"))) _exit(4);
        _exit(7);
      },
      testing::ExitedWithCode(7), testing::Eq(""));
  fs::remove_all(cache);
}
#endif

TEST(Encoder, MayBeReleasedWhileOthersUseIt) {
  NEEDS_RUNTIME();
  for (int round = 0; round < 10; round++) {
    finch_encoder* encoder = nullptr;
    ASSERT_EQ(Settings{}.open(&encoder), FINCH_OK);
    std::vector<Answer> answers(4);
    const finch_string text{"send message", 12};
    const std::vector<finch_string> texts(30, text);
    for (Answer& answer : answers) {
      answer.width = kDimension;
      ASSERT_EQ(finch_encode_submit(encoder, texts.data(), texts.size(), nullptr, Answer::done, &answer), FINCH_OK);
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
      finch_encoder_retain(encoder);
      threads.emplace_back([encoder, &texts] {
        std::vector<float> out(texts.size() * kDimension);
        EXPECT_EQ(finch_encode(encoder, texts.data(), texts.size(), out.data(), nullptr), FINCH_OK);
        finch_encoder_release(encoder);
      });
    }
    finch_encoder_release(encoder);
    for (Answer& answer : answers) {
      answer.wait();
      EXPECT_EQ(answer.status, FINCH_OK) << answer.message;
    }
    for (std::thread& thread : threads) thread.join();
  }
}

#if defined(__linux__)
long resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  long total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / (1 << 20);
}

TEST(Encoder, ReopeningDoesNotEatMemory) {
  NEEDS_RUNTIME();
  long before = 0;
  for (int round = 0; round < 60; round++) {
    if (round == 20) before = resident_megabytes();
    const Encoder encoder{Settings{}};
    encoder({"pay for the event"});
  }
  const long growth = resident_megabytes() - before;
  // A leaked session of the tiny model is about 1 MB. Sanitizers keep freed memory.
  EXPECT_LT(growth, FINCH_TEST_SANITIZED ? 1000 : 12) << "MB after 40 rounds";
}
#endif

}  // namespace
