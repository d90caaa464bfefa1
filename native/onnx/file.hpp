// Files of a model folder.
#pragma once

#include <string>

#include "toolfinch.h"

namespace finch {

// Reads a whole file; FINCH_IO names `what` it was to be. `path` is UTF-8 on every system.
finch_status read_file(const char* path, const char* what, std::string* out);
// FINCH_IO unless `path` is a file that can be read.
finch_status check_file(const char* path, const char* what);

}  // namespace finch
