// The index file's layout; docs/index-format.md describes it.
#pragma once

#include <bit>
#include <cstdint>

namespace finch::format {

static_assert(std::endian::native == std::endian::little,
              "the index file is little-endian and written as it lies in memory");

constexpr unsigned char kMagic[8] = {0x89, 'F', 'I', 'X', '\r', '\n', 0x1A, '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kAlignment = 64;
constexpr uint32_t kMostBlobs = 4096;
constexpr uint32_t kMostSections = kMostBlobs + 64;
constexpr uint32_t kMostBlobName = 63;

struct Header {
  unsigned char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t dimension;
  uint32_t sections;
  uint64_t rows;
  uint64_t next_key;
  uint64_t file_bytes;
  uint64_t table_checksum;
  uint64_t header_checksum;  // of all bytes before it
};
static_assert(sizeof(Header) == 64);

enum Kind : uint32_t {
  kKeys = 1,     // uint64 each, ascending
  kPriors = 2,   // float32 each
  kIdSizes = 3,  // uint32 each
  kIdBytes = 4,  // one after another
  kVectors = 5,  // float32, rows x dimension
  kAnn = 6,      // AnnHeader and what follows it
  kCodes = 7,    // CodesHeader, rows x stride bytes, for i8 a float32 scale a row
  kBlob = 16,    // uint32 size of the name, the name, the data
};

struct Section {
  uint32_t kind;
  uint32_t flags;  // 0
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;
};
static_assert(sizeof(Section) == 32);

// Codes as kernels/scan/scan.hpp describes them, aligned to 64 bytes in the file as in memory.
struct CodesHeader {
  uint32_t storage;  // finch_storage, not float32
  uint32_t stride;   // code_stride
  unsigned char zeros[56];
};
static_assert(sizeof(CodesHeader) == kAlignment);

// Then: uint32 row of each entry (kStaleRow: of none), uint8 level of each entry filled up to a multiple of 4 with
// zeros, uint32 base links, uint32 upper links, float32 vectors of the entries without a row.
struct AnnHeader {
  uint32_t connectivity;
  uint32_t expansion_add;
  uint32_t expansion_search;
  uint32_t entries;
  uint32_t entry;
  uint32_t top_level;
  uint32_t stale;
  uint32_t reserved;  // 0
};
static_assert(sizeof(AnnHeader) == 32);
constexpr uint32_t kStaleRow = 0xFFFFFFFFu;

constexpr uint64_t align(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace finch::format
