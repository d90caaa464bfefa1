// Files as the index format needs them: whole, checksummed as they pass, and replaced in one step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "hash.hpp"
#include "toolfinch.h"

namespace finch {

// Writes beside the file that `path` stands for (replace.hpp); commit() syncs and renames. Without commit nothing is
// left behind, unless the process is killed: then the next writer clears it away.
class OutputFile {
 public:
  explicit OutputFile(const char* path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors are kept until commit(), so that writing reads as a list of what is written.
  void write(const void* data, size_t size) noexcept;
  void write_at(uint64_t offset, const void* data, size_t size) noexcept;
  uint64_t position() const noexcept { return position_; }
  // FINCH_IO with a message, or FINCH_OK and the file is in place and on the disk.
  finch_status commit() noexcept;

 private:
  void keep_error() noexcept;

  std::string path_;    // as given
  std::string target_;  // behind symbolic links
  std::string temporary_;
  std::FILE* file_ = nullptr;
  uint64_t position_ = 0;
  int error_ = 0;
};

// A file's pages, read-only and shared with every process that maps it. They are those of the file that was opened,
// even when another has taken its name since. Reading them after somebody shortened the file ends the process (SIGBUS);
// nothing here ever writes to a file in place.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const unsigned char* data() const noexcept { return static_cast<const unsigned char*>(data_); }

 private:
  friend class InputFile;
  void* data_ = nullptr;
  size_t size_ = 0;
};

class InputFile {
 public:
  InputFile() = default;
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // FINCH_IO with a message when there is no such regular file or it may not be read.
  finch_status open(const char* path) noexcept;
  uint64_t size() const noexcept { return size_; }
  // False on a read error or when the file ends first.
  bool read_at(uint64_t offset, void* data, size_t size) noexcept;
  bool read(void* data, size_t size) noexcept;
  // The whole file. FINCH_IO or FINCH_NO_MEMORY with a message; `path` is for that alone.
  finch_status map(const char* path, std::shared_ptr<const Mapping>* out) noexcept;
  // errno of the last failed read; 0 when the file merely ended.
  int error() const noexcept { return error_; }

 private:
  std::FILE* file_ = nullptr;
  uint64_t size_ = 0;
  int error_ = 0;
};

}  // namespace finch
