// Caller's arrays that one call after another fills: what the hot path returns without making anything new.
#pragma once

#include <napi.h>

#include <memory>
#include <span>

#include "environment.hpp"
#include "handles.hpp"
#include "toolfinch.h"

namespace finch::node {

// Columns of `capacity` entries in one ArrayBuffer, which JavaScript sees as typed arrays. Of a ranking, all; of arm
// scores, those of finch_arm_score.
class Output {
 public:
  enum class Kind { arm_scores, ranking };
  // Numbers of a finch_cut, in the order k, kScore, kSimilarity, signal, gapScore, gapSimilarity, n.
  static constexpr size_t kCutNumbers = 7;

  Output(napi_env env, Kind kind, uint32_t capacity);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Kind kind() const noexcept { return kind_; }
  uint32_t capacity() const noexcept { return capacity_; }
  // The columns as properties of `object`.
  void set_columns(Napi::Env env, napi_value object) const;

  // Write from the start of each column on. The first throws when the ArrayBuffer was detached.
  void require_memory();
  void write(size_t i, const finch_arm_score& score) noexcept;
  void write(size_t i, const finch_candidate& candidate) noexcept;
  void write(const finch_cut& cut) noexcept;
  std::span<float> similarities() noexcept { return {column<float>(kSimilarities), capacity_}; }

 private:
  enum Column {
    kKeys,
    kEvidence,
    kUpdates,
    kCut,
    kMean,
    kBonus,
    kAvailability,
    kLastOutcome,
    kContrast,
    kSemantic,
    kPrior,
    kScore,
    kSimilarities,
    kSemanticRank,
    kColumns
  };
  bool has(int column) const noexcept;
  size_t length(int column) const noexcept { return column == kCut ? kCutNumbers : capacity_; }
  static size_t width(int column) noexcept { return column <= kCut ? sizeof(double) : sizeof(float); }
  template <typename T>
  T* column(int column) noexcept {
    return reinterpret_cast<T*>(memory_ + offsets_[column]);
  }

  napi_env env_;
  Kind kind_;
  uint32_t capacity_;
  size_t bytes_ = 0;
  size_t offsets_[kColumns] = {};
  napi_ref buffer_ = nullptr;
  unsigned char* memory_ = nullptr;
};

inline void release_output(Output* output) noexcept { delete output; }
FINCH_HANDLE_KIND(Output, "results", release_output, 0x6d3a91c7e05b2f48, 0x94e8b60f3c71da25);

}  // namespace finch::node
