#include "arm_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bandit.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace finch {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kMostChunk = size_t{1} << 23;
constexpr size_t kFirstBlocks = 4;
constexpr size_t kFirstPlaces = 16;

size_t block_bytes(const BanditRule& rule) noexcept {
  return sizeof(Arm) + (rule.keeps_vectors() ? 3 * rule.stride() * sizeof(float) : 0);
}

}  // namespace

void* BlockStore::take() {
  if (given_ != nullptr) return std::exchange(given_, *static_cast<void**>(given_));
  if (left_ == 0) add_chunk();
  --left_;
  return std::exchange(next_, next_ + block_bytes_);
}

void BlockStore::give(void* block) noexcept {
  *static_cast<void**>(block) = given_;
  given_ = block;
}

// As much again as there is, up to a limit: a bandit of a few arms stays small, one of many has few chunks.
void BlockStore::add_chunk() {
  const size_t wanted = std::clamp<size_t>(bytes_, kFirstBlocks * block_bytes_, std::max(kMostChunk, block_bytes_));
  const size_t blocks = wanted / block_bytes_;
  size_t bytes = blocks * block_bytes_;
  const bool huge = bytes >= kHugePage;
  if (huge) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const auto alignment = static_cast<std::align_val_t>(huge ? kHugePage : kLine);
  chunks_.reserve(chunks_.size() + 1);
  Chunk chunk(static_cast<unsigned char*>(::operator new[](bytes, alignment)), FreeChunk{alignment});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (huge) madvise(chunk.get(), bytes, MADV_HUGEPAGE);  // a hint: without it, a page miss or two more per arm
#endif
  next_ = chunk.get();
  left_ = bytes / block_bytes_;
  chunks_.push_back(std::move(chunk));
  bytes_ += bytes;
}

ArmTable::ArmTable(const BanditRule& rule) : blocks_(block_bytes(rule)) {}

ArmTable::~ArmTable() {
  each([](Arm& arm) { arm.~Arm(); });
}

void ArmTable::swap(ArmTable& other) noexcept {
  std::swap(places_, other.places_);
  std::swap(size_, other.size_);
  std::swap(blocks_, other.blocks_);
  contrasts_.swap(other.contrasts_);
  free_contrasts_.swap(other.free_contrasts_);
  std::swap(evidence, other.evidence);
  std::swap(budget, other.budget);
}

Arm* ArmTable::find(std::string_view id, uint64_t hash) const noexcept {
  if (places_.empty()) return nullptr;
  for (size_t place = place_of(hash);; place = (place + 1) & (places_.size() - 1)) {
    Arm* arm = places_[place];
    if (arm == nullptr || (arm->hash == hash && arm->id.view() == id)) return arm;
  }
}

Arm* ArmTable::make(std::string_view id, uint64_t hash, const BanditRule& rule, float prior) {
  reserve(size_ + 1);
  Arm* arm = new (blocks_.take()) Arm;
  try {
    arm->id.set(id);
  } catch (...) {
    arm->~Arm();
    blocks_.give(arm);
    throw;
  }
  arm->hash = hash;
  arm->prior = prior;
  if (rule.keeps_vectors()) {
    const size_t stride = rule.stride();
    float* vectors = arm->vectors();
    std::fill_n(vectors, 3 * stride, 0.0f);
    std::fill_n(vectors, rule.dimension, rule.lambda);
    std::fill_n(vectors + 2 * stride, rule.dimension, 1.0f / rule.lambda);
    if (rule.form == FINCH_BANDIT_LITERAL) {
      const double x0 = 1.0 / std::sqrt(static_cast<double>(rule.dimension));
      std::fill_n(vectors + stride, rule.dimension, static_cast<float>(static_cast<double>(prior) * x0));
    }
  }
  size_t place = place_of(hash);
  while (places_[place] != nullptr) place = (place + 1) & (places_.size() - 1);
  places_[place] = arm;
  ++size_;
  return arm;
}

Contrast* ArmTable::make_contrast(Arm* arm, size_t dimension) {
  if (arm->contrast != 0) return contrast(*arm);
  auto made = std::make_unique<Contrast>(dimension);
  if (!free_contrasts_.empty()) {
    const uint32_t place = free_contrasts_.back();
    free_contrasts_.pop_back();
    contrasts_[place] = std::move(made);
    arm->contrast = place + 1;
  } else {
    contrasts_.reserve(contrasts_.size() + 1 > contrasts_.capacity() ? 2 * contrasts_.size() + 1 : 0);
    free_contrasts_.reserve(contrasts_.capacity());
    contrasts_.push_back(std::move(made));
    arm->contrast = static_cast<uint32_t>(contrasts_.size());
  }
  return contrast(*arm);
}

void ArmTable::erase(Arm* arm) noexcept {
  if (arm->contrast != 0) {
    contrasts_[arm->contrast - 1].reset();
    free_contrasts_.push_back(arm->contrast - 1);
  }
  const size_t mask = places_.size() - 1;
  size_t hole = place_of(arm->hash);
  while (places_[hole] != arm) hole = (hole + 1) & mask;
  // Arms behind the hole that would no longer be found move into it.
  for (size_t place = (hole + 1) & mask; places_[place] != nullptr; place = (place + 1) & mask) {
    const size_t home = place_of(places_[place]->hash);
    if (((place - home) & mask) < ((place - hole) & mask)) continue;
    places_[hole] = places_[place];
    hole = place;
  }
  places_[hole] = nullptr;
  --size_;
  arm->~Arm();
  blocks_.give(arm);
}

uint64_t ArmTable::bytes() const noexcept {
  uint64_t sum = places_.size() * sizeof(Arm*) + blocks_.bytes();
  each([&](const Arm& arm) {
    sum += arm.id.bytes();
    if (arm.contrast != 0) sum += sizeof(Contrast) + 2 * contrast(arm)->dimension() * sizeof(float);
  });
  sum += contrasts_.capacity() * sizeof(std::unique_ptr<Contrast>) + free_contrasts_.capacity() * sizeof(uint32_t);
  return sum;
}

void ArmTable::reserve(size_t arms) {
  size_t places = std::max(places_.size(), kFirstPlaces);
  while (places < 2 * arms) places *= 2;
  if (places != places_.size()) grow(places);
}

void ArmTable::grow(size_t places) {
  std::vector<Arm*> grown(places);
  each([&](Arm& arm) {
    size_t place = static_cast<size_t>(arm.hash) & (places - 1);
    while (grown[place] != nullptr) place = (place + 1) & (places - 1);
    grown[place] = &arm;
  });
  places_.swap(grown);
}

uint64_t evidence_units(double evidence) noexcept {
  return static_cast<uint64_t>(std::min(evidence, 8796093022208.0 /* 2^43 */) * 1048576.0 + 0.5);
}

}  // namespace finch
