#include "ann.hpp"

#include <algorithm>
#include <limits>

#include "codes.hpp"
#include "kernels/kernels.hpp"
#include "kernels/scan/scan.hpp"

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

void prefetch(const void* data, size_t bytes) noexcept {
#if defined(__GNUC__)
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(data) + i);
#else
  (void)data;
  (void)bytes;
#endif
}

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
  std::vector<char> query;

  bool first_visit(uint32_t e) noexcept {
    if (marks[e] == round) return false;
    marks[e] = round;
    return true;
  }
};

Ann::Ann(const AnnConfig& config, const State& state, uint64_t covers)
    : config_(config), covers_(covers), dimension_(state.dimension) {}

Ann::~Ann() = default;

uint64_t Ann::bytes() const noexcept {
  const uint64_t reference = sizeof(uint64_t) + sizeof(uint32_t) + sizeof(const float*);
  const uint64_t code = code_stride(FINCH_STORAGE_I8, dimension_) + sizeof(float);
  return links_.bytes() + size() * (reference + code);
}

void Ann::encode() const {
  std::call_once(encoded_, [this] {
    const size_t stride = code_stride(FINCH_STORAGE_I8, dimension_);
    Codes codes;
    codes.stride = stride;
    codes.scales.resize(size());
    codes.data.resize(size() * stride);
    for (uint32_t e = 0; e < size(); ++e) {
      codes.scales[e] = encode_vector(FINCH_STORAGE_I8, vectors_[e], dimension_, codes.data.data() + e * stride);
    }
    codes_ = std::move(codes);
  });
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

// One search: scores are the codes', of the query's code too, and only good for comparing.
class Ann::Walk {
 public:
  // `scratch` as borrow() gives it. May throw std::bad_alloc.
  Walk(const Ann& ann, const float* query, size_t expansion, const State& state, const uint64_t* allow,
       Scratch* scratch)
      : ann_(ann),
        links_(ann.links_),
        format_(kernels().scan_format(FINCH_STORAGE_I8)),
        expansion_(expansion),
        state_(state),
        allow_(allow),
        // Nothing was written since: every entry is as it was.
        unchanged_(state.version == ann.covers_),
        scratch_(*scratch),
        frontier_(scratch->frontier),
        best_(scratch->best) {
    scratch->query.resize(format_.few_bytes(ann.dimension_) + kCodeAlign);
    const auto at = reinterpret_cast<uintptr_t>(scratch->query.data());
    query_ = reinterpret_cast<char*>((at + kCodeAlign - 1) / kCodeAlign * kCodeAlign);
    format_.prepare(query, ann.dimension_, query_);
    best_.reserve(expansion + 1);
  }

  void run() {
    const Candidate start = descend();
    scratch_.first_visit(start.entry);
    meet(start);
    const size_t stride = 2 * size_t{ann_.config_.connectivity} + 1;
    while (!frontier_.empty()) {
      const Candidate next = frontier_.front();
      if (full() && worse(next, best_.front())) break;
      std::pop_heap(frontier_.begin(), frontier_.end(), worse);
      frontier_.pop_back();
      const uint32_t* list = links_.base.data() + next.entry * stride;
      for (uint32_t i = 1; i <= list[0]; ++i) {
        if (scratch_.first_visit(list[i])) gather(list[i]);
      }
      score([this](const Candidate& candidate) { meet(candidate); });
    }
  }

 private:
  bool full() const noexcept { return best_.size() == expansion_; }

  // Takes an entry into the batch, which is scored when it is full.
  void gather(uint32_t e) {
    if (count_ == kScanRows) score([this](const Candidate& candidate) { meet(candidate); });
    const uint8_t* code = ann_.codes_.data.data() + e * ann_.codes_.stride;
    prefetch(code, ann_.codes_.stride);
    codes_[count_] = code;
    scales_[count_] = ann_.codes_.scales[e];
    entries_[count_++] = e;
  }

  // found(candidate) for each of the batch that may be good enough.
  template <typename Found>
  void score(Found found) {
    if (count_ == 0) return;
    const float bar = full() ? best_.front().score : -std::numeric_limits<float>::infinity();
    const size_t n = format_.few({codes_, scales_, count_}, query_, 1, ann_.dimension_, &bar, survivors_);
    count_ = 0;
    for (size_t i = 0; i < n; ++i) found({survivors_[i].score, entries_[survivors_[i].row]});
  }

  // The best entry of the levels above the base, going to the best neighbour as long as there is a better one.
  Candidate descend() {
    Candidate nearest{0, links_.entry};
    gather(links_.entry);
    const auto take_better = [&](const Candidate& candidate) {
      if (worse(nearest, candidate)) nearest = candidate;
    };
    score([&](const Candidate& candidate) { nearest = candidate; });
    const size_t stride = size_t{ann_.config_.connectivity} + 1;
    for (uint32_t level = links_.top_level; level > 0; --level) {
      for (uint32_t from = kNoSlot; from != nearest.entry;) {
        from = nearest.entry;
        const uint32_t* list = links_.upper.data() + links_.upper_start[from] + (level - 1) * stride;
        for (uint32_t i = 1; i <= list[0]; ++i) {
          if (count_ == kScanRows) score(take_better);
          gather(list[i]);
        }
        score(take_better);
      }
    }
    return nearest;
  }

  // A candidate that is near enough to be kept is likely to be looked at.
  void prefetch_links(uint32_t e) const noexcept {
    const size_t stride = 2 * size_t{ann_.config_.connectivity} + 1;
    prefetch(links_.base.data() + e * stride, stride * sizeof(uint32_t));
  }

  void meet(const Candidate& candidate) {
    const bool was_full = full();
    if (was_full && !worse(best_.front(), candidate)) return;
    prefetch_links(candidate.entry);
    frontier_.push_back(candidate);
    std::push_heap(frontier_.begin(), frontier_.end(), worse);
    const uint32_t slot = unchanged_ ? ann_.slots_[candidate.entry] : ann_.slot_in(state_, candidate.entry);
    if (slot == kNoSlot) return;
    if (allow_ != nullptr && ((allow_[slot / 64] >> (slot % 64)) & 1u) == 0) return;
    best_.push_back(candidate);
    std::push_heap(best_.begin(), best_.end(), ahead);
    if (was_full) {
      std::pop_heap(best_.begin(), best_.end(), ahead);
      best_.pop_back();
    }
  }

  const Ann& ann_;
  const AnnLinks& links_;
  const ScanFormat& format_;
  const size_t expansion_;
  const State& state_;
  const uint64_t* allow_;
  const bool unchanged_;
  Scratch& scratch_;
  std::vector<Candidate>& frontier_;  // to be looked at, best in front; whether allowed or not
  std::vector<Candidate>& best_;      // found, worst in front; allowed ones only
  char* query_ = nullptr;
  size_t count_ = 0;
  const void* codes_[kScanRows];
  float scales_[kScanRows];
  uint32_t entries_[kScanRows];
  Survivor survivors_[kScanRows];
};

size_t Ann::search(const float* query, size_t expansion, size_t rescored, const State& state, const uint64_t* allow,
                   TopK* top) const {
  if (size() == 0) return 0;
  encode();
  std::unique_ptr<Scratch> scratch = borrow();
  Walk(*this, query, expansion, state, allow, scratch.get()).run();
  std::vector<Candidate>& best = scratch->best;
  const size_t offered = std::min(best.size(), rescored);
  std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(offered), best.end(), ahead);
  const auto dot = kernels().dot;
  for (size_t i = 0; i < offered; ++i) {
    if (i + 2 < offered) prefetch(vectors_[best[i + 2].entry], dimension_ * sizeof(float));
    const uint32_t slot = slots_[best[i].entry];
    // The graph's vector and the row's are the same numbers, so this is the exact score, to the bit.
    top->push(dot(query, vectors_[best[i].entry], dimension_), state.chunk_of(slot).keys[State::row_of(slot)]);
  }
  give_back(std::move(scratch));
  return offered;
}

}  // namespace finch
