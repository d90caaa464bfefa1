// What the fuzz targets share: decisions taken from the input's bytes, memory of exactly the size a call may touch (so
// that the sanitizer sees one byte too many), and a check that ends the process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "toolfinch.h"

namespace finch_fuzz {

#define FUZZ_CHECK(condition, ...)                                                                    \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: not so: %s\n  last error: %s\n  ", __FILE__, __LINE__, #condition, \
                   finch_last_error());                                                               \
      std::fprintf(stderr, " " __VA_ARGS__);                                                          \
      std::fputc('\n', stderr);                                                                       \
      std::abort();                                                                                   \
    }                                                                                                 \
  } while (false)

// Reads the input from front to back; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  bool empty() const { return left_ == 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  // 0 ... limit - 1.
  uint32_t below(uint32_t limit) { return limit <= 1 ? 0 : (limit <= 256 ? byte() : word()) % limit; }
  // True once in `n`; false when the input is used up.
  bool one_in(uint32_t n) { return below(n) == n - 1; }
  uint32_t word() {
    uint32_t v = 0;
    for (int i = 0; i < 4; ++i) v = v << 8 | byte();
    return v;
  }
  uint64_t wide() { return uint64_t{word()} << 32 | word(); }

  // Mostly ordinary; hostile at times.
  float number() {
    const uint8_t what = byte();
    if (what < 0xE0) return (static_cast<float>(byte()) - 127.5f) / 64.0f * static_cast<float>(1 + what % 3);
    constexpr float kOdd[] = {0.0f,
                              -0.0f,
                              1.0f,
                              -1.0f,
                              1e-45f,
                              -1e-40f,
                              1.17549435e-38f,
                              1e-30f,
                              1e-15f,
                              1e15f,
                              1e19f,
                              -1e30f,
                              std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::lowest(),
                              0.5f,
                              1.0000001f};
    if (what < 0xF8) return kOdd[byte() % 16];
    if (what < 0xFA) return std::numeric_limits<float>::quiet_NaN();
    if (what < 0xFC) return (byte() & 1) != 0 ? kInfinity : -kInfinity;
    const uint32_t bits = word();
    float v;
    std::memcpy(&v, &bits, sizeof(v));
    return v;
  }
  // In [0, 1], mostly.
  float share() { return one_in(32) ? number() : static_cast<float>(byte()) / 255.0f; }
  double time() {
    const uint8_t what = byte();
    if (what < 0xF0) return 1000.0 * static_cast<double>(word() % 10000000);
    constexpr double kOdd[] = {0.0, -1.0, -1e300, 1e300, 1e-320, kWide, -kWide, 0.0};
    return what == 0xFF ? std::numeric_limits<double>::quiet_NaN() : kOdd[what % 8];
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr double kWide = std::numeric_limits<double>::infinity();
  const uint8_t* at_;
  size_t left_;
};

// `count` of T on the heap with nothing behind them; `shift` bytes off T's alignment. Remembers what it held.
template <typename T>
class Room {
 public:
  explicit Room(size_t count, size_t shift = 0) : bytes_(count * sizeof(T)), shift_(shift) {
    block_ = static_cast<unsigned char*>(std::malloc(shift + bytes_ + (bytes_ == 0)));
    if (block_ == nullptr) std::abort();
    std::memset(block_, 0xA5, shift + bytes_);
    keep();
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { std::free(block_); }

  T* get() { return reinterpret_cast<T*>(block_ + shift_); }
  T at(size_t i) const {
    T v;
    std::memcpy(&v, block_ + shift_ + i * sizeof(T), sizeof(T));
    return v;
  }
  void set(size_t i, const T& v) { std::memcpy(block_ + shift_ + i * sizeof(T), &v, sizeof(T)); }
  void keep() { before_.assign(block_ + shift_, block_ + shift_ + bytes_); }
  bool untouched() const { return untouched_from(0); }
  bool untouched_from(size_t i) const {
    const size_t first = i * sizeof(T);
    return first >= bytes_ || std::memcmp(block_ + shift_ + first, before_.data() + first, bytes_ - first) == 0;
  }
  // Elements first ... end - 1.
  bool untouched_between(size_t first, size_t end) const {
    return first >= end || std::memcmp(block_ + shift_ + first * sizeof(T), before_.data() + first * sizeof(T),
                                       (end - first) * sizeof(T)) == 0;
  }

 private:
  size_t bytes_;
  size_t shift_;
  unsigned char* block_;
  std::vector<unsigned char> before_;
};

// A sized struct as callers of any age give it: `size` as it should be, smaller (and then no byte more is there), or
// larger.
template <typename T>
class Sized {
 public:
  Sized(Input& in, T value) : Sized(in, value, in.one_in(16)) {}
  Sized(Input& in, T value, bool hostile) {
    size_ = sizeof(T);
    if (hostile) {
      switch (in.below(6)) {
        case 0:
          size_ = 0;
          break;
        case 1:
          size_ = in.below(sizeof(T));
          break;
        case 2:
          size_ = sizeof(T) - 4;
          break;
        case 3:
          size_ = sizeof(T) + 8;
          break;
        case 4:
          size_ = sizeof(T) + in.byte();
          break;
        default:
          size_ = std::numeric_limits<size_t>::max();
          break;
      }
    }
    size_t room = size_ < sizeof(T) ? size_ : sizeof(T);
    if (room < sizeof(size_t)) room = sizeof(size_t);
    block_ = std::malloc(room);
    if (block_ == nullptr) std::abort();
    value.size = size_;
    std::memcpy(block_, &value, room);
    room_ = room;
    before_.assign(static_cast<unsigned char*>(block_), static_cast<unsigned char*>(block_) + room);
  }
  Sized(const Sized&) = delete;
  Sized& operator=(const Sized&) = delete;
  ~Sized() { std::free(block_); }

  T* get() { return static_cast<T*>(block_); }
  bool too_small() const { return size_ < sizeof(T); }
  bool untouched() const { return std::memcmp(block_, before_.data(), room_) == 0; }
  bool kept_size() const { return std::memcmp(block_, &size_, sizeof(size_)) == 0; }

 private:
  void* block_;
  size_t size_ = 0;
  size_t room_ = 0;
  std::vector<unsigned char> before_;
};

// Every status is a documented one, none says that Toolfinch itself is at fault, and a failure says why.
inline finch_status checked(finch_status status) {
  FUZZ_CHECK(status >= FINCH_OK && status < FINCH_INTERNAL, "status %d", status);
  if (status != FINCH_OK) FUZZ_CHECK(std::strlen(finch_last_error()) > 10, "status %d has no message", status);
  return status;
}

// A folder in memory, one for each process; a process that crashes leaves it to who started it
// (TOOLFINCH_FUZZ_SCRATCH).
inline const std::string& scratch() {
  struct Folder {
    Folder() {
      const char* where = std::getenv("TOOLFINCH_FUZZ_SCRATCH");
      path = std::string(where != nullptr ? where : "/dev/shm") + "/finch-fuzz-XXXXXX";
      if (mkdtemp(path.data()) == nullptr) std::abort();
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

inline std::string put_file(const char* name, const void* data, size_t size) {
  const std::string path = scratch() + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::abort();
  if (size > 0 && std::fwrite(data, 1, size, file) != size) std::abort();
  std::fclose(file);
  return path;
}

}  // namespace finch_fuzz
