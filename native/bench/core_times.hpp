// The core through its C interface, timed without Node: what a caller in C sees. Nanoseconds, one number a round.
#pragma once

#include <cstddef>
#include <vector>

namespace finch::bench {

using Rounds = std::vector<double>;

struct BanditTimes {
  // Per arm, in calls of `candidates` ids: always the same ones, or drawn from all arms so that they come from memory.
  Rounds score_resident;
  Rounds score_scattered;
  Rounds update_resident;
  Rounds update_scattered;
};
// Throws std::runtime_error when the core refuses.
BanditTimes bandit_times(size_t dimension, size_t arms, size_t candidates, size_t rounds);

// Per call of finch_truncate on n x dimension.
Rounds truncate_times(size_t n, size_t dimension, size_t rounds);

}  // namespace finch::bench
