// Tokenizers and encoders.
#include <vector>

#include "entry.hpp"
#include "model_calls.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

finch_string view(const std::optional<std::string>& text) {
  return text.has_value() ? finch_string{text->data(), text->size()} : finch_string{nullptr, 0};
}

Napi::Value tokenizer_open(const Arguments& arguments) {
  const Options given(arguments.env(), arguments[0], "options", false);
  const std::string vocab_path = given.c_string("vocabPath");
  const std::optional<std::string> unknown = given.optional_string("unknown");
  const std::optional<std::string> start = given.optional_string("start");
  const std::optional<std::string> end = given.optional_string("end");
  const std::optional<std::string> pad = given.optional_string("pad");
  const std::optional<std::string> continuation = given.optional_string("continuation");
  finch_tokenizer_options options = {};
  options.size = sizeof(options);
  options.vocab_path = vocab_path.c_str();
  options.lowercase = given.boolean("lowercase") ? 1 : 0;
  options.strip_accents = given.boolean("stripAccents") ? 1 : 0;
  options.chinese_characters = given.boolean("chineseCharacters") ? 1 : 0;
  options.max_word_characters = given.whole_or("maxWordCharacters", 1, 0xffffffff, 0);
  options.unknown = view(unknown);
  options.start = view(start);
  options.end = view(end);
  options.pad = view(pad);
  options.continuation = view(continuation);
  finch_tokenizer* tokenizer = nullptr;
  check(finch_tokenizer_open(&options, &tokenizer));
  return make_handle(arguments.env(), own(tokenizer));
}

Napi::Value tokenize(const Arguments& arguments) {
  const std::shared_ptr<finch_tokenizer> tokenizer = arguments.handle<finch_tokenizer>(0, "tokenizer").object;
  const std::string text = read_string(arguments.env(), arguments[1], "text", Surrogates::replace);
  constexpr uint32_t kMostTokens = 1u << 20;
  const uint32_t max_tokens = arguments.whole(2, "maxTokens", 3, kMostTokens);
  std::vector<int32_t> ids(max_tokens);
  size_t count = 0;
  check(finch_tokenize(tokenizer.get(), {text.data(), text.size()}, max_tokens, ids.data(), &count));
  return {arguments.env(), copy_array<int32_t>(arguments.env(), {ids.data(), count})};
}

class EncoderOpenCall final : public ModelOpenCall<finch_encoder_options, finch_encoder, finch_encoder_open> {
 public:
  explicit EncoderOpenCall(const Options& given) : ModelOpenCall(given) {
    options().dimension = given.whole("dimension", 1, FINCH_MAX_DIMENSION);
    options().max_tokens = given.whole_or("maxTokens", 3, 0xffffffff, 0);
    options().pooling =
        given.choice("pooling", {{"none", FINCH_POOL_NONE}, {"mean", FINCH_POOL_MEAN}, {"cls", FINCH_POOL_CLS}}, false);
  }

 private:
  Napi::Value result(Napi::Env env) override { return make_handle(env, take(), options().dimension); }
};

Napi::Value encoder_open(const Arguments& arguments) {
  const Options options(arguments.env(), arguments[0], "options", false);
  return EncoderOpenCall::open(arguments, options, std::make_unique<EncoderOpenCall>(options));
}

Napi::Value encoder_close(const Arguments& arguments) {
  arguments.close<finch_encoder>(0, "encoder");
  return arguments.env().Undefined();
}

Napi::Value encoder_runtime(const Arguments& arguments) {
  const std::shared_ptr<finch_encoder> encoder = arguments.handle<finch_encoder>(0, "encoder").object;
  return Napi::String::New(arguments.env(), finch_encoder_runtime(encoder.get()));
}

class EncodeCall final : public QueuedCall {
 public:
  EncodeCall(std::shared_ptr<finch_encoder> encoder, uint32_t dimension, Strings texts,
             std::shared_ptr<finch_cancel> cancel)
      : QueuedCall(std::move(cancel), dimension,
                   "Out of memory; nothing was changed. Free some or encode fewer texts at a time."),
        encoder_(std::move(encoder)),
        texts_(std::move(texts)) {}

 private:
  finch_status submit() override {
    return finch_encode_submit(encoder_.get(), texts_.data(), texts_.size(), cancel(), on_done, this);
  }

  std::shared_ptr<finch_encoder> encoder_;
  Strings texts_;
};

Napi::Value encode(const Arguments& arguments) {
  const Box<finch_encoder>& box = arguments.handle<finch_encoder>(0, "encoder");
  std::shared_ptr<finch_encoder> encoder = box.object;
  const uint32_t dimension = box.dimension;
  std::shared_ptr<finch_cancel> cancel = arguments.cancel(2);
  return AsyncCall::start(arguments.env(), std::make_unique<EncodeCall>(std::move(encoder), dimension,
                                                                        arguments.texts(1), std::move(cancel)));
}

constexpr Export kExports[] = {
    {"tokenizerOpen", sync_entry<tokenizer_open>},   {"tokenize", sync_entry<tokenize>},
    {"encoderOpen", async_entry<encoder_open>},      {"encoderClose", sync_entry<encoder_close>},
    {"encoderRuntime", sync_entry<encoder_runtime>}, {"encode", async_entry<encode>},
};

}  // namespace

std::span<const Export> encode_exports() { return kExports; }

}  // namespace finch::node
