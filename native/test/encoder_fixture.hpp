// What the encoder tests share: the tiny model of fixtures/make_encoder.py and where its parts are.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "toolfinch.h"

namespace finch_test {

// Never destroyed: threads of the exit tests use them to the end.
inline const std::string& kRoot = *new std::string(TOOLFINCH_ROOT);
inline const std::string& kFixtures = *new std::string(kRoot + "/native/test/fixtures/");
constexpr uint32_t kDimension = 16;

inline const char* runtime_path() {
  const char* path = std::getenv("TOOLFINCH_ONNXRUNTIME");
  return path != nullptr && path[0] != 0 ? path : nullptr;
}

#define NEEDS_RUNTIME()          \
  if (runtime_path() == nullptr) \
  GTEST_SKIP() << "set TOOLFINCH_ONNXRUNTIME to the path of libonnxruntime to run this test"

// Options of the tiny model, with the strings they point to.
struct Settings {
  std::string runtime = runtime_path() != nullptr ? runtime_path() : "/no/such/library";
  std::string model = kFixtures + "encoder.onnx", vocab = kFixtures + "encoder_vocab.txt", output = "hidden";
  uint32_t dimension = kDimension, max_tokens = 64, batch_size = 1;
  finch_pooling pooling = FINCH_POOL_MEAN;

  finch_status open(finch_encoder** out) const {
    finch_tokenizer_options words{};
    words.size = sizeof(words);
    words.vocab_path = vocab.c_str();
    words.lowercase = words.strip_accents = words.chinese_characters = 1;
    finch_tokenizer* tokenizer = nullptr;
    if (const finch_status status = finch_tokenizer_open(&words, &tokenizer); status != FINCH_OK) return status;
    finch_encoder_options options{};
    options.size = sizeof(options);
    options.runtime_path = runtime.c_str();
    options.model_path = model.c_str();
    options.tokenizer = tokenizer;
    options.output_name = output.c_str();
    options.dimension = dimension;
    options.max_tokens = max_tokens;
    options.pooling = pooling;
    options.batch_size = batch_size;
    const finch_status status = finch_encoder_open(&options, out);
    finch_tokenizer_release(tokenizer);
    return status;
  }

  // Opening must fail and leave the output alone.
  finch_status refused() const {
    auto* untouched = reinterpret_cast<finch_encoder*>(0x10);
    const finch_status status = open(&untouched);
    EXPECT_EQ(untouched, reinterpret_cast<finch_encoder*>(0x10));
    return status;
  }
};

inline bool said(const std::string& part) { return std::string(finch_last_error()).find(part) != std::string::npos; }

}  // namespace finch_test
