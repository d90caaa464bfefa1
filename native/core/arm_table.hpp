// The arms of a bandit by id.
//
// An arm is one block of memory, its record and its vectors together, cut from chunks that grow up to several
// megabytes: arms scattered over thousands then cost the fewest cache and page misses. Whoever reads holds the bandit's
// lock shared; whoever changes anything else than `inverse` holds it alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "availability.hpp"
#include "contrast.hpp"
#include "trials.hpp"

namespace finch {

struct BanditRule;

// Asks for the cache line at `p`; any address.
inline void prefetch(const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p);
#else
  static_cast<void>(p);
#endif
}

// Whether an arm's 1 / A belongs to its A. Updates leave it behind; the first score after them makes it again.
enum class Inverse : uint8_t { stale, being_made, ready };

// Where counting stops: beyond it a double, which is what JavaScript is told, would not be exact.
constexpr uint64_t kMostUpdates = uint64_t{1} << 53;

// An arm's id: in place up to 52 bytes, as nearly all are, so that finding a cold arm costs no miss more.
class ArmId {
 public:
  ArmId() = default;
  ~ArmId() { release(); }
  ArmId(const ArmId&) = delete;
  ArmId& operator=(const ArmId&) = delete;

  // Once. Throws std::bad_alloc.
  void set(std::string_view id) {
    char* to = inside_;
    if (id.size() > sizeof(inside_)) {
      to = new char[id.size()];
      std::memcpy(inside_, &to, sizeof(to));
    }
    std::memcpy(to, id.data(), id.size());
    size_ = static_cast<uint32_t>(id.size());
  }
  std::string_view view() const noexcept { return {is_inside() ? inside_ : outside(), size_}; }
  // Bytes that lie elsewhere.
  uint64_t bytes() const noexcept { return is_inside() ? 0 : size_; }

 private:
  bool is_inside() const noexcept { return size_ <= sizeof(inside_); }
  char* outside() const noexcept {
    char* at;
    std::memcpy(&at, inside_, sizeof(at));
    return at;
  }
  void release() noexcept {
    if (!is_inside()) delete[] outside();
  }

  uint32_t size_ = 0;
  char inside_[52];
};

// A tool with feedback: it has had at least one update. The first cache line is what finding it reads.
struct alignas(64) Arm {
  uint64_t hash = 0;
  ArmId id;
  uint64_t updates = 0;     // counted up to kMostUpdates
  double evidence = 0.0;    // n <- gamma n + 1
  double reward_sum = 0.0;  // s <- gamma s + y
  Availability availability;
  float prior = 0.0f;  // r, as of the first update
  float last_outcome = 0.0f;
  mutable std::atomic<Inverse> inverse{Inverse::ready};
  uint32_t contrast = 0;  // its place in the table, from 1; 0: none, as for tools that never failed

  // A, b and 1 / A, a stride apart; none in the mean form.
  float* vectors() const noexcept { return reinterpret_cast<float*>(const_cast<Arm*>(this + 1)); }
};

static_assert(sizeof(Arm) == 128);

// Blocks of one size. A block given back is used again; memory goes back to the system with the store.
class BlockStore {
 public:
  explicit BlockStore(size_t block_bytes) noexcept : block_bytes_(block_bytes) {}

  // Throws std::bad_alloc.
  void* take();
  void give(void* block) noexcept;
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct FreeChunk {
    std::align_val_t alignment;
    void operator()(unsigned char* p) const noexcept { ::operator delete[](p, alignment); }
  };
  using Chunk = std::unique_ptr<unsigned char[], FreeChunk>;

  void add_chunk();

  size_t block_bytes_;
  std::vector<Chunk> chunks_;
  unsigned char* next_ = nullptr;
  size_t left_ = 0;        // blocks behind next_
  void* given_ = nullptr;  // a list through the blocks' first bytes
  uint64_t bytes_ = 0;
};

class ArmTable {
 public:
  explicit ArmTable(const BanditRule& rule);
  ~ArmTable();
  ArmTable(const ArmTable&) = delete;
  ArmTable& operator=(const ArmTable&) = delete;
  void swap(ArmTable& other) noexcept;

  // `hash` is hash_id(id). nullptr: no such arm.
  Arm* find(std::string_view id, uint64_t hash) const noexcept;
  // What `find` will most likely give, not looked at: to ask memory for many arms before the first is needed.
  const Arm* guess(uint64_t hash) const noexcept { return places_.empty() ? nullptr : places_[place_of(hash)]; }
  // An arm without updates, which the table does not have yet: A = lambda; b = 0 (calibrated) or r / sqrt(d) (literal).
  // Throws std::bad_alloc, nothing changed.
  Arm* make(std::string_view id, uint64_t hash, const BanditRule& rule, float prior);
  void erase(Arm* arm) noexcept;

  // nullptr: none.
  Contrast* contrast(const Arm& arm) const noexcept {
    return arm.contrast == 0 ? nullptr : contrasts_[arm.contrast - 1].get();
  }
  // The arm's contrast, empty if it had none. Throws std::bad_alloc, nothing changed.
  Contrast* make_contrast(Arm* arm, size_t dimension);

  size_t size() const noexcept { return size_; }
  // Resident bytes of all arms and of the table.
  uint64_t bytes() const noexcept;
  // Throws std::bad_alloc.
  void reserve(size_t arms);

  template <typename Visit>
  void each(Visit&& visit) const {
    for (Arm* arm : places_) {
      if (arm != nullptr) visit(*arm);
    }
  }

  // Sum of evidence_units: whole numbers, so it does not depend on the order of updates.
  uint64_t evidence = 0;
  TrialBudget budget;

 private:
  size_t place_of(uint64_t hash) const noexcept { return static_cast<size_t>(hash) & (places_.size() - 1); }
  void grow(size_t places);

  std::vector<Arm*> places_;  // open addressing, a power of two, at most half full
  size_t size_ = 0;
  BlockStore blocks_;
  std::vector<std::unique_ptr<Contrast>> contrasts_;
  std::vector<uint32_t> free_contrasts_;  // places of none, with room for all
};

// An arm's evidence in units of 2^-20.
uint64_t evidence_units(double evidence) noexcept;

}  // namespace finch
