// The C ABI under arbitrary sequences of calls with arbitrary arguments, within what a caller can get wrong without
// handing over memory that is not there: a documented status each time, nothing written on failure, results in order
// and equal to those of the same calls one by one.
#include "bandit_calls.hpp"
#include "index_calls.hpp"
#include "rank_calls.hpp"
#include "search_calls.hpp"
#include "world.hpp"

using namespace finch_fuzz;

namespace {

void tokenize(Input& in) {
  static const std::string kVocabulary =
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##a\n##b\nthe\n##ing\n\xC3\xA9\n##\xC3\xA9\n\xE4\xBD\xA0\n!\n.\n";
  std::string vocabulary = kVocabulary;
  if (in.one_in(4)) vocabulary[in.word() % vocabulary.size()] = static_cast<char>(in.byte());
  const std::string path = put_file("vocab.txt", vocabulary.data(), vocabulary.size());
  finch_tokenizer_options options{};
  options.vocab_path = in.one_in(32) ? nullptr : path.c_str();
  options.lowercase = in.below(3);
  options.strip_accents = in.below(3);
  options.chinese_characters = in.below(3);
  options.max_word_characters = in.one_in(4) ? in.word() : in.one_in(2) ? 0 : in.below(12);
  const std::string odd(in.below(20), static_cast<char>(in.byte()));
  if (in.one_in(8)) options.unknown = {odd.data(), odd.size()};
  if (in.one_in(8)) options.continuation = {odd.data(), odd.size()};
  if (in.one_in(32)) options.start = {nullptr, 3};
  Sized<finch_tokenizer_options> given(in, options);
  Room<finch_tokenizer*> out(1);
  if (checked(finch_tokenizer_open(in.one_in(32) ? nullptr : given.get(), out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  finch_tokenizer* tokenizer = out.at(0);
  for (int i = 0; i < 3; ++i) {
    const size_t size = in.below(60);
    Room<char> text(size);
    for (size_t j = 0; j < size; ++j) {
      static constexpr char kLikely[] = "ab the ing!. \xC3\xA9\xE4\xBD\xA0\xCC\x81\xEA\xB0\x80\xF0\x9F\x98\x80";
      const uint8_t what = in.byte();
      text.set(j, what < 0xC0 ? kLikely[what % (sizeof(kLikely) - 1)] : static_cast<char>(in.byte()));
    }
    const uint32_t most = in.one_in(16) ? in.word() : in.below(24);
    if (most > 100000) {
      size_t count = 5;
      int32_t none = 0;
      FUZZ_CHECK(checked(finch_tokenize(tokenizer, {text.get(), size}, most, &none, &count)) != FINCH_OK && count == 5);
      continue;
    }
    Room<int32_t> ids(most);
    size_t count = 4242;
    if (checked(finch_tokenize(tokenizer, {in.one_in(64) ? nullptr : text.get(), size}, most, ids.get(), &count)) !=
        FINCH_OK) {
      FUZZ_CHECK(ids.untouched() && count == 4242);
    } else {
      FUZZ_CHECK(count >= 2 && count <= most, "%zu tokens of %u", count, most);
    }
  }
  finch_tokenizer_release(tokenizer);
}

void nothing_there() {
  checked(finch_index_drop_ann(nullptr));
  finch_index_release(nullptr);
  finch_index_retain(nullptr);
  finch_snapshot_release(nullptr);
  finch_snapshot_retain(nullptr);
  finch_allow_release(nullptr);
  finch_bandit_release(nullptr);
  finch_bandit_retain(nullptr);
  finch_cancel_signal(nullptr);
  finch_cancel_release(nullptr);
  finch_cancel_retain(nullptr);
  finch_tokenizer_release(nullptr);
  finch_encoder_release(nullptr);
  FUZZ_CHECK(finch_snapshot_count(nullptr) == 0 && finch_snapshot_version(nullptr) == 0);
  FUZZ_CHECK(finch_pool_run(nullptr, nullptr) != FINCH_OK);
  for (int status = -2; status < 20; ++status) FUZZ_CHECK(std::strlen(finch_status_name(status)) > 7);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  World world;
  for (int calls = 0; !in.empty() && calls < 60; ++calls) {
    switch (in.below(24)) {
      case 0:
        create_index(in, &world);
        break;
      case 1:
      case 2:
      case 3:
        upsert(in, &world);
        break;
      case 4:
        remove_or_rate(in, &world);
        break;
      case 5:
        inspect(in, &world);
        break;
      case 6:
        ann(in, &world);
        break;
      case 7:
        save_and_open(in, &world);
        break;
      case 8:
      case 9:
        take_snapshot(in, &world);
        break;
      case 10:
        read_snapshot(in, &world);
        break;
      case 11:
        make_allow(in, &world);
        break;
      case 12:
      case 13:
        search(in, &world);
        break;
      case 14:
        cosine(in);
        break;
      case 15:
        create_bandit(in, &world);
        break;
      case 16:
        update(in, &world);
        break;
      case 17:
        score(in, &world);
        break;
      case 18:
        carry_state(in, &world);
        break;
      case 19:
        fuse(in);
        break;
      case 20:
        truncate(in);
        break;
      case 21:
        rank(in, &world);
        break;
      case 22:
        tokenize(in);
        break;
      default:
        nothing_there();
        break;
    }
  }
  for (size_t at = 0; at < 3; ++at) check_snapshot(world, at);
  return 0;
}
