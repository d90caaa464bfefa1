// BERT's tokenisation (Devlin et al. 2018; WordPiece: Wu et al. 2016, section 4.1): cleaned text, words, greedily the
// longest pieces. The ids are those of Hugging Face's BertTokenizerFast, except that text never yields a special
// token's id.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "toolfinch.h"
#include "vocabulary.hpp"

namespace finch {

class WordPiece {
 public:
  // Reads the vocabulary. FINCH_IO, FINCH_CORRUPT; FINCH_INVALID_ARGUMENT for options outside their range.
  finch_status open(const finch_tokenizer_options& options);

  // start, pieces, end; at most max_tokens (>= 3) ids. Thread-safe.
  size_t tokenize(const char* text, size_t size, uint32_t max_tokens, int32_t* ids) const;
  // start, pieces of `first`, end, pieces of `second`, end; at most max_tokens (>= 5) ids. *second_at is where the
  // second text's part begins. Which text gives way when both do not fit: see finch_truncation. Thread-safe.
  size_t tokenize_pair(std::string_view first, std::string_view second, uint32_t max_tokens,
                       finch_truncation truncation, int32_t* ids, size_t* second_at) const;
  int32_t pad() const noexcept { return pad_; }
  int32_t end() const noexcept { return end_; }
  // The largest id of the vocabulary.
  int32_t last_id() const noexcept { return last_; }

 private:
  friend class Tokenization;

  // At most `limit` pieces of a text.
  std::vector<int32_t> pieces(std::string_view text, size_t limit) const;

  TokenTable starts_, continuations_;
  bool lowercase_ = false, strip_accents_ = false, chinese_ = false;
  uint32_t max_word_ = 100;
  int32_t unknown_ = 0, start_ = 0, end_ = 0, pad_ = 0, last_ = 0;
};

// FINCH_INVALID_ARGUMENT for none of the known ways.
finch_status check_truncation(finch_truncation truncation);

}  // namespace finch

struct finch_tokenizer {
  std::atomic<uint32_t> references{1};
  finch::WordPiece words;
};
