#include "output.hpp"

#include "fault.hpp"
#include "results.hpp"

namespace finch::node {

Output::Output(napi_env env, Kind kind, uint32_t capacity) : env_(env), kind_(kind), capacity_(capacity) {
  for (int c = 0; c < kColumns; ++c) {
    offsets_[c] = bytes_;
    if (has(c)) bytes_ += (length(c) * width(c) + 7) / 8 * 8;
  }
  require_result_bytes(bytes_, 1);
  void* memory = nullptr;
  napi_value buffer = nullptr;
  must(env, napi_create_arraybuffer(env, bytes_, &memory, &buffer));
  must(env, napi_create_reference(env, buffer, 1, &buffer_));
}

Output::~Output() { napi_delete_reference(env_, buffer_); }

bool Output::has(int column) const noexcept {
  switch (column) {
    case kEvidence:
    case kUpdates:
    case kMean:
    case kBonus:
    case kAvailability:
    case kLastOutcome:
    case kContrast:
      return true;
    default:
      return kind_ == Kind::ranking;
  }
}

void Output::set_columns(Napi::Env env, napi_value object) const {
  static constexpr const char* kNames[kColumns] = {"keys",  "evidence",     "updates",      "cut",         "mean",
                                                   "bonus", "availability", "lastOutcome",  "contrast",    "semantic",
                                                   "prior", "score",        "similarities", "semanticRank"};
  napi_value buffer = nullptr;
  must(env, napi_get_reference_value(env, buffer_, &buffer));
  for (int c = 0; c < kColumns; ++c) {
    if (!has(c)) continue;
    const napi_typedarray_type type = c <= kCut            ? napi_float64_array
                                      : c == kSemanticRank ? napi_uint32_array
                                                           : napi_float32_array;
    napi_value array = nullptr;
    must(env, napi_create_typedarray(env, type, length(c), buffer, offsets_[c], &array));
    set(env, object, kNames[c], array);
  }
}

void Output::require_memory() {
  napi_value buffer = nullptr;
  void* memory = nullptr;
  size_t bytes = 0;
  must(env_, napi_get_reference_value(env_, buffer_, &buffer));
  must(env_, napi_get_arraybuffer_info(env_, buffer, &memory, &bytes));
  if (bytes != bytes_) {
    refuse_argument(
        "Expected the results' arrays to have memory but their ArrayBuffer was detached (transferred to another "
        "thread). Create others, and transfer copies.");
  }
  memory_ = static_cast<unsigned char*>(memory);
}

void Output::write(size_t i, const finch_arm_score& score) noexcept {
  column<float>(kMean)[i] = score.mean;
  column<float>(kBonus)[i] = score.bonus;
  column<float>(kAvailability)[i] = score.availability;
  column<float>(kLastOutcome)[i] = score.last_outcome;
  column<float>(kContrast)[i] = score.contrast;
  column<double>(kEvidence)[i] = score.evidence;
  column<double>(kUpdates)[i] = static_cast<double>(score.updates);
}

void Output::write(size_t i, const finch_candidate& candidate) noexcept {
  column<double>(kKeys)[i] = static_cast<double>(candidate.key);
  column<float>(kSemantic)[i] = candidate.semantic;
  column<float>(kPrior)[i] = candidate.prior;
  column<float>(kScore)[i] = candidate.score;
  column<uint32_t>(kSemanticRank)[i] = candidate.semantic_rank;
  write(i, candidate.arm);
}

void Output::write(const finch_cut& cut) noexcept {
  double* numbers = column<double>(kCut);
  numbers[0] = cut.k;
  numbers[1] = cut.k_score;
  numbers[2] = cut.k_similarity;
  numbers[3] = cut.signal;
  numbers[4] = static_cast<double>(cut.gap_score);
  numbers[5] = static_cast<double>(cut.gap_similarity);
  numbers[6] = cut.n;
}

}  // namespace finch::node
