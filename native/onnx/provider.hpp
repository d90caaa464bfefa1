// Execution providers: which device onnxruntime runs a model on, and whether it can.
#pragma once

#include <string>
#include <vector>

#include "ort_api.hpp"
#include "toolfinch.h"

namespace finch {

// "cpu", "cuda", "coreml" or "auto".
const char* provider_name(finch_provider provider) noexcept;

// The names of the providers that this build of onnxruntime knows, such as CPUExecutionProvider.
std::vector<std::string> known_providers(const ort::Runtime& runtime);

// Asks for the provider. FINCH_DEVICE, saying why, when this build or this machine cannot; the CPU always can.
finch_status use_provider(const ort::Runtime& runtime, ort::SessionOptions* options, finch_provider provider);

}  // namespace finch
