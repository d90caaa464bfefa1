#include "provider.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace finch {
namespace {

// What a provider is called by onnxruntime, and the function of its library that asks for it. Both functions take the
// options and one number: CUDA's is the device, CoreML's are flags.
struct Known {
  finch_provider provider;
  const char* name;
  const char* runtime_name;
  const char* entry;
};
constexpr Known kKnown[] = {
    {FINCH_PROVIDER_CPU, "cpu", "CPUExecutionProvider", nullptr},
    {FINCH_PROVIDER_CUDA, "cuda", "CUDAExecutionProvider", "OrtSessionOptionsAppendExecutionProvider_CUDA"},
    {FINCH_PROVIDER_COREML, "coreml", "CoreMLExecutionProvider", "OrtSessionOptionsAppendExecutionProvider_CoreML"},
    {FINCH_PROVIDER_AUTO, "auto", "", nullptr},
};

using Append = ort::Status* (*)(ort::SessionOptions* options, uint32_t number);

const Known& known(finch_provider provider) noexcept {
  return *std::find_if(std::begin(kKnown), std::end(kKnown) - 1,
                       [provider](const Known& each) { return each.provider == provider; });
}

}  // namespace

const char* provider_name(finch_provider provider) noexcept { return known(provider).name; }

std::vector<std::string> known_providers(const ort::Runtime& runtime) {
  char** names = nullptr;
  int count = 0;
  if (ort::Status* status = runtime.api->get_available_providers(&names, &count)) {
    runtime.api->release_status(status);
    return {};
  }
  std::vector<std::string> list(names, names + count);
  if (ort::Status* status = runtime.api->release_available_providers(names, count)) {
    runtime.api->release_status(status);
  }
  return list;
}

finch_status use_provider(const ort::Runtime& runtime, ort::SessionOptions* options, finch_provider provider) {
  if (provider == FINCH_PROVIDER_CPU) return FINCH_OK;
  const Known& wanted = known(provider);
  const std::vector<std::string> there = known_providers(runtime);
  const auto append = reinterpret_cast<Append>(runtime.find(wanted.entry));
  if (append == nullptr || std::find(there.begin(), there.end(), wanted.runtime_name) == there.end()) {
    std::string list;
    for (const std::string& name : there) list += (list.empty() ? "" : ", ") + name;
    return fail(FINCH_DEVICE, "onnxruntime %s was built without %s (it has: %s).", runtime.version.c_str(),
                wanted.runtime_name, list.c_str());
  }
  if (ort::Status* status = append(options, 0)) {
    return fail(FINCH_DEVICE, "onnxruntime %s cannot use %s here: %s", runtime.version.c_str(), wanted.runtime_name,
                ort::describe(*runtime.api, status).c_str());
  }
  return FINCH_OK;
}

}  // namespace finch
