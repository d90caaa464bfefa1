// Node unloads an addon when the last worker that loaded it ends, while pool threads may still run its code.
#pragma once

namespace finch::node {

// Keeps this library in memory until the process ends. Best effort: where it fails, the library may be unloaded.
void stay_loaded() noexcept;

}  // namespace finch::node
