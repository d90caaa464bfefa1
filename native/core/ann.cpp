#include "ann.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace finch {
namespace {

struct Candidate {
  float score;
  uint32_t entry;
};

// For heaps with the best in front, and with the worst in front; ties by entry, so that results never depend on chance.
bool worse(const Candidate& a, const Candidate& b) noexcept {
  return a.score != b.score ? a.score < b.score : a.entry > b.entry;
}
bool ahead(const Candidate& a, const Candidate& b) noexcept { return worse(b, a); }

}  // namespace

void AnnLinks::lay_out(uint32_t connectivity) {
  base.assign(size_t{size} * (2 * connectivity + 1), 0);
  upper_start.resize(size);
  uint64_t words = 0;
  for (uint32_t e = 0; e < size; ++e) {
    upper_start[e] = words;
    words += uint64_t{levels[e]} * (connectivity + 1);
  }
  upper.assign(words, 0);
}

bool AnnLinks::sound(uint32_t connectivity) const noexcept {
  if (size == 0) return true;
  if (entry >= size || top_level >= Ann::kMostLevels || levels[entry] != top_level) return false;
  const auto list_is_sound = [&](const uint32_t* list, uint32_t most, uint32_t level) {
    if (list[0] > most) return false;
    return std::all_of(list + 1, list + 1 + list[0], [&](uint32_t to) { return to < size && levels[to] >= level; });
  };
  for (uint32_t e = 0; e < size; ++e) {
    if (levels[e] > top_level) return false;
    if (!list_is_sound(base.data() + size_t{e} * (2 * connectivity + 1), 2 * connectivity, 0)) return false;
    for (uint32_t level = 1; level <= levels[e]; ++level) {
      const uint32_t* list = upper.data() + upper_start[e] + size_t{level - 1} * (connectivity + 1);
      if (!list_is_sound(list, connectivity, level)) return false;
    }
  }
  return true;
}

uint64_t AnnLinks::bytes() const noexcept {
  return levels.size() + base.size() * sizeof(uint32_t) + upper_start.size() * sizeof(uint64_t) +
         upper.size() * sizeof(uint32_t);
}

struct Ann::Scratch {
  // marks[e] == round: e was seen in this search. Counting rounds saves clearing the marks.
  std::vector<uint32_t> marks;
  uint32_t round = 0;
  std::vector<Candidate> frontier;
  std::vector<Candidate> best;
  std::vector<uint32_t> batch;

  bool first_visit(uint32_t e) noexcept {
    if (marks[e] == round) return false;
    marks[e] = round;
    return true;
  }
};

Ann::Ann(const AnnConfig& config, uint64_t covers) : config_(config), covers_(covers) {}

Ann::~Ann() = default;

uint64_t Ann::bytes() const noexcept {
  return links_.bytes() + size() * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(const float*));
}

std::unique_ptr<Ann::Scratch> Ann::borrow() const {
  std::unique_ptr<Scratch> scratch;
  {
    std::lock_guard lock(scratch_mutex_);
    if (!scratch_.empty()) {
      scratch = std::move(scratch_.back());
      scratch_.pop_back();
    }
  }
  if (scratch == nullptr) {
    scratch = std::make_unique<Scratch>();
    scratch->marks.resize(size());
  }
  if (++scratch->round == 0) {
    std::fill(scratch->marks.begin(), scratch->marks.end(), 0);
    scratch->round = 1;
  }
  scratch->frontier.clear();
  scratch->best.clear();
  return scratch;
}

void Ann::give_back(std::unique_ptr<Scratch> scratch) const noexcept {
  try {
    std::lock_guard lock(scratch_mutex_);
    scratch_.push_back(std::move(scratch));
  } catch (...) {
    // It is freed instead of kept.
  }
}

size_t Ann::search(const float* query, size_t expansion, const State& state, const uint64_t* allow, TopK* top) const {
  if (size() == 0) return 0;
  const auto dot = kernels().dot;
  const size_t d = state.dimension;
  const uint32_t m = config_.connectivity;
  const auto score_of = [&](uint32_t e) { return dot(query, vectors_[e], d); };

  Candidate nearest{score_of(links_.entry), links_.entry};
  for (uint32_t level = links_.top_level; level > 0; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      const uint32_t* list = links_.upper.data() + links_.upper_start[nearest.entry] + size_t{level - 1} * (m + 1);
      for (uint32_t i = 1; i <= list[0]; ++i) {
        const Candidate candidate{score_of(list[i]), list[i]};
        if (!worse(nearest, candidate)) continue;
        nearest = candidate;
        moved = true;
      }
    }
  }

  std::unique_ptr<Scratch> scratch = borrow();
  std::vector<Candidate>& frontier = scratch->frontier;  // to be looked at, best in front; whether allowed or not
  std::vector<Candidate>& best = scratch->best;          // found, worst in front; allowed ones only
  best.reserve(expansion + 1);
  const auto meet = [&](const Candidate& candidate) {
    const bool full = best.size() == expansion;
    if (full && !worse(best.front(), candidate)) return;
    frontier.push_back(candidate);
    std::push_heap(frontier.begin(), frontier.end(), worse);
    const uint32_t slot = slot_in(state, candidate.entry);
    if (slot == kNoSlot) return;
    if (allow != nullptr && ((allow[slot / 64] >> (slot % 64)) & 1u) == 0) return;
    best.push_back(candidate);
    std::push_heap(best.begin(), best.end(), ahead);
    if (full) {
      std::pop_heap(best.begin(), best.end(), ahead);
      best.pop_back();
    }
  };
  scratch->first_visit(nearest.entry);
  meet(nearest);
  std::vector<uint32_t>& batch = scratch->batch;
  while (!frontier.empty()) {
    const Candidate next = frontier.front();
    if (best.size() == expansion && worse(next, best.front())) break;
    std::pop_heap(frontier.begin(), frontier.end(), worse);
    frontier.pop_back();
    const uint32_t* list = links_.base.data() + size_t{next.entry} * (2 * m + 1);
    batch.clear();
    for (uint32_t i = 1; i <= list[0]; ++i) {
      if (!scratch->first_visit(list[i])) continue;
      batch.push_back(list[i]);
#if defined(__GNUC__)
      __builtin_prefetch(vectors_[list[i]]);
#endif
    }
    for (const uint32_t e : batch) meet({score_of(e), e});
  }

  for (const Candidate& found : best) {
    const uint32_t slot = slots_[found.entry];
    // The graph's vector and the row's are the same numbers, so this is the exact score, to the bit.
    top->push(found.score, state.chunk_of(slot).keys[State::row_of(slot)]);
  }
  const size_t offered = best.size();
  give_back(std::move(scratch));
  return offered;
}

}  // namespace finch
