#include "core/shortlist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/hash.hpp"

namespace finch {
namespace {

// Canonical scores from a table, slot by slot.
class Table final : public CanonicalScore {
 public:
  explicit Table(std::vector<float> scores) : scores_(std::move(scores)) {}
  float operator()(size_t, uint32_t slot) const noexcept override { return scores_[slot]; }

 private:
  std::vector<float> scores_;
};

State rows_with_keys(size_t count) {
  State state(1, FINCH_STORAGE_F32, 1);
  const uint64_t edit = next_edit();
  state.resize(count, edit);
  for (uint32_t slot = 0; slot < count; ++slot) {
    const std::string id = std::to_string(slot);
    state.place(slot, slot + 1, id, hash_key(slot), 0.5f, edit);
  }
  return state;
}

std::vector<uint32_t> finished(Shortlists& lists, Shortlists* workspace) {
  const uint32_t* slots = nullptr;
  const size_t count = lists.finish(0, workspace, &slots);
  std::vector<uint32_t> out(slots, slots + count);
  std::sort(out.begin(), out.end());
  return out;
}

// Lists of several scanners, some of which turn exact midway, over random rows whose scanned scores err by up to the
// bound: at the end there are the best by canonical score.
TEST(Shortlists, OfDifferentBoundsAgree) {
  constexpr size_t kRows = 4000;
  constexpr size_t kWant = 10;
  constexpr float kCoarse = 0.02f;
  constexpr float kFine = 1e-6f;
  const State state = rows_with_keys(kRows);
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::uniform_real_distribution<float> any(0.4f, 0.4f + 0.02f * static_cast<float>(round % 5 + 1));
    std::vector<float> canonical(kRows);
    for (float& score : canonical) score = any(random);
    const Table table(canonical);
    Shortlists lists[3];
    std::atomic<float> floors[1] = {-std::numeric_limits<float>::infinity()};
    float bounds[3] = {kCoarse, kCoarse, kCoarse};
    for (Shortlists& one : lists) one.reset(state, table, 1, 1, kWant, kRows, kCoarse);
    for (uint32_t slot = 0; slot < kRows; ++slot) {
      const size_t w = slot / 50 % 3;
      if (slot % 50 == 0) {
        if (w > 0 && slot > 500 * w && bounds[w] == kCoarse) lists[w].tighten(bounds[w] = kFine);
        lists[w].share_bars(floors);
      }
      // The best rows are seen too low, the others too high: the worst case that the bound allows.
      const float error = (slot % 7 == 0 ? -0.99f : 0.99f) * bounds[w];
      const float scanned = canonical[slot] + error;
      if (scanned >= lists[w].bars()[0]) lists[w].add(0, scanned, slot);
    }
    lists[0].tighten(kFine);
    lists[0].take_from(lists[1], 0, &lists[0]);
    lists[0].take_from(lists[2], 0, &lists[0]);
    std::vector<uint32_t> expected(kRows);
    std::iota(expected.begin(), expected.end(), 0u);
    std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
      return canonical[a] != canonical[b] ? canonical[a] > canonical[b] : a < b;
    });
    expected.resize(kWant);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(finished(lists[0], &lists[1]), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace finch
