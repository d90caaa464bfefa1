// The matrix unit: 16 x 64-byte tiles, four sums of two by two operands.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "limits.hpp"

namespace finch::bench {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t columns[16] = {};
  uint8_t rows[16] = {};
};

struct Operands {
  alignas(64) uint8_t bytes[1024];
};

void configure(const Operands& operand) {
  TileConfig config;
  for (size_t tile = 0; tile < 8; ++tile) {
    config.columns[tile] = 64;
    config.rows[tile] = 16;
  }
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operand.bytes, 64);
  _tile_loadd(5, operand.bytes, 64);
  _tile_loadd(6, operand.bytes, 64);
  _tile_loadd(7, operand.bytes, 64);
}

void finish(float* sink) {
  alignas(64) float sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  std::memcpy(sink, sums, 16 * sizeof(float));
}

}  // namespace

bool amx_permitted() {
  // ARCH_REQ_XCOMP_PERM for XTILEDATA: Linux hands the tiles' state out on request only.
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

double amx_peak_bf16(size_t rounds, float* sink) {
  Operands operand;
  std::memset(operand.bytes, 0, sizeof operand.bytes);
  configure(operand);
  for (size_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  finish(sink);
  return 4.0 * 16 * 16 * 32 * 2;
}

double amx_peak_i8(size_t rounds, float* sink) {
  Operands operand;
  std::memset(operand.bytes, 1, sizeof operand.bytes);
  configure(operand);
  for (size_t round = 0; round < rounds; ++round) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  finish(sink);
  return 4.0 * 16 * 16 * 64 * 2;
}

}  // namespace finch::bench
