#include "stay_loaded.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace finch::node {

void stay_loaded() noexcept {
#if defined(_WIN32)
  HMODULE module = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     reinterpret_cast<LPCWSTR>(&stay_loaded), &module);
#else
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&stay_loaded), &info) != 0 && info.dli_fname != nullptr) {
    // RTLD_NOLOAD: only adds the flag to what is loaded. One handle per load is left open on purpose.
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
#endif
}

}  // namespace finch::node
