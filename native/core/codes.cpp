#include "codes.hpp"

#include <cstring>

#include "kernels/scan/rounding.hpp"

namespace finch {
namespace {

constexpr uint8_t kZeroI8 = 128;  // i8 codes are biased

size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::shared_ptr<CodeChunk> CodeChunk::make(finch_storage storage, size_t stride, size_t together) {
  auto chunk = std::make_shared<CodeChunk>();
  chunk->own = make_piece<uint8_t>(kRows * stride, together);
  chunk->data = chunk->own.get();
  std::memset(chunk->own.get(), storage == FINCH_STORAGE_I8 ? kZeroI8 : 0, kRows * stride);
  return chunk;
}

std::shared_ptr<CodeChunk> CodeChunk::copy(const CodeChunk& other, size_t stride, size_t together) {
  auto chunk = std::make_shared<CodeChunk>();
  chunk->own = make_piece<uint8_t>(kRows * stride, together);
  chunk->data = chunk->own.get();
  std::memcpy(chunk->own.get(), other.data, kRows * stride);
  std::memcpy(chunk->scales, other.scales, sizeof(scales));
  return chunk;
}

size_t code_stride(finch_storage storage, uint32_t dimension) noexcept {
  switch (storage) {
    case FINCH_STORAGE_BF16:
    case FINCH_STORAGE_F16:
      return whole_lines(size_t{dimension} * sizeof(uint16_t));
    case FINCH_STORAGE_I8:
      return whole_lines(dimension);
    default:
      return 0;
  }
}

float encode_vector(finch_storage storage, const float* vector, uint32_t dimension, uint8_t* out) noexcept {
  const size_t stride = code_stride(storage, dimension);
  if (storage == FINCH_STORAGE_I8) {
    std::memset(out + dimension, kZeroI8, stride - dimension);
    return quantize_i8(vector, dimension, [&](size_t i, int32_t code) { out[i] = static_cast<uint8_t>(code + 128); });
  }
  auto* codes = reinterpret_cast<uint16_t*>(out);
  std::memset(out + dimension * sizeof(uint16_t), 0, stride - dimension * sizeof(uint16_t));
  for (size_t i = 0; i < dimension; ++i) {
    codes[i] = storage == FINCH_STORAGE_BF16 ? to_bf16(vector[i]) : to_f16(vector[i]);
  }
  return 1.0f;
}

}  // namespace finch
