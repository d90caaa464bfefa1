// Hashes and checksums.
#pragma once

#include <cstddef>
#include <cstdint>

namespace finch {

// Spreads a key's bits, mixed with the process's secret (see hash_id in snapshot.hpp).
uint64_t hash_key(uint64_t key) noexcept;

// XXH64 of bytes that arrive in pieces: the checksum of the file formats.
class Checksum {
 public:
  void add(const void* data, size_t size) noexcept;
  uint64_t value() const noexcept;

 private:
  uint64_t lanes_[4] = {0x60EA27EEADC0B5D6u, 0xC2B2AE3D27D4EB4Fu, 0, 0x61C8864E7A143579u};
  uint64_t total_ = 0;
  unsigned char pending_[32];
};

uint64_t checksum(const void* data, size_t size) noexcept;

}  // namespace finch
