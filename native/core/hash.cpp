#include "hash.hpp"

#include <bit>
#include <chrono>
#include <cstring>
#include <random>

#include "snapshot.hpp"

namespace finch {
namespace {

uint64_t load64(const unsigned char* p) noexcept {
  uint64_t x;
  std::memcpy(&x, p, sizeof(x));
  if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap64(x);
  return x;
}

uint32_t load32(const unsigned char* p) noexcept {
  uint32_t x;
  std::memcpy(&x, p, sizeof(x));
  if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap32(x);
  return x;
}

uint64_t finalise(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

struct Secret {
  uint64_t a;
  uint64_t b;

  Secret() noexcept {
    // The clock and the address layout, should the machine have no source of randomness.
    a = static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count());
    b = reinterpret_cast<uintptr_t>(this);
    try {
      std::random_device device;
      a ^= (static_cast<uint64_t>(device()) << 32) | device();
      b ^= (static_cast<uint64_t>(device()) << 32) | device();
    } catch (...) {
    }
    a = finalise(a);
    b = finalise(b);
  }
};

const Secret& secret() noexcept {
  static const Secret instance;
  return instance;
}

}  // namespace

// SipHash-1-3 (Aumasson and Bernstein).
uint64_t hash_id(std::string_view id) noexcept {
  const Secret& key = secret();
  uint64_t v0 = key.a ^ 0x736F6D6570736575u;
  uint64_t v1 = key.b ^ 0x646F72616E646F6Du;
  uint64_t v2 = key.a ^ 0x6C7967656E657261u;
  uint64_t v3 = key.b ^ 0x7465646279746573u;
  const auto round = [&] {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  };
  const auto absorb = [&](uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  };
  const auto* p = reinterpret_cast<const unsigned char*>(id.data());
  size_t left = id.size();
  for (; left >= 8; left -= 8, p += 8) absorb(load64(p));
  uint64_t last = static_cast<uint64_t>(id.size()) << 56;
  for (size_t i = 0; i < left; ++i) last |= static_cast<uint64_t>(p[i]) << (8 * i);
  absorb(last);
  v2 ^= 0xFF;
  for (int i = 0; i < 3; ++i) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

uint64_t hash_key(uint64_t key) noexcept { return finalise(finalise(key + secret().a) + secret().b); }

namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

uint64_t xxh_round(uint64_t lane, uint64_t word) noexcept { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

}  // namespace

void Checksum::add(const void* data, size_t size) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  size_t filled = static_cast<size_t>(total_ % sizeof(pending_));
  total_ += size;
  const auto stripe = [this](const unsigned char* from) {
    for (int i = 0; i < 4; ++i) lanes_[i] = xxh_round(lanes_[i], load64(from + 8 * i));
  };
  if (filled > 0) {
    const size_t take = size < sizeof(pending_) - filled ? size : sizeof(pending_) - filled;
    if (take > 0) std::memcpy(pending_ + filled, p, take);
    p += take;
    size -= take;
    if (filled + take < sizeof(pending_)) return;
    stripe(pending_);
  }
  for (; size >= sizeof(pending_); size -= sizeof(pending_), p += sizeof(pending_)) stripe(p);
  if (size > 0) std::memcpy(pending_, p, size);
}

uint64_t Checksum::value() const noexcept {
  uint64_t h = 0;
  if (total_ >= sizeof(pending_)) {
    h = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) h = (h ^ xxh_round(0, lane)) * kPrime1 + kPrime4;
  } else {
    h = kPrime5;
  }
  h += total_;
  const unsigned char* p = pending_;
  size_t left = static_cast<size_t>(total_ % sizeof(pending_));
  for (; left >= 8; left -= 8, p += 8) h = std::rotl(h ^ xxh_round(0, load64(p)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    h = std::rotl(h ^ (load32(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
    left -= 4;
  }
  for (; left > 0; --left, ++p) h = std::rotl(h ^ (*p * kPrime5), 11) * kPrime1;
  h = (h ^ (h >> 33)) * kPrime2;
  h = (h ^ (h >> 29)) * kPrime3;
  return h ^ (h >> 32);
}

uint64_t checksum(const void* data, size_t size) noexcept {
  Checksum sum;
  sum.add(data, size);
  return sum.value();
}

}  // namespace finch
