#include "core/shortlist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/hash.hpp"

namespace finch {
namespace {

// Canonical scores from a table, slot by slot.
class Table final : public CanonicalScores {
 public:
  explicit Table(std::vector<float> scores) : scores_(std::move(scores)) {}
  void operator()(size_t, const uint32_t* slots, size_t count, float* scores, void*) const noexcept override {
    for (size_t i = 0; i < count; ++i) scores[i] = scores_[slots[i]];
  }

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

std::vector<uint32_t> sorted(const Candidates& found) {
  std::vector<uint32_t> out(found.slots, found.slots + found.count);
  std::sort(out.begin(), out.end());
  return out;
}

struct Case {
  size_t least;
  size_t most;
  float slack;
};
// Not by its bytes: some lie between the members and are never written, which memcheck reports.
void PrintTo(const Case& c, std::ostream* out) { *out << c.least << " to " << c.most << ", slack " << c.slack; }

// Lists of several scanners, some of which turn exact midway, over random rows whose scanned scores err by up to the
// bound: at the end there are the wanted ones by canonical score.
class Shortlisting : public testing::TestWithParam<Case> {};
TEST_P(Shortlisting, ListsOfDifferentBoundsAgree) {
  constexpr size_t kRows = 4000;
  const auto [least, most, slack] = GetParam();
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
    for (Shortlists& one : lists) one.reset(state, table, 1, 1, {least, most, &slack, kRows}, kCoarse, nullptr);
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
    expected.resize(most);
    const float last = canonical[expected[least - 1]] - slack;
    while (canonical[expected.back()] < last) expected.pop_back();
    std::sort(expected.begin(), expected.end());
    const Candidates found = lists[0].finish(0);
    EXPECT_TRUE([&] {
      const std::vector<uint32_t> candidates = sorted(found);
      return std::includes(candidates.begin(), candidates.end(), expected.begin(), expected.end());
    }()) << "round "
         << round;
    for (size_t i = 0; i < found.count; ++i) {
      if (found.scores[i] < found.certain) continue;
      EXPECT_TRUE(std::binary_search(expected.begin(), expected.end(), found.slots[i])) << "round " << round;
    }
    EXPECT_EQ(sorted(lists[0].settle(0, &lists[1])), expected) << "round " << round;
  }
}

constexpr float kAll = std::numeric_limits<float>::infinity();
INSTANTIATE_TEST_SUITE_P(Cases, Shortlisting,
                         testing::Values(Case{10, 10, kAll}, Case{10, 30, kAll}, Case{10, 30, 0.0f},
                                         Case{10, 30, 0.0002f}, Case{10, 300, 0.01f}, Case{1, 17, 0.0001f}));

}  // namespace
}  // namespace finch
