// An index: the state in force, and the one writer at a time that replaces it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "state.hpp"

namespace finch {

struct Blob {
  std::string name;
  std::vector<char> data;
};

}  // namespace finch

struct finch_index {
  explicit finch_index(finch::State state);
  ~finch_index();

  // The state in force, with a reference. Waits for nobody but another thread doing just this.
  finch::SnapshotRef snapshot() const noexcept;
  // Puts `next` in force. Only under `writer`.
  void publish(finch::SnapshotRef next) noexcept;

  std::atomic<uint32_t> references{1};
  std::mutex writer;
  std::vector<uint32_t> free_slots;  // under `writer`
  bool maintaining = false;          // under `writer`: a pool task is bringing the graph up to date
  std::vector<finch::Blob> blobs;    // fixed once opened

 private:
  mutable std::mutex current_mutex;  // held for a pointer's copy, never longer
  finch_snapshot* current;
};

namespace finch {

uint64_t next_index_id() noexcept;

// Under `writer`, after a change: starts the graph's upkeep on the pool when there is enough to do.
void maintain_ann(finch_index* index) noexcept;

}  // namespace finch
