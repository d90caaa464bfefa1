#include "wordpiece.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "core/sized.hpp"
#include "file.hpp"
#include "unicode.hpp"

namespace finch {
namespace {

constexpr uint32_t kMaxWord = 4096;
constexpr uint32_t kMaxTokens = 65536;

// Hangul syllables decompose by arithmetic (Unicode 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kVowelCount = 21, kTailCount = 28, kSyllableCount = 11172;

}  // namespace

// One text on its way through: cleaning, splitting and piecing in a single pass, nothing allocated per character.
class Tokenization {
 public:
  Tokenization(const WordPiece& rules, int32_t* ids, size_t limit)
      : rules_(rules), unicode_(Unicode::instance()), ids_(ids), limit_(limit) {
    word_.resize(size_t{rules.max_word_} * 4 + 4);
  }

  size_t run(const char* text, size_t size) {
    for (size_t at = 0; at < size && count_ < limit_;) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte >= 0x80) {
        take(decode_utf8(text, size, &at));
        continue;
      }
      at++;
      if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9')) {
        if (!marks_.empty()) place_marks();
        push(static_cast<char>(byte));
      } else if (byte >= 'A' && byte <= 'Z') {
        if (!marks_.empty()) place_marks();
        push(static_cast<char>(rules_.lowercase_ ? byte + ('a' - 'A') : byte));
      } else {
        take(byte);
      }
    }
    end_word();
    return count_;
  }

 private:
  struct Mark {
    uint8_t combining_class;
    char32_t c;
  };

  void take(char32_t c) {
    const Kind& kind = unicode_.kind(c);
    if (kind.flags & kRemove) return;
    if (kind.flags & kSpace) return end_word();
    if ((kind.flags & kChinese) && rules_.chinese_) {
      end_word();
      normalise(c, kind);
      return end_word();
    }
    normalise(c, kind);
  }

  // Canonical decomposition without nonspacing marks, in canonical order.
  void normalise(char32_t c, const Kind& kind) {
    if (!rules_.strip_accents_) return lower(c, kind);
    if (c - kSyllables < kSyllableCount) {
      place_marks();
      const char32_t syllable = c - kSyllables;
      emit(kLeads + syllable / (kVowelCount * kTailCount));
      emit(kVowels + syllable % (kVowelCount * kTailCount) / kTailCount);
      if (syllable % kTailCount != 0) emit(kTails + syllable % kTailCount);
      return;
    }
    if (!(kind.flags & kDecomposes)) return place(c, kind);
    place_marks();
    for (const char32_t part : Unicode::decomposition(c)) place(part, unicode_.kind(part));
  }

  void place(char32_t c, const Kind& kind) {
    if (kind.combining_class == 0) {
      if (!marks_.empty()) place_marks();
      if (!(kind.flags & kMark)) lower(c, kind);
    } else if (!(kind.flags & kMark)) {
      // A run longer than any word makes its word unknown, whatever its order.
      if (marks_.size() <= rules_.max_word_) marks_.push_back({kind.combining_class, c});
    }
  }

  void place_marks() {
    std::stable_sort(marks_.begin(), marks_.end(),
                     [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    for (const Mark& mark : marks_) lower(mark.c, unicode_.kind(mark.c));
    marks_.clear();
  }

  void lower(char32_t c, const Kind& kind) {
    if (!rules_.lowercase_ || kind.to_lower == 0) {
      if (c != kDottedCapitalI || !rules_.lowercase_) return emit(c);
      emit(U'i');
      return emit(0x307);
    }
    emit(static_cast<char32_t>(static_cast<int64_t>(c) + kind.to_lower));
  }

  void emit(char32_t c) {
    const bool apart = unicode_.kind(c).flags & kPunctuation;
    if (apart) finish();
    char bytes[4];
    const size_t size = encode_utf8(c, bytes);
    if (characters_ < rules_.max_word_) std::memcpy(word_.data() + size_, bytes, size), size_ += size;
    characters_++;
    if (apart) finish();
  }

  void push(char byte) {
    if (characters_ < rules_.max_word_) word_[size_++] = byte;
    characters_++;
  }

  void end_word() {
    if (!marks_.empty()) place_marks();
    finish();
  }

  void finish() {
    if (characters_ == 0) return;
    const size_t before = count_;
    if (characters_ > rules_.max_word_ || !pieces()) {
      count_ = before;
      add(rules_.unknown_);
    }
    size_ = characters_ = 0;
  }

  // False when no token matches somewhere: then the word as a whole is unknown. Pieces beyond the limit are looked up
  // all the same, since one that fails takes back those before it.
  bool pieces() {
    hashes_.reset(word_.data(), size_);
    for (size_t from = 0; from < size_;) {
      const TokenTable& table = from == 0 ? rules_.starts_ : rules_.continuations_;
      const int32_t id = table.longest(word_.data(), from, size_, hashes_, &from);
      if (id < 0) return false;
      add(id);
    }
    return true;
  }

  void add(int32_t id) {
    if (count_ < limit_) ids_[count_++] = id;
  }

  const WordPiece& rules_;
  const Unicode& unicode_;
  int32_t* ids_;
  size_t limit_, count_ = 0;
  std::vector<char> word_;
  size_t size_ = 0, characters_ = 0;
  std::vector<Mark> marks_;
  PrefixHashes hashes_;
};

finch_status check_truncation(finch_truncation truncation) {
  if (truncation == FINCH_TRUNCATE_LONGEST_FIRST || truncation == FINCH_TRUNCATE_DOCUMENT_FIRST) return FINCH_OK;
  return fail(FINCH_INVALID_ARGUMENT, "truncation is %d; expected 0 (longest first) or 1 (document first).",
              truncation);
}

size_t WordPiece::tokenize(const char* text, size_t size, uint32_t max_tokens, int32_t* ids) const {
  ids[0] = start_;
  const size_t count = 1 + Tokenization(*this, ids + 1, max_tokens - 2).run(text, size);
  ids[count] = end_;
  return count + 1;
}

std::vector<int32_t> WordPiece::pieces(std::string_view text, size_t limit) const {
  std::vector<int32_t> ids(limit);
  ids.resize(Tokenization(*this, ids.data(), limit).run(text.data(), text.size()));
  return ids;
}

size_t WordPiece::tokenize_pair(std::string_view first, std::string_view second, uint32_t max_tokens,
                                finch_truncation truncation, int32_t* ids, size_t* second_at) const {
  const size_t room = max_tokens - 3;
  // Pieces beyond the room are dropped in any case. Only which of two texts is the longer one can hang on them.
  size_t limit = room;
  std::vector<int32_t> a = pieces(first, limit), b = pieces(second, limit);
  while (a.size() == limit && b.size() == limit && limit < kMaxTokens) {
    limit *= 2;
    a = pieces(first, limit);
    b = pieces(second, limit);
  }
  size_t keep_a = a.size(), keep_b = b.size();
  if (keep_a + keep_b > room) {
    if (truncation == FINCH_TRUNCATE_DOCUMENT_FIRST && keep_a < room) {
      keep_b = room - keep_a;
    } else {
      // Taking pieces one by one from the longer text ends here: the shorter one is left whole if it has at most half
      // of the room; otherwise both have half, and an odd piece goes to the longer one.
      const size_t shorter = std::min({keep_a, keep_b, room / 2});
      const bool first_is_longer = keep_a > keep_b;
      keep_a = first_is_longer ? room - shorter : shorter;
      keep_b = room - keep_a;
    }
  }
  size_t count = 0;
  ids[count++] = start_;
  count = static_cast<size_t>(std::copy_n(a.begin(), keep_a, ids + count) - ids);
  ids[count++] = end_;
  *second_at = count;
  count = static_cast<size_t>(std::copy_n(b.begin(), keep_b, ids + count) - ids);
  ids[count++] = end_;
  return count;
}

finch_status WordPiece::open(const finch_tokenizer_options& options) {
  const auto named = [](const finch_string& given, std::string_view fallback) {
    return given.size == 0 ? fallback : std::string_view(given.data, given.size);
  };
  for (const finch_string* given :
       {&options.unknown, &options.start, &options.end, &options.pad, &options.continuation}) {
    if (given->data == nullptr && given->size != 0) {
      return fail(FINCH_INVALID_ARGUMENT,
                  "a special token is NULL with size %zu; give its bytes, or size 0 for the default.", given->size);
    }
  }
  const uint32_t max_word = options.max_word_characters == 0 ? 100 : options.max_word_characters;
  if (max_word > kMaxWord) {
    return fail(FINCH_INVALID_ARGUMENT, "max_word_characters is %u; at most %u are supported.", max_word, kMaxWord);
  }
  const std::string_view unknown = named(options.unknown, "[UNK]"), start = named(options.start, "[CLS]"),
                         end = named(options.end, "[SEP]"), pad = named(options.pad, "[PAD]"),
                         continuation = named(options.continuation, "##");

  std::string text;
  if (const finch_status status = read_file(options.vocab_path, "vocabulary", &text); status != FINCH_OK) return status;
  std::vector<std::string_view> tokens;
  for (size_t at = 0, line = 1; at < text.size(); line++) {
    size_t stop = text.find('\n', at);
    if (stop == std::string::npos) stop = text.size();
    std::string_view token(text.data() + at, stop - at);
    while (!token.empty() && (token.back() == '\r' || token.back() == ' ' || token.back() == '\t'))
      token.remove_suffix(1);
    if (!valid_utf8(token.data(), token.size())) {
      return fail(FINCH_CORRUPT,
                  "%s: line %zu is not UTF-8; the vocabulary must be a UTF-8 text with one token a line.",
                  options.vocab_path, line);
    }
    tokens.push_back(token);
    at = stop + 1;
  }
  if (tokens.size() > INT32_MAX) {
    return fail(FINCH_CORRUPT, "%s has %zu lines; at most 2^31 - 1 tokens are supported.", options.vocab_path,
                tokens.size());
  }

  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); i++) {
    const auto [other, fresh] = ids.emplace(tokens[i], static_cast<int32_t>(i));
    if (!fresh) {
      return fail(FINCH_CORRUPT, "%s: \"%.*s\" is in lines %zu and %zu; a token may be there only once.",
                  options.vocab_path, static_cast<int>(std::min<size_t>(tokens[i].size(), 100)), tokens[i].data(),
                  static_cast<size_t>(other->second) + 1, i + 1);
    }
  }
  std::array<int32_t, 4> special{};
  size_t which = 0;
  for (const std::string_view name : {unknown, start, end, pad}) {
    const auto found = ids.find(name);
    if (found == ids.end()) {
      return fail(FINCH_CORRUPT, "%s lacks the special token \"%.*s\"; use the vocabulary that belongs to the model.",
                  options.vocab_path, static_cast<int>(std::min<size_t>(name.size(), 100)), name.data());
    }
    special[which++] = found->second;
  }

  TokenTable starts, continuations;
  starts.reserve(tokens.size());
  continuations.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); i++) {
    const auto id = static_cast<int32_t>(i);
    // Text must not be able to spell a special token.
    if (std::find(special.begin(), special.end(), id) != special.end()) continue;
    starts.insert(tokens[i], id);
    if (tokens[i].starts_with(continuation)) continuations.insert(tokens[i].substr(continuation.size()), id);
  }
  starts_ = std::move(starts);
  continuations_ = std::move(continuations);
  lowercase_ = options.lowercase != 0;
  strip_accents_ = options.strip_accents != 0;
  chinese_ = options.chinese_characters != 0;
  max_word_ = max_word;
  unknown_ = special[0];
  start_ = special[1];
  end_ = special[2];
  pad_ = special[3];
  last_ = static_cast<int32_t>(tokens.size()) - 1;
  return FINCH_OK;
}

}  // namespace finch

extern "C" {

finch_status finch_tokenizer_open(const finch_tokenizer_options* options, finch_tokenizer** out) {
  return finch::guarded([&]() -> finch_status {
    if (options == nullptr || out == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "options or out is NULL; both are required.");
    }
    finch_tokenizer_options known;
    if (!finch::read_sized(options, sizeof(finch_tokenizer_options), &known)) {
      return finch::fail(FINCH_INVALID_ARGUMENT,
                         "options->size is %zu; set it to sizeof(finch_tokenizer_options), %zu.", options->size,
                         sizeof(finch_tokenizer_options));
    }
    if (known.vocab_path == nullptr || known.vocab_path[0] == 0) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "vocab_path is empty; give the path of the model's vocab.txt.");
    }
    auto fresh = std::make_unique<finch_tokenizer>();
    if (const finch_status status = fresh->words.open(known); status != FINCH_OK) return status;
    *out = fresh.release();
    return FINCH_OK;
  });
}

void finch_tokenizer_retain(finch_tokenizer* tokenizer) {
  if (tokenizer != nullptr) tokenizer->references.fetch_add(1, std::memory_order_relaxed);
}

void finch_tokenizer_release(finch_tokenizer* tokenizer) {
  if (tokenizer != nullptr && tokenizer->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete tokenizer;
}

finch_status finch_tokenize(const finch_tokenizer* tokenizer, finch_string text, uint32_t max_tokens, int32_t* ids,
                            size_t* count) {
  return finch::guarded([&]() -> finch_status {
    if (tokenizer == nullptr || ids == nullptr || count == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "tokenizer, ids or count is NULL; all three are required.");
    }
    if (text.data == nullptr && text.size != 0) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "text is NULL with size %zu; give its bytes, or size 0.", text.size);
    }
    if (max_tokens < 3 || max_tokens > finch::kMaxTokens) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "max_tokens is %u; expected 3 to %u.", max_tokens, finch::kMaxTokens);
    }
    *count = tokenizer->words.tokenize(text.data, text.size, max_tokens, ids);
    return FINCH_OK;
  });
}

finch_status finch_tokenize_pair(const finch_tokenizer* tokenizer, finch_string query, finch_string document,
                                 uint32_t max_tokens, finch_truncation truncation, int32_t* ids, size_t* count,
                                 size_t* document_at) {
  return finch::guarded([&]() -> finch_status {
    if (tokenizer == nullptr || ids == nullptr || count == nullptr || document_at == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "tokenizer, ids, count or document_at is NULL; all are required.");
    }
    for (const finch_string& text : {query, document}) {
      if (text.data == nullptr && text.size != 0) {
        return finch::fail(FINCH_INVALID_ARGUMENT, "a text is NULL with size %zu; give its bytes, or size 0.",
                           text.size);
      }
    }
    if (max_tokens < 5 || max_tokens > finch::kMaxTokens) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "max_tokens is %u; expected 5 to %u.", max_tokens, finch::kMaxTokens);
    }
    if (const finch_status status = finch::check_truncation(truncation); status != FINCH_OK) return status;
    *count = tokenizer->words.tokenize_pair({query.data, query.size}, {document.data, document.size}, max_tokens,
                                            truncation, ids, document_at);
    return FINCH_OK;
  });
}

}  // extern "C"
