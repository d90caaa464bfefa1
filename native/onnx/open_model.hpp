// What opening an encoder and opening a reranker share: checks of options and texts, the trial runs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "text_queue.hpp"
#include "toolfinch.h"

namespace finch {

// FINCH_INVALID_ARGUMENT, naming what is missing.
finch_status check_model_files(const char* runtime_path, const char* model_path, const char* output_name,
                               const finch_tokenizer* tokenizer);

// 0 becomes 256. FINCH_INVALID_ARGUMENT below `least` or above what anything takes.
finch_status check_max_tokens(uint32_t least, uint32_t* max_tokens);

finch_status check_batch_size(uint32_t batch_size);

// `what`: "text" or "document". FINCH_INVALID_ARGUMENT for NULL with a size.
finch_status check_strings(const char* what, const finch_string* strings, size_t count);

// A trial text: `length` ids, to be written.
using TrialIds = void (*)(const finch_tokenizer& tokenizer, int32_t* ids, size_t length);

// Runs the shortest and a long text, one alone and in a batch, with the vocabulary's last id: a model that cannot take
// what may be sent to it is found out now, not by the first user. `what`: "texts" or "pairs", for the message.
finch_status try_model(const TextModel& model, const finch_tokenizer& tokenizer, const char* what, size_t shortest,
                       TrialIds trial);

}  // namespace finch
