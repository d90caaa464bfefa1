// The copy of the vectors that exact search scans in an index whose storage is not float32 (finch_storage).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pieces.hpp"
#include "toolfinch.h"

namespace finch {

// The codes of kRows slots, row after row, code_stride apart. Owned, or borrowed read-only from a mapped file; an edit
// copies. Layout of a row: kernels/scan/scan.hpp.
struct CodeChunk {
  static constexpr size_t kShift = 6;
  static constexpr size_t kRows = size_t{1} << kShift;

  // `together`: bytes of all codes of the index (allocate_piece).
  static std::shared_ptr<CodeChunk> make(finch_storage storage, size_t stride, size_t together);
  static std::shared_ptr<CodeChunk> copy(const CodeChunk& other, size_t stride, size_t together);

  uint64_t edit = 0;
  float scales[kRows] = {};  // 1 but for i8
  const uint8_t* data = nullptr;
  Piece<uint8_t> own;                 // what `data` points to, null when borrowed
  std::shared_ptr<const void> owner;  // keeps borrowed memory alive
};

// Bytes from one row's code to the next: whole cache lines. 0 for float32.
size_t code_stride(finch_storage storage, uint32_t dimension) noexcept;

// A unit vector in a storage format: writes code_stride bytes and returns the scale.
float encode_vector(finch_storage storage, const float* vector, uint32_t dimension, uint8_t* out) noexcept;

}  // namespace finch
