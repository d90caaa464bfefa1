#include "disk.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "error.hpp"
#include "replace.hpp"

#if defined(_WIN32)
#include <io.h>
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace finch {
namespace {

#if defined(_WIN32)
int seek(std::FILE* file, uint64_t offset) { return _fseeki64(file, static_cast<int64_t>(offset), SEEK_SET); }
int sync(std::FILE* file) { return _commit(_fileno(file)); }
// An open file cannot be moved.
int close_and_replace(std::FILE* file, const char* from, const char* to) {
  if (std::fclose(file) != 0) return -1;
  if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) return 0;
  errno = EACCES;
  return -1;
}
void sync_folder_of(const std::string&) {}
#else
int seek(std::FILE* file, uint64_t offset) { return fseeko(file, static_cast<off_t>(offset), SEEK_SET); }

int sync(std::FILE* file) { return fsync(fileno(file)); }

// Closed last: the lock on it keeps cleaners away.
int close_and_replace(std::FILE* file, const char* from, const char* to) {
  const int failed = std::rename(from, to);
  const int error = errno;
  std::fclose(file);  // everything was flushed and synced
  errno = error;
  return failed;
}

// Makes the rename itself durable. Some file systems cannot sync a folder; then there is nothing to do about it.
void sync_folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(fsync(fd));
  ::close(fd);
}
#endif

}  // namespace

OutputFile::OutputFile(const char* path) : path_(path) {
  error_ = find_target(path_, &target_);
  if (error_ != 0) return;
  remove_stale_temporaries(target_);
  file_ = create_temporary(target_, &temporary_);
  if (file_ == nullptr) keep_error();
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
}

void OutputFile::keep_error() noexcept {
  if (error_ == 0) error_ = errno != 0 ? errno : EIO;
}

void OutputFile::write(const void* data, size_t size) noexcept {
  if (error_ != 0 || size == 0) return;
  errno = 0;
  if (std::fwrite(data, 1, size, file_) != size) keep_error();
  position_ += size;
}

void OutputFile::write_at(uint64_t offset, const void* data, size_t size) noexcept {
  if (error_ != 0) return;
  errno = 0;
  if (seek(file_, offset) != 0 || std::fwrite(data, 1, size, file_) != size) keep_error();
}

finch_status OutputFile::commit() noexcept {
  try {
    if (error_ == 0 && (std::fflush(file_) != 0 || sync(file_) != 0)) keep_error();
    if (file_ != nullptr) {
      std::FILE* file = std::exchange(file_, nullptr);
      if (error_ != 0) {
        std::fclose(file);
      } else if (close_and_replace(file, temporary_.c_str(), target_.c_str()) != 0) {
        keep_error();
      }
      if (error_ != 0) {
        std::remove(temporary_.c_str());
      } else {
        sync_folder_of(target_);
      }
    }
  } catch (...) {
    // Only the folder's name can have been too much for the memory left: the file itself is in place.
  }
  if (error_ == 0) return FINCH_OK;
  return fail(FINCH_IO, "cannot write \"%.400s\": %s. Check that its folder exists, may be written and has room.",
              path_.c_str(), std::strerror(error_));
}

InputFile::~InputFile() {
  if (file_ != nullptr) std::fclose(file_);
}

finch_status InputFile::open(const char* path) noexcept {
#if defined(_WIN32)
  file_ = std::fopen(path, "rb");
  const bool opened = file_ != nullptr && _fseeki64(file_, 0, SEEK_END) == 0;
  if (opened) size_ = static_cast<uint64_t>(_ftelli64(file_));
#else
  // Non-blocking: a pipe without a writer must not hold the caller up.
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool opened = false;
  if (fd >= 0) {
    struct stat info;
    if (fstat(fd, &info) == 0) {
      if (S_ISREG(info.st_mode)) {
        size_ = static_cast<uint64_t>(info.st_size);
        file_ = fdopen(fd, "rb");
        opened = file_ != nullptr;
      } else {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
      }
    }
    if (!opened) {
      const int error = errno;
      ::close(fd);
      errno = error;
    }
  }
#endif
  if (opened) return FINCH_OK;
  return fail(FINCH_IO, "cannot read \"%.400s\": %s. Give the path of an index file.", path, std::strerror(errno));
}

bool InputFile::read_at(uint64_t offset, void* data, size_t size) noexcept {
  errno = 0;
  if (seek(file_, offset) != 0) {
    error_ = errno;
    return false;
  }
  return read(data, size);
}

bool InputFile::read(void* data, size_t size) noexcept {
  errno = 0;
  if (std::fread(data, 1, size, file_) == size) return true;
  error_ = std::ferror(file_) != 0 ? errno : 0;
  return false;
}

finch_status InputFile::map(const char* path, std::shared_ptr<const Mapping>* out) noexcept {
  if (size_ == 0 || size_ > SIZE_MAX) return fail(FINCH_IO, "cannot map \"%.400s\": its size does not allow it.", path);
  try {
    auto mapping = std::make_shared<Mapping>();
    const auto size = static_cast<size_t>(size_);
#if defined(_WIN32)
    const auto file = reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(file_)));
    const HANDLE section = CreateFileMappingA(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (section != nullptr) {
      mapping->data_ = MapViewOfFile(section, FILE_MAP_READ, 0, 0, size);
      CloseHandle(section);  // the view keeps it
    }
    if (mapping->data_ == nullptr) {
      return fail(FINCH_IO, "cannot map \"%.400s\" (error %lu). Open it without mapping.", path, GetLastError());
    }
#else
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fileno(file_), 0);
    if (data == MAP_FAILED) {
      if (errno == ENOMEM) return fail(FINCH_NO_MEMORY, "cannot map \"%.400s\": no room for it.", path);
      return fail(FINCH_IO, "cannot map \"%.400s\": %s. Open it without mapping.", path, std::strerror(errno));
    }
    mapping->data_ = data;
#endif
    mapping->size_ = size;
    *out = std::move(mapping);
    return FINCH_OK;
  } catch (const std::bad_alloc&) {
    return fail(FINCH_NO_MEMORY, "out of memory while mapping \"%.400s\".", path);
  }
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
#if defined(_WIN32)
  UnmapViewOfFile(data_);
#else
  munmap(data_, size_);
#endif
}

}  // namespace finch
