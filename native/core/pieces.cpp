#include "pieces.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define FINCH_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FINCH_POISONS 1
#endif
#endif
#if defined(FINCH_POISONS)
#include <sanitizer/asan_interface.h>
#endif

namespace finch {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostHugePages = 8;

size_t piece_bytes(size_t bytes) noexcept { return (std::max<size_t>(bytes, 1) + 63) / 64 * 64; }

}  // namespace

struct Slab {
  char* data;
  size_t bytes;        // of the slab
  size_t piece_bytes;  // of each piece
  size_t pieces;
  std::vector<uint32_t> vacant;  // the lowest at the end: pieces taken one after another are neighbours
};

// The fewest huge pages that pieces fill but for a sixty-fourth.
size_t slab_bytes(size_t bytes) noexcept {
  const size_t piece = piece_bytes(bytes);
  size_t pages = std::max<size_t>((piece + kHugePage - 1) / kHugePage, 1);
  for (const size_t most = pages * kMostHugePages; pages < most; ++pages) {
    if (pages * kHugePage % piece <= pages * kHugePage / 64) break;
  }
  return pages * kHugePage;
}

#if defined(__linux__)

namespace {

// Never destroyed: pieces are freed until the process ends, by threads that nobody waits for.
struct Slabs {
  std::mutex mutex;
  std::vector<Slab*> vacant;  // the slabs with room; has capacity for every slab
  size_t count = 0;
  size_t bytes = 0;
};

Slabs& slabs() {
  static Slabs& all = *new Slabs;
  return all;
}

void poison([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) noexcept {
#if defined(FINCH_POISONS)
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}

void unpoison([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) noexcept {
#if defined(FINCH_POISONS)
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

// Null when the system has none.
char* map_huge(size_t bytes) noexcept {
  const size_t asked = bytes + kHugePage;
  void* at = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const all = static_cast<char*>(at);
  auto* const first = all + (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
  if (first != all) munmap(all, static_cast<size_t>(first - all));
  if (const size_t after = static_cast<size_t>(all + asked - (first + bytes))) munmap(first + bytes, after);
  // Refused where the kernel has none: then they are pages like any.
  static_cast<void>(madvise(first, bytes, MADV_HUGEPAGE));
  return first;
}

// Null when the system has no memory; bad_alloc when the heap has none.
Slab* make_slab(size_t piece, Slabs& all) {
  const size_t bytes = slab_bytes(piece);
  auto slab = std::make_unique<Slab>(Slab{nullptr, bytes, piece, bytes / piece, {}});
  for (size_t i = slab->pieces; i > 0; --i) slab->vacant.push_back(static_cast<uint32_t>(i - 1));
  all.vacant.reserve(all.count + 1);
  slab->data = map_huge(bytes);
  if (slab->data == nullptr) return nullptr;
  poison(slab->data, bytes);
  ++all.count;
  all.bytes += bytes;
  all.vacant.push_back(slab.get());
  return slab.release();
}

}  // namespace

RawPiece allocate_piece(size_t bytes, size_t together) {
  const size_t piece = piece_bytes(bytes);
  if (together >= slab_bytes(bytes)) {
    Slabs& all = slabs();
    std::lock_guard lock(all.mutex);
    const auto fits = [&](const Slab* slab) { return slab->piece_bytes == piece; };
    const auto found = std::find_if(all.vacant.begin(), all.vacant.end(), fits);
    Slab* slab = found == all.vacant.end() ? make_slab(piece, all) : *found;
    if (slab != nullptr) {
      void* const data = slab->data + slab->vacant.back() * piece;
      slab->vacant.pop_back();
      if (slab->vacant.empty()) std::erase(all.vacant, slab);
      unpoison(data, piece);
      return {data, {slab}};
    }
  }
  return {::operator new[](piece, kAlignment), {}};
}

void FreePiece::operator()(void* piece) const noexcept {
  if (slab == nullptr) {
    ::operator delete[](piece, kAlignment);
    return;
  }
  Slabs& all = slabs();
  std::lock_guard lock(all.mutex);
  const size_t index = static_cast<size_t>(static_cast<char*>(piece) - slab->data) / slab->piece_bytes;
  poison(piece, slab->piece_bytes);
  // Neither allocates: both have had as many before.
  if (slab->vacant.empty()) all.vacant.push_back(slab);
  slab->vacant.push_back(static_cast<uint32_t>(index));
  if (slab->vacant.size() < slab->pieces) return;
  std::erase(all.vacant, slab);
  --all.count;
  all.bytes -= slab->bytes;
  unpoison(slab->data, slab->bytes);
  munmap(slab->data, slab->bytes);
  delete slab;
}

size_t slab_bytes_held() noexcept {
  Slabs& all = slabs();
  std::lock_guard lock(all.mutex);
  return all.bytes;
}

#else

RawPiece allocate_piece(size_t bytes, size_t) { return {::operator new[](piece_bytes(bytes), kAlignment), {}}; }

void FreePiece::operator()(void* piece) const noexcept { ::operator delete[](piece, kAlignment); }

size_t slab_bytes_held() noexcept { return 0; }

#endif

}  // namespace finch
