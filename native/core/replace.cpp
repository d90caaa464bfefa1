#include "replace.hpp"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "hash.hpp"

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace finch {
namespace {

constexpr std::string_view kMark = ".tmp-";

std::string temporary_name(const std::string& target, long process) {
  static std::atomic<uint64_t> number{0};
  char end[48];
  // The hash is keyed with the process's random secret.
  std::snprintf(end, sizeof(end), "%ld-%016" PRIx64, process, hash_key(number.fetch_add(1)));
  return target + std::string(kMark) + end;
}

// The process in the name of a temporary of `base`, 0 when `name` is none.
long writer_of(std::string_view name, std::string_view base) {
  if (name.size() <= base.size() + kMark.size() || name.substr(0, base.size()) != base ||
      name.substr(base.size(), kMark.size()) != kMark) {
    return 0;
  }
  const std::string_view end = name.substr(base.size() + kMark.size());
  const size_t dash = end.find('-');
  if (dash == std::string_view::npos || dash < 1 || dash > 10 || end.size() - dash - 1 < 1 ||
      end.size() - dash - 1 > 16 || end.find_first_not_of("0123456789") != dash ||
      end.find_first_not_of("0123456789abcdef", dash + 1) != std::string_view::npos) {
    return 0;
  }
  long writer = 0;
  const auto [rest, error] = std::from_chars(end.data(), end.data() + dash, writer);
  return error == std::errc() && rest == end.data() + dash && writer <= INT32_MAX ? writer : 0;
}

// With the separator at its end; empty for the present folder.
std::string folder_of(const std::string& path) {
#if defined(_WIN32)
  const size_t end = path.find_last_of("/\\");
#else
  const size_t end = path.find_last_of('/');
#endif
  return end == std::string::npos ? "" : path.substr(0, end + 1);
}

}  // namespace

#if defined(_WIN32)

// Links are followed by the system, which names what it opened.
int find_target(const std::string& path, std::string* target) {
  *target = path;
  const DWORD attributes = GetFileAttributesA(path.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return 0;
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return EISDIR;
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) == 0) return 0;
  const HANDLE file = CreateFileA(path.c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return ENOENT;
  char name[4096];
  const DWORD size = GetFinalPathNameByHandleA(file, name, sizeof(name), FILE_NAME_NORMALIZED);
  CloseHandle(file);
  if (size == 0 || size >= sizeof(name)) return ENOENT;
  target->assign(name, size);
  return 0;
}

std::FILE* create_temporary(const std::string& target, std::string* name) {
  *name = temporary_name(target, _getpid());
  return std::fopen(name->c_str(), "wbx");
}

void remove_stale_temporaries(const std::string& target) {
  const std::string folder = folder_of(target);
  const std::string base = target.substr(folder.size());
  WIN32_FIND_DATAA found;
  const HANDLE search = FindFirstFileA((target + std::string(kMark) + "*").c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) return;
  do {
    const long writer = writer_of(found.cFileName, base);
    if (writer == 0) continue;
    const HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(writer));
    const bool alive = process != nullptr ? WaitForSingleObject(process, 0) == WAIT_TIMEOUT
                                          : GetLastError() != ERROR_INVALID_PARAMETER;
    if (process != nullptr) CloseHandle(process);
    if (!alive) DeleteFileA((folder + found.cFileName).c_str());  // refused while somebody has it open
  } while (FindNextFileA(search, &found));
  FindClose(search);
}

#else

int find_target(const std::string& path, std::string* target) {
  *target = path;
  for (int links = 0; links <= 40; ++links) {
    struct stat info;
    if (lstat(target->c_str(), &info) != 0) return 0;  // not there yet; what else is wrong shows when it is created
    if (S_ISREG(info.st_mode)) return 0;
    if (!S_ISLNK(info.st_mode)) return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    char to[4096];
    const ssize_t size = readlink(target->c_str(), to, sizeof(to));
    if (size < 0) return errno;
    if (static_cast<size_t>(size) == sizeof(to)) return ENAMETOOLONG;
    const std::string next(to, static_cast<size_t>(size));
    *target = next.rfind('/', 0) == 0 ? next : folder_of(*target) + next;
  }
  return ELOOP;
}

namespace {

// False when that is not permitted: then others than before might read it.
bool inherit(int fd, const struct stat& replaced) {
  struct stat now;
  if (fstat(fd, &now) != 0) return false;
  mode_t mode = replaced.st_mode & 07777;
  if (now.st_uid != replaced.st_uid && fchown(fd, replaced.st_uid, static_cast<gid_t>(-1)) != 0) {
    mode &= static_cast<mode_t>(~(S_ISUID | S_ISGID));
  }
  if (now.st_gid != replaced.st_gid && fchown(fd, static_cast<uid_t>(-1), replaced.st_gid) != 0) {
    // Another group than the file was meant for: it may do what everybody may, no more.
    mode &= static_cast<mode_t>(~(S_ISGID | S_IRWXG)) | ((mode & S_IRWXO) << 3);
  }
  return fchmod(fd, mode) == 0;
}

}  // namespace

std::FILE* create_temporary(const std::string& target, std::string* name) {
  for (int tries = 0; tries < 16; ++tries) {
    *name = temporary_name(target, getpid());
    struct stat replaced;
    const bool replaces = stat(target.c_str(), &replaced) == 0;
    const int fd = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
    if (fd < 0) {
      if (errno == EEXIST) continue;
      return nullptr;
    }
    // A cleaner of another container may have found it before the lock: then it is gone, and another is made. Some file
    // systems have no locks; there the process's number must do.
    struct stat info;
    if ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || fstat(fd, &info) != 0 || info.st_nlink == 0) {
      ::close(fd);
      ::unlink(name->c_str());
      continue;
    }
    std::FILE* file = !replaces || inherit(fd, replaced) ? fdopen(fd, "wb") : nullptr;
    if (file == nullptr) {
      const int error = errno;
      ::unlink(name->c_str());
      ::close(fd);
      errno = error;
    }
    return file;
  }
  errno = EEXIST;
  return nullptr;
}

void remove_stale_temporaries(const std::string& target) {
  const std::string folder = folder_of(target);
  const std::string base = target.substr(folder.size());
  DIR* listing = opendir(folder.empty() ? "." : folder.c_str());
  if (listing == nullptr) return;
  const int at = dirfd(listing);
  while (const dirent* entry = readdir(listing)) {
    const long writer = writer_of(entry->d_name, base);
    if (writer == 0 || kill(static_cast<pid_t>(writer), 0) == 0 || errno != ESRCH) continue;
    // Neither a link nor a pipe is opened, and nothing that a writer holds is removed.
    const int fd = openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0) {
      static_cast<void>(unlinkat(at, entry->d_name, 0));
    }
    ::close(fd);
  }
  closedir(listing);
}

#endif

}  // namespace finch
