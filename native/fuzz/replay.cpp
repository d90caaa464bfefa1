// Runs a target on files and folders of files, once each: what libFuzzer does with files on its command line, for
// compilers that lack libFuzzer.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

char running[4096] = "";

void name_input() { std::fprintf(stderr, "the input: %s\n", running); }

}  // namespace

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  std::signal(SIGABRT, [](int) { name_input(); });
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(name_input);
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    if (arguments[i][0] == '-') continue;  // libFuzzer's options
    if (!fs::exists(arguments[i])) {
      std::fprintf(stderr, "%s does not exist\n", arguments[i]);
      return 1;
    }
    if (!fs::is_directory(arguments[i])) {
      files.emplace_back(arguments[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    exact.shrink_to_fit();
    std::snprintf(running, sizeof(running), "%s", path.c_str());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  std::printf("%zu inputs, none failed\n", files.size());
  return files.empty() ? 1 : 0;
}
