#include "ort_api.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/error.hpp"
#include "exit_gate.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace finch::ort {
namespace {

// The oldest release that is tested against; also the version of the table that is asked for.
constexpr int kOldestMajor = 1, kOldestMinor = 17;
constexpr size_t kMessageBytes = 400;

struct ApiBase {
  const Api* (*get_api)(uint32_t version);
  const char* (*version)();
};

// Whatever onnxruntime has to say reaches the caller as a status; a library does not print.
void no_log(void*, int, const char*, const char*, const char*, const char*) {}

// Threads of the pool, onnxruntime's logger and exit hooks point into this library: it must never be unmapped.
void pin_this_library() noexcept {
#if defined(_WIN32)
  HMODULE self = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     reinterpret_cast<LPCWSTR>(&no_log), &self);
#else
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&no_log), &info) != 0 && info.dli_fname != nullptr) {
    dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD);
  }
#endif
}

// Builds of onnxruntime 1.30 for Linux and macOS send usage data to their vendor: while they start they make a device
// id, a database in the user's cache folder and a thread for uploads. Only this variable, set before that, prevents all
// of it; disable_telemetry() alone comes too late. Whoever set it himself, to whatever, has decided.
void opt_out_of_telemetry() noexcept {
#if !defined(_WIN32)
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);
#endif
}

// The opened library's entry point, or the system's reason in `reason`.
void* entry_point(const std::filesystem::path& path, void** opened, std::string* reason) {
#if defined(_WIN32)
  HMODULE library = LoadLibraryExW(path.c_str(), nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
  void* entry = library == nullptr ? nullptr : reinterpret_cast<void*>(GetProcAddress(library, "OrtGetApiBase"));
  if (entry == nullptr) *reason = "Windows error " + std::to_string(GetLastError());
  *opened = reinterpret_cast<void*>(library);
#else
  // It stays: onnxruntime has thread-local and static objects that outlive any use of ours.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* entry = library == nullptr ? nullptr : dlsym(library, "OrtGetApiBase");
  if (entry == nullptr) {
    const char* said = dlerror();
    *reason = said == nullptr ? "unknown reason" : said;
  }
  *opened = library;
#endif
  return entry;
}

finch_status start(const std::filesystem::path& path, const char* given, Runtime* out) {
  std::string reason;
  void* entry = entry_point(path, &out->library, &reason);
  if (entry == nullptr) {
    return fail(
        FINCH_DEVICE,
        "%s could not be loaded as onnxruntime: %.600s. Use a build for this operating system and processor, such as "
        "the one in the npm package onnxruntime-node.",
        given, reason.c_str());
  }
  exit_gate_register();
  const ApiBase* base = reinterpret_cast<const ApiBase* (*)()>(entry)();
  out->version = base->version();
  int major = 0, minor = 0;
  // The number is looked at first, since get_api() prints when it is asked for too much.
  if (std::sscanf(out->version.c_str(), "%d.%d", &major, &minor) != 2 || major < kOldestMajor ||
      (major == kOldestMajor && minor < kOldestMinor)) {
    return fail(FINCH_DEVICE, "%s is onnxruntime %s; %d.%d or newer is needed.", given, out->version.c_str(),
                kOldestMajor, kOldestMinor);
  }
  const Api* api = base->get_api(kOldestMinor);
  if (api == nullptr) {
    return fail(FINCH_DEVICE,
                "%s (onnxruntime %s) no longer has version %d of its C API; use a release of onnxruntime 1.", given,
                out->version.c_str(), kOldestMinor);
  }
  out->api = api;
  Status* status = api->create_env_with_logger(no_log, nullptr, kSeverityError, "toolfinch", &out->env);
  if (status == nullptr) {
    Status* ignored = api->disable_telemetry(out->env);
    if (ignored != nullptr) api->release_status(ignored);
    status = api->create_cpu_memory_info(kDeviceAllocator, kDefaultMemory, &out->cpu);
  }
  if (status == nullptr) status = api->default_allocator(&out->allocator);
  exit_gate_register();
  if (status == nullptr) return FINCH_OK;
  return fail(FINCH_DEVICE, "onnxruntime %s did not start: %s", out->version.c_str(), describe(*api, status).c_str());
}

struct Loaded {
  std::mutex mutex;
  std::map<std::filesystem::path, Runtime> runtimes;  // nodes stay where they are
};

}  // namespace

Unused Runtime::find(const char* name) const noexcept {
  if (name == nullptr) return nullptr;
#if defined(_WIN32)
  return reinterpret_cast<Unused>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
#else
  return reinterpret_cast<Unused>(dlsym(library, name));
#endif
}

std::string describe(const Api& api, Status* status) {
  if (status == nullptr) return {};
  std::string text = api.get_error_message(status);
  api.release_status(status);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (text.size() > kMessageBytes) {
    size_t cut = kMessageBytes;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) cut--;
    text.resize(cut);
    text += " ...";
  }
  return text;
}

finch_status load(const char* path, const Runtime** out) {
  std::error_code error;
  const std::filesystem::path given(reinterpret_cast<const char8_t*>(path));
  const std::filesystem::path real = std::filesystem::canonical(given, error);
  if (error || !std::filesystem::is_regular_file(real, error)) {
    return fail(
        FINCH_DEVICE,
        "there is no onnxruntime library at %s; install the npm package onnxruntime-node (npm install onnxruntime-node "
        "--ignore-scripts) or give the path of libonnxruntime.",
        path);
  }
  // Never destroyed: encoders may be opened and released until the very end of the process.
  static Loaded* const loaded = new Loaded;
  std::lock_guard lock(loaded->mutex);
  const auto present = loaded->runtimes.find(real);
  if (present != loaded->runtimes.end()) {
    *out = &present->second;
    return FINCH_OK;
  }
  pin_this_library();
  opt_out_of_telemetry();
  Runtime fresh{};
  const ExitGate gate;
  if (!gate.open()) return fail(FINCH_CLOSED, "the process is exiting: no model runtime is started.");
  if (const finch_status status = start(real, path, &fresh); status != FINCH_OK) return status;
  *out = &loaded->runtimes.emplace(real, std::move(fresh)).first->second;
  return FINCH_OK;
}

}  // namespace finch::ort
