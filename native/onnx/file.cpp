#include "file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.hpp"

namespace finch {
namespace {

struct Closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

finch_status open_file(const char* path, const char* what, File* out) {
  const auto* bytes = reinterpret_cast<const char8_t*>(path);
  std::error_code error;
  if (std::filesystem::is_directory(std::filesystem::path(bytes), error)) {
    return fail(FINCH_IO, "the %s %s is a folder; expected a file.", what, path);
  }
#if defined(_WIN32)
  File file(_wfopen(std::filesystem::path(bytes).c_str(), L"rb"));
#else
  File file(std::fopen(path, "rb"));
#endif
  if (file == nullptr) {
    return fail(FINCH_IO, "cannot open the %s %s: %s; check the path and its permissions.", what, path,
                std::strerror(errno));
  }
  *out = std::move(file);
  return FINCH_OK;
}

}  // namespace

finch_status read_file(const char* path, const char* what, std::string* out) {
  File file;
  if (const finch_status status = open_file(path, what, &file); status != FINCH_OK) return status;
  std::string content;
  char part[65536];
  for (size_t size; (size = std::fread(part, 1, sizeof(part), file.get())) > 0;) content.append(part, size);
  if (std::ferror(file.get()) != 0)
    return fail(FINCH_IO, "reading the %s %s failed: %s.", what, path, std::strerror(errno));
  *out = std::move(content);
  return FINCH_OK;
}

finch_status check_file(const char* path, const char* what) {
  File file;
  return open_file(path, what, &file);
}

}  // namespace finch
