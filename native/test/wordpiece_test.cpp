// WordPiece against Hugging Face's tokenizers (golden files), against a slow reference, and with hostile input.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "onnx/unicode.hpp"
#include "toolfinch.h"

namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

const std::string kRoot = TOOLFINCH_ROOT;
const std::string kVocabulary = kRoot + "/models/all-minilm-l6-v2/vocab.txt";
constexpr int32_t kUnknown = 100, kStart = 101, kEnd = 102;

finch_tokenizer_options options_for(const std::string& vocab, bool lowercase = true, bool strip = true,
                                    bool chinese = true) {
  finch_tokenizer_options options{};
  options.size = sizeof(options);
  options.vocab_path = vocab.c_str();
  options.lowercase = lowercase;
  options.strip_accents = strip;
  options.chinese_characters = chinese;
  return options;
}

class Tokenizer {
 public:
  explicit Tokenizer(const finch_tokenizer_options& options) {
    EXPECT_EQ(finch_tokenizer_open(&options, &handle_), FINCH_OK) << finch_last_error();
  }
  ~Tokenizer() { finch_tokenizer_release(handle_); }
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  Ids operator()(const std::string& text, uint32_t max_tokens = 256) const {
    // A guard behind the room that is promised to be enough.
    Ids ids(max_tokens + 1, -7);
    size_t count = 0;
    EXPECT_EQ(finch_tokenize(handle_, {text.data(), text.size()}, max_tokens, ids.data(), &count), FINCH_OK)
        << finch_last_error();
    EXPECT_LE(count, max_tokens);
    EXPECT_EQ(ids.back(), -7);
    ids.resize(count);
    return ids;
  }
  finch_tokenizer* get() const { return handle_; }

 private:
  finch_tokenizer* handle_ = nullptr;
};

// A vocabulary file that is gone after the test.
class VocabularyFile {
 public:
  explicit VocabularyFile(const std::string& content) {
    static std::atomic<int> number{0};
    path_ = (fs::temp_directory_path() /
             ("finch_vocab_" + std::to_string(std::random_device{}()) + "_" + std::to_string(number++)))
                .string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~VocabularyFile() { fs::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<Json> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

finch_status open_error(const finch_tokenizer_options& options) {
  auto* untouched = reinterpret_cast<finch_tokenizer*>(0x10);
  const finch_status status = finch_tokenizer_open(&options, &untouched);
  EXPECT_EQ(untouched, reinterpret_cast<finch_tokenizer*>(0x10)) << "outputs are untouched on failure";
  return status;
}

TEST(WordPiece, GoldenTexts) {
  const Tokenizer tokenizer(options_for(kVocabulary));
  const auto cases = lines_of(kRoot + "/test/golden/wordpiece.jsonl");
  ASSERT_GT(cases.size(), 1000u);
  for (const Json& one : cases) {
    const auto text = one["text"].get<std::string>();
    ASSERT_EQ(tokenizer(text, 256), one["ids"].get<Ids>()) << one["text"].dump();
  }
}

TEST(WordPiece, HardTextsInEverySetting) {
  const auto cases = lines_of(kRoot + "/native/test/fixtures/wordpiece_cases.jsonl");
  ASSERT_GT(cases.size(), 200u);
  for (const std::string setting : {"111", "001", "100", "010"}) {
    const Tokenizer tokenizer(options_for(kVocabulary, setting[0] == '1', setting[1] == '1', setting[2] == '1'));
    for (const Json& one : cases) {
      const auto text = one["text"].get<std::string>();
      ASSERT_EQ(tokenizer(text, 64), one[setting].get<Ids>()) << setting << " " << one["text"].dump(-1, ' ', true);
    }
  }
}

// Greedy longest match by trying every length, on words of plain letters.
Ids slow_reference(const std::string& text, const std::unordered_map<std::string, int32_t>& vocabulary) {
  Ids ids{kStart};
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ') {
      at++;
      continue;
    }
    const size_t stop = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, stop - at);
    at = stop;
    Ids pieces;
    size_t from = 0;
    while (word.size() <= 100 && from < word.size()) {
      size_t to = word.size();
      auto found = vocabulary.end();
      for (; to > from; to--) {
        found = vocabulary.find((from > 0 ? "##" : "") + word.substr(from, to - from));
        if (found != vocabulary.end()) break;
      }
      if (to == from) break;
      pieces.push_back(found->second);
      from = to;
    }
    if (from < word.size()) pieces = {kUnknown};
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }
  ids.push_back(kEnd);
  return ids;
}

TEST(WordPiece, RandomWordsAgainstTheSlowReference) {
  std::unordered_map<std::string, int32_t> vocabulary;
  std::ifstream file(kVocabulary);
  int32_t id = 0;
  for (std::string line; std::getline(file, line);) vocabulary.emplace(line, id++);
  ASSERT_EQ(vocabulary.at("[SEP]"), kEnd);
  const Tokenizer tokenizer(options_for(kVocabulary));
  std::mt19937 random(1);
  for (int round = 0; round < 3000; round++) {
    std::string text;
    const int length = static_cast<int>(random() % 80);
    // Few letters give many long matches, many letters give short pieces.
    const char* letters = round % 2 == 0 ? "aeinrst " : "abcdefghijklmnopqrstuvwxyz0123456789    ";
    const size_t kinds = std::string(letters).size();
    for (int i = 0; i < length; i++) text += letters[random() % kinds];
    ASSERT_EQ(tokenizer(text, 512), slow_reference(text, vocabulary)) << text;
  }
}

TEST(WordPiece, TextNeverSpellsASpecialToken) {
  const Tokenizer tokenizer(options_for(kVocabulary));
  for (const std::string text : {"[SEP]", "a [SEP] b", "[CLS][SEP][PAD][MASK]", "[\xE2\x80\x8BSEP]", "[sep]"}) {
    const Ids ids = tokenizer(text);
    EXPECT_EQ(ids.front(), kStart);
    EXPECT_EQ(ids.back(), kEnd);
    for (size_t i = 1; i + 1 < ids.size(); i++) {
      EXPECT_NE(ids[i], kStart) << text;
      EXPECT_NE(ids[i], kEnd) << text;
      EXPECT_NE(ids[i], 0) << text;
    }
  }
  // Special tokens without brackets are ordinary words of a text, which must not become the special id.
  const VocabularyFile vocab("pad\nunk\ncls\nsep\ns\n##e\n##p\na\n");
  finch_tokenizer_options options = options_for(vocab.path());
  options.pad = {"pad", 3};
  options.unknown = {"unk", 3};
  options.start = {"cls", 3};
  options.end = {"sep", 3};
  const Tokenizer own(options);
  EXPECT_EQ(own("sep a cls"), (Ids{2, 4, 5, 6, 7, 1, 3}));
}

TEST(WordPiece, CutsToMaxTokens) {
  const Tokenizer tokenizer(options_for(kVocabulary));
  std::string text;
  for (int i = 0; i < 500; i++) text += "weather toolfinch ";
  const Ids all = tokenizer(text, 4096);
  ASSERT_GT(all.size(), 500u);
  for (const uint32_t limit : {3u, 4u, 5u, 17u, 256u, static_cast<uint32_t>(all.size()), 65536u}) {
    Ids expected = all;
    if (expected.size() > limit) {
      expected.resize(limit);
      expected.back() = kEnd;
    }
    EXPECT_EQ(tokenizer(text, limit), expected) << limit;
  }
  // A word that turns out to be unknown behind the cut is unknown before it as well.
  EXPECT_EQ(tokenizer("weather unbelievable\xF0\x9F\xA5\xB8", 4),
            (Ids{kStart, tokenizer("weather")[1], kUnknown, kEnd}));
}

TEST(WordPiece, LongWordsAreUnknown) {
  finch_tokenizer_options options = options_for(kVocabulary);
  options.max_word_characters = 5;
  const Tokenizer tokenizer(options);
  EXPECT_NE(tokenizer("hello")[1], kUnknown);
  EXPECT_EQ(tokenizer("hellos"), (Ids{kStart, kUnknown, kEnd}));
  // Characters, not bytes.
  EXPECT_EQ(tokenizer("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"), tokenizer("eeeee"));
  const Tokenizer usual(options_for(kVocabulary));
  EXPECT_EQ(usual(std::string(1 << 20, 'a')), (Ids{kStart, kUnknown, kEnd}));
}

TEST(WordPiece, IllFormedUtf8IsTheReplacementCharacter) {
  const Tokenizer tokenizer(options_for(kVocabulary));
  const Ids expected = tokenizer("ab");
  for (const std::string bad : {"\x80", "\xBF", "\xC0\xAF", "\xC1", "\xC3", "\xE0\x80\x80", "\xE2\x82", "\xED\xA0\x80",
                                "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF8", "\xFF\xFE", "\xF0\x9F\x98"}) {
    // Cleaning drops U+FFFD; what follows an unfinished character is not swallowed.
    EXPECT_EQ(tokenizer("a" + bad + "b"), expected) << testing::PrintToString(bad);
    EXPECT_EQ(tokenizer("ab" + bad), expected) << testing::PrintToString(bad);
  }
  std::mt19937 random(3);
  for (int round = 0; round < 2000; round++) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const Ids ids = tokenizer(text, 16);
    ASSERT_GE(ids.size(), 2u);
    ASSERT_EQ(ids.front(), kStart);
    ASSERT_EQ(ids.back(), kEnd);
  }
}

TEST(WordPiece, SameIdsOnManyThreads) {
  const Tokenizer tokenizer(options_for(kVocabulary));
  const std::string text =
      "Send a message to \xC3\x89"
      "mile about the M\xC3\xBCnchen trip \xE4\xBD\xA0\xE5\xA5\xBD";
  const Ids expected = tokenizer(text);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; i++) wrong += tokenizer(text) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(WordPiece, ReadsWindowsLineEndsAndAMissingLastOne) {
  const VocabularyFile vocab("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n##b");
  EXPECT_EQ(Tokenizer(options_for(vocab.path()))("ab c"), (Ids{2, 4, 5, 1, 3}));
}

TEST(WordPiece, RefusesBadVocabularies) {
  const auto expect = [](const std::string& content, finch_status status, const std::string& said) {
    const VocabularyFile vocab(content);
    EXPECT_EQ(open_error(options_for(vocab.path())), status) << content;
    EXPECT_NE(std::string(finch_last_error()).find(said), std::string::npos) << finch_last_error();
  };
  expect("", FINCH_CORRUPT, "[UNK]");
  expect("[PAD]\n[UNK]\n[CLS]\na\n", FINCH_CORRUPT, "[SEP]");
  expect("[UNK]\n[CLS]\n[SEP]\n", FINCH_CORRUPT, "[PAD]");
  expect("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\na\n", FINCH_CORRUPT, "lines 5 and 7");
  expect("[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xFF\n", FINCH_CORRUPT, "line 5");
  expect("[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xED\xA0\x80\n", FINCH_CORRUPT, "UTF-8");

  EXPECT_EQ(open_error(options_for("/no/such/vocab.txt")), FINCH_IO);
  EXPECT_NE(std::string(finch_last_error()).find("/no/such/vocab.txt"), std::string::npos);
  EXPECT_EQ(open_error(options_for(fs::temp_directory_path().string())), FINCH_IO);
  EXPECT_NE(std::string(finch_last_error()).find("folder"), std::string::npos);
}

TEST(WordPiece, RefusesBadArguments) {
  EXPECT_EQ(open_error(options_for("")), FINCH_INVALID_ARGUMENT);
  finch_tokenizer_options options = options_for(kVocabulary);
  options.size = 0;
  EXPECT_EQ(open_error(options), FINCH_INVALID_ARGUMENT);
  options = options_for(kVocabulary);
  options.max_word_characters = 1000000;
  EXPECT_EQ(open_error(options), FINCH_INVALID_ARGUMENT);
  options = options_for(kVocabulary);
  options.unknown = {nullptr, 5};
  EXPECT_EQ(open_error(options), FINCH_INVALID_ARGUMENT);
  options = options_for(kVocabulary);
  options.vocab_path = nullptr;
  EXPECT_EQ(open_error(options), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenizer_open(nullptr, nullptr), FINCH_INVALID_ARGUMENT);

  const Tokenizer tokenizer(options_for(kVocabulary));
  int32_t ids[8] = {-7};
  size_t count = 99;
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {"a", 1}, 2, ids, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {"a", 1}, 65537, ids, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {nullptr, 1}, 8, ids, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize(nullptr, {"a", 1}, 8, ids, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {"a", 1}, 8, nullptr, &count), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {"a", 1}, 8, ids, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(ids[0], -7);
  EXPECT_EQ(count, 99u);
  EXPECT_EQ(finch_tokenize(tokenizer.get(), {nullptr, 0}, 8, ids, &count), FINCH_OK);
  EXPECT_EQ(count, 2u);
}

TEST(Unicode, EncodesAndDecodesEveryCharacter) {
  for (char32_t c = 0; c < 0x110000; c++) {
    if (c >= 0xD800 && c < 0xE000) continue;
    char bytes[4];
    const size_t size = finch::encode_utf8(c, bytes);
    size_t at = 0;
    ASSERT_EQ(finch::decode_utf8(bytes, size, &at), c);
    ASSERT_EQ(at, size);
    // Cut short it is ill-formed, and nothing behind the end is read.
    for (size_t cut = 1; cut < size; cut++) {
      ASSERT_FALSE(finch::valid_utf8(bytes, cut));
    }
    ASSERT_TRUE(finch::valid_utf8(bytes, size));
  }
}

TEST(Unicode, TablesHoldTogether) {
  const finch::Unicode& unicode = finch::Unicode::instance();
  size_t decomposing = 0, marks = 0, small = 0;
  for (char32_t c = 0; c < 0x110000; c++) {
    const finch::Kind& kind = unicode.kind(c);
    const auto parts = finch::Unicode::decomposition(c);
    ASSERT_EQ(parts.empty(), (kind.flags & finch::kDecomposes) == 0) << static_cast<uint32_t>(c);
    for (const char32_t part : parts) {
      // Complete: no part decomposes further, none is a mark or a space.
      ASSERT_EQ(unicode.kind(part).flags & (finch::kDecomposes | finch::kMark | finch::kSpace | finch::kRemove), 0)
          << static_cast<uint32_t>(c);
    }
    decomposing += !parts.empty();
    marks += (kind.flags & finch::kMark) != 0;
    if (kind.to_lower != 0) {
      small++;
      const auto lower = static_cast<char32_t>(static_cast<int64_t>(c) + kind.to_lower);
      ASSERT_EQ(unicode.kind(lower).to_lower, 0) << static_cast<uint32_t>(c);
    }
  }
  EXPECT_GT(decomposing, 1900u);
  EXPECT_GT(marks, 1400u);
  EXPECT_GT(small, 1400u);
  EXPECT_EQ(unicode.kind(U'A').to_lower, 32);
  EXPECT_EQ(unicode.kind(U'\n').flags, finch::kSpace);
  EXPECT_EQ(unicode.kind(U'!').flags, finch::kPunctuation);
  EXPECT_EQ(unicode.kind(0x301).flags, finch::kMark);
  EXPECT_EQ(unicode.kind(0).flags, finch::kRemove);
  EXPECT_EQ(unicode.kind(0x4E2D).flags, finch::kChinese);
}

}  // namespace
