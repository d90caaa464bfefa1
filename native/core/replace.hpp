// What writing a file beside its place and renaming it must see to: symbolic links are followed to the file itself, the
// file replaced keeps its mode and owner, and what killed writers left behind is cleared away.
#pragma once

#include <cstdio>
#include <string>

namespace finch {

// The file that `path` stands for once symbolic links are followed; it need not exist. 0, or an errno: a loop of links,
// or something that is there and no regular file.
int find_target(const std::string& path, std::string* target);

// Creates and locks `<target>.tmp-<pid>-<random>`, whose mode and owner become those of `target` where that exists.
// Null with errno set when that fails.
std::FILE* create_temporary(const std::string& target, std::string* name);

// Removes temporaries of `target` whose writers are gone: the process in the name is dead and nobody holds the lock (it
// may be a process of another container, whose number means nothing here). What cannot be removed stays.
void remove_stale_temporaries(const std::string& target);

}  // namespace finch
