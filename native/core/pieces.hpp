// Memory for the pieces that an index keeps its vectors and codes in. Pieces of one size lie side by side in slabs of
// whole huge pages, so that a scan reads long stretches and seldom misses the TLB; pieces freed are given out again.
// Where there is no madvise(MADV_HUGEPAGE), and for the few pieces of a small index, they come from the heap.
#pragma once

#include <cstddef>
#include <memory>

namespace finch {

struct Slab;

struct FreePiece {
  void operator()(void* piece) const noexcept;

  Slab* slab = nullptr;  // null: from the heap
};

template <typename T>
using Piece = std::unique_ptr<T[], FreePiece>;

// Bytes of a slab for pieces of `bytes`.
size_t slab_bytes(size_t bytes) noexcept;

struct RawPiece {
  void* data;
  FreePiece free;
};

// 64-byte aligned, uninitialised. `together`: bytes that pieces of this size will take in all; from a slab's worth on
// they lie in slabs. Throws std::bad_alloc. Any thread.
RawPiece allocate_piece(size_t bytes, size_t together);

template <typename T>
Piece<T> make_piece(size_t count, size_t together) {
  const RawPiece piece = allocate_piece(count * sizeof(T), together);
  return Piece<T>(static_cast<T*>(piece.data), piece.free);
}

// Bytes of all slabs of the process.
size_t slab_bytes_held() noexcept;

}  // namespace finch
