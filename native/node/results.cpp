#include "results.hpp"

#include <string>

namespace finch::node {

void require_result_bytes(size_t count, size_t bytes_each) {
  constexpr size_t kMostBytes = size_t{1} << 32;  // 4 GiB, the least any supported Node allows
  if (count > kMostBytes / bytes_each) {
    refuse(FINCH_NO_MEMORY, "The result would hold " + std::to_string(count) +
                                " numbers, more than one typed array can. Ask for fewer at a time.");
  }
}

}  // namespace finch::node
