#include "scan.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "kernels/kernels.hpp"
#include "kernels/scan/rounding.hpp"
#include "kernels/scan/scan.hpp"
#include "parallel.hpp"
#include "shortlist.hpp"

namespace finch {
namespace {

constexpr size_t kWord = 64;
// Queries of one pass over the rows: as many panels as stay in the second cache beside a group of rows (256 x 1,024
// float32 are 1 MiB).
constexpr size_t kPassQueries = 256;
// Queries that are prepared, or finished, by one thread at a time.
constexpr size_t kItemQueries = 16;
// A filter has failed when this share of the scores it spares had to be computed after all (see pruning_cost).
constexpr double kFilterFails = 1.0 / 16;
// What one pass may take for its lists.
constexpr size_t kListBytes = size_t{64} << 20;
// Rows whose codes score this many standard deviations (of what rounding does to the difference of two scores) below
// the k-th best code are not rescored.
constexpr float kDeviations = 6.0f;
// Rows of a worker's first group: until its lists have bars everything passes.
constexpr size_t kFirstRows = 32;
// Chunks of rows a thread that are few.
constexpr size_t kFewChunks = 32;
// Multiply-adds below which sharing a scan costs more than it saves: about 100 us on one core.
constexpr double kWorthSharing = 4e6;

// Grows and is kept from call to call: after the first, a call of the same size allocates nothing.
class AlignedBytes {
 public:
  // At least `bytes`; with 0, what there is.
  char* get(size_t bytes) {
    if (bytes > size_) {
      data_.reset();
      size_ = 0;
      data_.reset(static_cast<char*>(::operator new[](bytes, std::align_val_t{64})));
      size_ = bytes;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(char* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<char[], Free> data_;
  size_t size_ = 0;
};

struct Worker {
  Shortlists lists;
  const ScanFormat* format = nullptr;
  const char* packed = nullptr;
  uint64_t rows = 0;
  AlignedBytes wide;
  AlignedBytes workspace;
  AlignedBytes query;  // one of `few`'s
  std::vector<Survivor> survivors;
};

struct Scratch {
  AlignedBytes few;
  AlignedBytes panels;
  AlignedBytes exact_panels;
  std::vector<float> slacks;
  std::vector<Worker> workers;
};

// One batch of at most kPassQueries over all rows.
class Pass final : public CanonicalScores {
 public:
  Pass(const ScanRequest& request, const float* units, size_t count, size_t most, Scratch* scratch)
      : request_(request),
        state_(request.state),
        format_(choose_format(request.state.storage, count)),
        units_(units),
        count_(count),
        scratch_(*scratch) {
    const size_t d = state_.dimension;
    // The last few of an odd number go through `few`, where a panel would be mostly empty.
    const size_t rest = count_ % format_.panel;
    paneled_ = rest <= format_.most_few ? count_ - rest : count_;
    panels_ = (paneled_ + format_.panel - 1) / format_.panel;
    few_bytes_ = format_.few_bytes(d);
    few_ = scratch_.few.get((count_ - paneled_) * few_bytes_);
    packed_ = scratch_.panels.get(panels_ * format_.panel_bytes(d));
    threads_ = choose_threads();
    if (scratch_.workers.size() < threads_) scratch_.workers.resize(threads_);
    sum_bound_ = state_.storage == FINCH_STORAGE_I8 ? 0.0f : scan_error_bound(d);
    filtering_ = panels_ > 0 && format_.rounding > 0.0f;
    if (filtering_) exact_packed_ = scratch_.exact_panels.get(exact_panels() * exact_format().panel_bytes(d));
    scratch_.slacks.resize(count_);
    if (state_.storage == FINCH_STORAGE_I8 && !request_.rescore_all) largest_scale_ = largest_scale();
    const Wanted wanted{request_.k, most, scratch_.slacks.data(), request_.most};
    const size_t lanes =
        std::max({count_, panels_ * format_.panel, filtering_ ? exact_panels() * exact_format().panel : 0});
    for (uint32_t w = 0; w < threads_; ++w) {
      Worker& worker = scratch_.workers[w];
      worker.format = &format_;
      worker.packed = packed_;
      worker.rows = 0;
      worker.lists.reset(state_, *this, count_, lanes, wanted, sum_bound_ + (filtering_ ? format_.rounding : 0.0f),
                         worker.query.get(few_bytes_));
      worker.survivors.resize(kScanRows * std::max(lanes, kFewQueries));
      if (panels_ == 0) continue;
      for (const ScanFormat* format : {&format_, filtering_ ? &exact_format() : &format_}) {
        if (format->widen != nullptr) worker.wide.get(kScanRows * format->wide_bytes(d));
      }
      if (format_.workspace_bytes != nullptr) worker.workspace.get(format_.workspace_bytes(d));
    }
  }

  // False when cancelled.
  bool run() noexcept {
    share(queries_items() + panels_, [](Pass& pass, uint32_t, size_t item) { pass.prepare(item); });
    for (std::atomic<float>& floor : floors_)
      floor.store(-std::numeric_limits<float>::infinity(), std::memory_order_relaxed);
    share(state_.rows.size() * parts(), [](Pass& pass, uint32_t worker, size_t item) {
      if (pass.stopped_.load(std::memory_order_relaxed)) return;
      if (cancelled(pass.request_.cancel)) {
        pass.stopped_.store(true, std::memory_order_relaxed);
      } else {
        const size_t words = RowChunk::kWords / pass.parts();
        pass.scan_words(pass.scratch_.workers[worker], item / pass.parts(), item % pass.parts() * words, words);
      }
    });
    return !stopped_.load(std::memory_order_relaxed);
  }

  void finish(TopK* tops) noexcept {
    // Lists of a smaller bound hold fewer rows: all get the smallest.
    float bound = scratch_.workers[0].lists.bound();
    for (uint32_t w = 1; w < threads_; ++w) bound = std::min(bound, scratch_.workers[w].lists.bound());
    for (uint32_t w = 0; w < threads_; ++w) {
      Shortlists& lists = scratch_.workers[w].lists;
      if (lists.bound() > bound) lists.tighten(bound);
    }
    tops_ = tops;
    share(queries_items(), [](Pass& pass, uint32_t worker, size_t item) {
      const size_t end = std::min(pass.count_, (item + 1) * kItemQueries);
      for (size_t q = item * kItemQueries; q < end; ++q) pass.finish_query(pass.scratch_.workers[worker].lists, q);
    });
  }

  void operator()(size_t query, const uint32_t* slots, size_t count, float* scores,
                  void* workspace) const noexcept override {
    format_.prepare(units_ + query * state_.dimension, state_.dimension, workspace);
    const void* codes[kScanRows];
    float scales[kScanRows];
    for (size_t first = 0; first < count; first += kScanRows) {
      const size_t n = std::min(kScanRows, count - first);
      for (size_t i = 0; i < n; ++i) {
        codes[i] = code_of(slots[first + i]);
        scales[i] = scale_of(slots[first + i]);
      }
      score_rows(format_, {codes, scales, n}, workspace, scores + first);
    }
  }

 private:
  struct Group {
    const void* codes[kScanRows];
    float scales[kScanRows];
    uint32_t slots[kScanRows];
    size_t count = 0;
  };

  // body(pass, worker, item) for each item, on as many threads as the pass has.
  template <typename Body>
  void share(size_t items, Body) noexcept {
    parallel_for(
        items, threads_,
        [](void* self, uint32_t worker, size_t item) { Body()(*static_cast<Pass*>(self), worker, item); }, this);
  }

  // The canonical scores of at most kScanRows rows.
  void score_rows(const ScanFormat& format, const ScanRows& rows, const void* query, float* scores) const noexcept {
    const float everything = -std::numeric_limits<float>::infinity();
    Survivor out[kScanRows];
    const size_t n = format.few(rows, query, 1, state_.dimension, &everything, out);
    for (size_t i = 0; i < n; ++i) scores[out[i].row] = out[i].score;
  }

  size_t queries_items() const noexcept { return (count_ + kItemQueries - 1) / kItemQueries; }

  void prepare(size_t item) noexcept {
    const size_t d = state_.dimension;
    if (item < panels_) {
      const size_t first = item * format_.panel;
      format_.pack(units_ + first * d, std::min(format_.panel, paneled_ - first), d,
                   packed_ + item * format_.panel_bytes(d));
      return;
    }
    const size_t first = (item - panels_) * kItemQueries;
    const size_t end = std::min(count_, first + kItemQueries);
    for (size_t q = first; q < end; ++q) {
      scratch_.slacks[q] = slack(units_ + q * d);
      if (q >= paneled_) format_.prepare(units_ + q * d, d, few_ + (q - paneled_) * few_bytes_);
    }
  }

  void finish_query(Shortlists& workspace, size_t q) noexcept {
    Shortlists& lists = scratch_.workers[0].lists;
    for (uint32_t w = 1; w < threads_; ++w) lists.take_from(scratch_.workers[w].lists, q, &workspace);
    Candidates found = lists.finish(q);
    // A filter's scores leave so many in doubt that it saves work to look at all codes first.
    if (state_.stride != 0 && lists.bound() > sum_bound_) found = lists.settle(q, &workspace);
    if (!rescore(q, found)) {
      tops_[q].clear();
      rescore(q, lists.settle(q, &workspace));
    }
  }

  // Offers the candidates by float32 dot product. False when one of those taken is not certain to be wanted.
  bool rescore(size_t q, const Candidates& found) noexcept {
    const ScanFormat& format = kernels().scan_format(FINCH_STORAGE_F32);
    const float* unit = units_ + q * state_.dimension;
    TopK& top = tops_[q];
    float doubtful = -std::numeric_limits<float>::infinity();
    const void* vectors[kScanRows];
    float scores[kScanRows];
    for (size_t first = 0; first < found.count; first += kScanRows) {
      const size_t n = std::min(kScanRows, found.count - first);
      for (size_t i = 0; i < n; ++i) vectors[i] = state_.vector(found.slots[first + i]);
      // The bits of `dot`, several rows at a time.
      score_rows(format, {vectors, nullptr, n}, unit, scores);
      for (size_t i = 0; i < n; ++i) {
        const uint32_t slot = found.slots[first + i];
        top.push(scores[i], state_.chunk_of(slot).keys[State::row_of(slot)]);
        if (found.scores[first + i] < found.certain) doubtful = std::max(doubtful, scores[i]);
      }
    }
    return state_.stride == 0 || doubtful < top.bar() || !std::isfinite(doubtful);
  }

  // How far below the k-th best code's score a row's may lie that rounding could have put there.
  float slack(const float* unit) const noexcept {
    if (state_.stride == 0 || request_.rescore_all) return std::numeric_limits<float>::infinity();
    const float largest = largest_magnitude(unit, state_.dimension);
    // The standard deviation of a score: of sum q_i e_i, where row and query have length 1 and the errors e are spread
    // evenly over one step of int8, or over the last bit of a significand (u = 2^-8 or 2^-11 of a number at most, 0.425
    // u in the mean square, so at most that times the largest |q_i| in the sum); the same for the query's rounding.
    float deviation = 0;
    if (state_.storage == FINCH_STORAGE_I8) {
      // Codes' scores count in the query's steps.
      const float relative = largest_scale_ * 127.0f / largest;
      deviation = std::sqrt((1.0f + relative * relative) / 12.0f);
    } else {
      deviation = largest * 0.6f * (state_.storage == FINCH_STORAGE_BF16 ? 0x1p-8f : 0x1p-11f);
    }
    return kDeviations * 1.4143f * deviation;
  }

  float largest_scale() const noexcept {
    // Bits of floats that are not negative have their order, and the compiler takes several of them at once.
    int32_t largest = 0;
    for (size_t c = 0; c < state_.rows.size(); ++c) {
      for (size_t w = 0; w < RowChunk::kWords; ++w) {
        const uint64_t present = state_.rows.get(c)->present[w];
        if (present == 0) continue;
        const float* scales = state_.codes.get(c * RowChunk::kWords + w)->scales;
        if (present == ~uint64_t{0}) {
          for (size_t i = 0; i < kWord; ++i) largest = std::max(largest, std::bit_cast<int32_t>(scales[i]));
        } else {
          for (uint64_t left = present; left != 0; left &= left - 1) {
            largest = std::max(largest, std::bit_cast<int32_t>(scales[std::countr_zero(left)]));
          }
        }
      }
    }
    return std::bit_cast<float>(largest);
  }

  const ScanFormat& exact_format() const noexcept { return kernels().scan_format(state_.storage); }
  size_t exact_panels() const noexcept { return (paneled_ + exact_format().panel - 1) / exact_format().panel; }

  // Packs the exact format's panels when the first worker needs them.
  const char* exact_packed() noexcept {
    std::call_once(exact_once_, [this] {
      const ScanFormat& format = exact_format();
      const size_t d = state_.dimension;
      for (size_t p = 0; p < exact_panels(); ++p) {
        const size_t first = p * format.panel;
        format.pack(units_ + first * d, std::min(format.panel, paneled_ - first), d,
                    exact_packed_ + p * format.panel_bytes(d));
      }
    });
    return exact_packed_;
  }

  // Where too much passes the filter, exact panels cost less.
  void reconsider(Worker& worker) noexcept {
    const double spared = static_cast<double>(worker.rows) * static_cast<double>(count_);
    if (static_cast<double>(worker.lists.pruning_cost()) <= kFilterFails * spared + 1e4) return;
    worker.format = &exact_format();
    worker.packed = exact_packed();
    worker.lists.tighten(sum_bound_);
  }

  static const ScanFormat& choose_format(finch_storage storage, size_t count) noexcept {
    const Kernels& kernel = kernels();
    const ScanFormat* filter = kernel.filter[storage];
    if (filter != nullptr && count > filter->most_few) return *filter;
    return kernel.scan_format(storage);
  }

  uint32_t choose_threads() const noexcept {
    if (request_.threads == 1) return 1;
    const uint32_t pool = finch_pool_threads();
    if (request_.threads > 1) return std::min(request_.threads, pool);
    const double work = static_cast<double>(request_.most) * state_.dimension * (1.0 + static_cast<double>(count_) / 4);
    return work < kWorthSharing ? 1 : pool;
  }

  const void* code_of(uint32_t slot) const noexcept {
    if (state_.stride == 0) return state_.vector(slot);
    return state_.codes.get(slot >> CodeChunk::kShift)->data + (slot & (CodeChunk::kRows - 1)) * state_.stride;
  }

  float scale_of(uint32_t slot) const noexcept {
    return state_.stride == 0 ? 1.0f
                              : state_.codes.get(slot >> CodeChunk::kShift)->scales[slot & (CodeChunk::kRows - 1)];
  }

  // Few chunks are shared out in halves, so that no thread waits long for the last one.
  size_t parts() const noexcept { return threads_ > 1 && state_.rows.size() < kFewChunks * threads_ ? 2 : 1; }

  // The rows of some words of a chunk.
  void scan_words(Worker& worker, size_t c, size_t first_word, size_t words) noexcept {
    const RowChunk& chunk = *state_.rows.get(c);
    if (threads_ > 1) worker.lists.share_bars(floors_);
    Group group;
    const auto full = [&] { return worker.rows == 0 ? kFirstRows : kScanRows; };
    for (size_t w = first_word; w < first_word + words; ++w) {
      uint64_t bits = chunk.present[w];
      if (request_.allow != nullptr) bits &= request_.allow[c * RowChunk::kWords + w];
      const auto first = static_cast<uint32_t>(c * RowChunk::kRows + w * kWord);
      while (bits != 0) {
        // A run of wanted rows, and of those as many as lie one after another in memory.
        const auto start = static_cast<uint32_t>(std::countr_zero(bits));
        size_t length = static_cast<size_t>(std::countr_one(bits >> start));
        length = std::min(length, full() - group.count);
        const uint32_t slot = first + start;
        if (state_.stride == 0) {
          const size_t chunk_rows = size_t{1} << state_.chunk_shift;
          length = std::min(length, chunk_rows - (slot & (chunk_rows - 1)));
        }
        bits &= ~((length == kWord ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << start);
        append(group, slot, length);
        if (group.count == full()) scan_group(worker, group);
      }
    }
    if (group.count > 0) scan_group(worker, group);
  }

  void append(Group& group, uint32_t slot, size_t length) const noexcept {
    const char* code = static_cast<const char*>(code_of(slot));
    const size_t step = state_.stride == 0 ? state_.dimension * sizeof(float) : state_.stride;
    const void** codes = group.codes + group.count;
    uint32_t* slots = group.slots + group.count;
    for (size_t i = 0; i < length; ++i, code += step) {
      codes[i] = code;
      slots[i] = slot + static_cast<uint32_t>(i);
    }
    if (state_.storage == FINCH_STORAGE_I8) {
      const float* scales = state_.codes.get(slot >> CodeChunk::kShift)->scales + (slot & (CodeChunk::kRows - 1));
      std::copy_n(scales, length, group.scales + group.count);
    }
    group.count += length;
  }

  void scan_group(Worker& worker, Group& group) noexcept {
    const size_t d = state_.dimension;
    const ScanRows rows{group.codes, group.scales, group.count, worker.workspace.get(0)};
    Survivor* out = worker.survivors.data();
    worker.rows += group.count;
    for (size_t q = paneled_; q < count_; q += kFewQueries) {
      const size_t n = format_.few(rows, few_ + (q - paneled_) * few_bytes_, std::min(kFewQueries, count_ - q), d,
                                   worker.lists.bars() + q, out);
      for (size_t i = 0; i < n; ++i) worker.lists.add(q + out[i].query, out[i].score, group.slots[out[i].row]);
    }
    if (panels_ > 0) {
      const ScanFormat& format = *worker.format;
      if (format.widen != nullptr) {
        const size_t step = format.wide_bytes(d);
        char* wide = worker.wide.get(0);
        for (size_t i = 0; i < group.count; ++i, wide += step) {
          format.widen(group.codes[i], d, wide);
          group.codes[i] = wide;
        }
      }
      const size_t panels = &format == &format_ ? panels_ : exact_panels();
      const size_t n = format.panels(rows, worker.packed, panels, d, worker.lists.bars(), out);
      for (size_t i = 0; i < n; ++i) worker.lists.add(out[i].query, out[i].score, group.slots[out[i].row]);
      if (filtering_ && worker.format == &format_) reconsider(worker);
    }
    group.count = 0;
  }

  const ScanRequest& request_;
  const State& state_;
  const ScanFormat& format_;
  const float* units_;
  const size_t count_;
  Scratch& scratch_;
  size_t paneled_ = 0;  // queries in panels; the rest goes through `few`
  size_t panels_ = 0;
  size_t few_bytes_ = 0;
  float largest_scale_ = 0;
  char* few_ = nullptr;
  char* packed_ = nullptr;
  uint32_t threads_ = 1;
  float sum_bound_ = 0;
  bool filtering_ = false;
  char* exact_packed_ = nullptr;
  std::once_flag exact_once_;
  std::atomic<bool> stopped_{false};
  std::atomic<float> floors_[kPassQueries];  // share_bars
  TopK* tops_ = nullptr;
};

}  // namespace

bool scan(const ScanRequest& request, const float* units, size_t count, TopK* tops) {
  if (request.most == 0) return true;
  thread_local Scratch scratch;
  const size_t most = request.state.stride == 0 ? request.k : std::max(request.k, request.overfetch);
  const size_t fit = std::max<size_t>(1, kListBytes / Shortlists::bytes_per_query(most, request.most));
  const size_t tile = std::min(kPassQueries, fit);
  for (size_t q = 0; q < count; q += tile) {
    Pass pass(request, units + q * request.state.dimension, std::min(tile, count - q), most, &scratch);
    if (!pass.run()) return false;
    pass.finish(tops + q);
  }
  return true;
}

}  // namespace finch
