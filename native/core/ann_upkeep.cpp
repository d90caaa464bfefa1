// When graphs are made: on request (finch_index_build_ann), and on the pool once enough has changed since.
#include <algorithm>
#include <chrono>

#include "ann.hpp"
#include "cancel.hpp"
#include "error.hpp"
#include "index.hpp"
#include "pool.hpp"
#include "sized.hpp"

namespace finch {
namespace {

// Fewer changes than this are not worth a new graph; fresh rows are scanned, which costs a few microseconds per
// hundred.
constexpr uint64_t kLeastFresh = 1024;
constexpr uint64_t kLeastStale = 1024;
// A task gives the thread back after this long: other work waits for it too.
constexpr std::chrono::milliseconds kSlice{20};
constexpr size_t kRowsBetweenLooks = 8;

// Only under the index's writer lock. The rows are the same, and so is the version.
void attach(finch_index* index, std::shared_ptr<const Ann> ann) {
  State state = index->snapshot().state();
  auto fresh = std::make_shared<std::vector<Fresh>>();
  if (ann != nullptr) {
    for (size_t c = 0; c < state.rows.size(); ++c) {
      const RowChunk& chunk = *state.rows.get(c);
      for (size_t row = 0; row < RowChunk::kRows; ++row) {
        if (!chunk.holds(row) || chunk.stamps[row] <= ann->covers()) continue;
        fresh->push_back({chunk.stamps[row], static_cast<uint32_t>(c * RowChunk::kRows + row)});
      }
    }
  }
  state.ann = std::move(ann);
  state.fresh = fresh->empty() ? nullptr : std::move(fresh);
  index->publish(SnapshotRef(new finch_snapshot(std::move(state))));
}

class Upkeep {
 public:
  Upkeep(finch_index* index, std::shared_ptr<const Ann> base, bool rebuild)
      : index_(index), base_(std::move(base)), rebuild_(rebuild) {
    finch_index_retain(index_);
  }
  ~Upkeep() { finch_index_release(index_); }

  static void task(void* self) noexcept {
    auto* upkeep = static_cast<Upkeep*>(self);
    bool more = false;
    bool failed = false;
    try {
      more = upkeep->work();
    } catch (...) {
      failed = true;
      // Out of memory: the old graph and the fresh rows go on answering, and the next change tries again.
    }
    if (more && finch_pool_run(task, upkeep) == FINCH_OK) return;
    {
      std::lock_guard lock(upkeep->index_->writer);
      upkeep->index_->maintaining = false;
      // Rows that came meanwhile.
      if (!failed && !pool_stopping()) maintain_ann(upkeep->index_);
    }
    delete upkeep;
  }

 private:
  // True when there is more to do.
  bool work() {
    if (builder_ == nullptr) {
      const SnapshotRef snapshot = index_->snapshot();
      if (snapshot.state().ann != base_) return false;
      builder_ = std::make_unique<AnnBuilder>(snapshot.state(), base_->config(), rebuild_ ? nullptr : base_.get());
    }
    const auto end = std::chrono::steady_clock::now() + kSlice;
    while (!builder_->step(kRowsBetweenLooks)) {
      if (pool_stopping()) return false;
      if (std::chrono::steady_clock::now() >= end) return true;
    }
    auto ann = builder_->finish();
    std::lock_guard lock(index_->writer);
    // Another graph, or none, was asked for meanwhile.
    if (index_->snapshot().state().ann == base_) attach(index_, std::move(ann));
    return false;
  }

  finch_index* index_;
  const std::shared_ptr<const Ann> base_;
  const bool rebuild_;
  std::unique_ptr<AnnBuilder> builder_;
};

}  // namespace

void maintain_ann(finch_index* index) noexcept {
  if (index->maintaining) return;
  const SnapshotRef snapshot = index->snapshot();
  const State& state = snapshot.state();
  if (state.ann == nullptr) return;
  const uint64_t fresh = state.fresh == nullptr ? 0 : state.fresh->size();
  const uint64_t entries = state.ann->size();
  const uint64_t current = state.count - std::min(state.count, fresh);  // at least so many entries are in force
  const uint64_t stale = entries - std::min(entries, current);
  const bool rebuild = stale > std::max(kLeastStale, entries / 2);
  if (!rebuild && fresh <= std::max(kLeastFresh, entries / 16)) return;
  Upkeep* upkeep = nullptr;
  try {
    upkeep = new Upkeep(index, state.ann, rebuild);
  } catch (...) {
    return;
  }
  if (finch_pool_run(Upkeep::task, upkeep) == FINCH_OK) {
    index->maintaining = true;
  } else {
    delete upkeep;
  }
}

namespace {

finch_status build(finch_index* index, const AnnConfig& config, const finch_cancel* cancel) {
  std::shared_ptr<const Ann> ann;
  {
    const SnapshotRef snapshot = index->snapshot();
    AnnBuilder builder(snapshot.state(), config, nullptr);
    while (!builder.step(kRowsBetweenLooks)) {
      if (cancelled(cancel))
        return fail(FINCH_ABORTED, "building the ANN graph was cancelled; the index is unchanged.");
      if (pool_stopping()) return fail(FINCH_ABORTED, "the process is exiting; the index is unchanged.");
    }
    if (cancelled(cancel)) return fail(FINCH_ABORTED, "building the ANN graph was cancelled; the index is unchanged.");
    ann = builder.finish();
  }
  std::lock_guard lock(index->writer);
  attach(index, std::move(ann));
  maintain_ann(index);
  return FINCH_OK;
}

}  // namespace
}  // namespace finch

using finch::fail;

extern "C" {

finch_status finch_index_build_ann(finch_index* index, const finch_ann_options* options, const finch_cancel* cancel) {
  return finch::guarded([&]() -> finch_status {
    if (index == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index must not be NULL.");
    finch::AnnConfig config;
    if (options != nullptr) {
      finch_ann_options read;
      if (!finch::read_sized(options, sizeof(finch_ann_options), &read)) {
        return fail(FINCH_INVALID_ARGUMENT, "options.size is %zu; set it to sizeof(finch_ann_options).", options->size);
      }
      if (read.connectivity != 0) config.connectivity = read.connectivity;
      if (read.expansion_add != 0) config.expansion_add = read.expansion_add;
      if (read.expansion_search != 0) config.expansion_search = read.expansion_search;
    }
    if (config.connectivity < 2 || config.connectivity > finch::AnnConfig::kMostConnectivity) {
      return fail(FINCH_INVALID_ARGUMENT, "options.connectivity is %u; it lies in 2 ... %u (default 16).",
                  config.connectivity, finch::AnnConfig::kMostConnectivity);
    }
    if (config.expansion_add > finch::AnnConfig::kMostExpansion ||
        config.expansion_search > finch::AnnConfig::kMostExpansion) {
      return fail(FINCH_INVALID_ARGUMENT, "options.expansion_add is %u and options.expansion_search %u; at most %u.",
                  config.expansion_add, config.expansion_search, finch::AnnConfig::kMostExpansion);
    }
    return finch::build(index, config, cancel);
  });
}

finch_status finch_index_drop_ann(finch_index* index) {
  return finch::guarded([&]() -> finch_status {
    if (index == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index must not be NULL.");
    std::lock_guard lock(index->writer);
    finch::attach(index, nullptr);
    return FINCH_OK;
  });
}

}  // extern "C"
