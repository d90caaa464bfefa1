// A copy-on-write array of leaves in two levels. Copying the array copies one pointer per 64 leaves; editing a leaf
// copies that leaf and its branch, once per edit number. So a snapshot is cheap, a small change to a large state costs
// little, and a batch copies each leaf it touches only once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace finch {

// Unique in the process, never 0: what marks a leaf as private to one change in the making.
inline uint64_t next_edit() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Leaf needs `uint64_t edit`, a default constructor and a copy constructor.
template <typename Leaf>
class Cow {
 public:
  size_t size() const noexcept { return size_; }

  // nullptr where nothing was ever written.
  const Leaf* get(size_t i) const noexcept { return branches_[i >> kShift]->leaves[i & kMask].get(); }

  void resize(size_t size, uint64_t edit) {
    const size_t branches = (size + kMask) >> kShift;
    while (branches_.size() < branches) {
      auto fresh = std::make_shared<Branch>();
      fresh->edit = edit;
      branches_.push_back(std::move(fresh));
    }
    size_ = size;
  }

  // The leaf, private to `edit`; copied with copy(const Leaf&) -> shared_ptr<Leaf>, made with make() when there is
  // none.
  template <typename Copy, typename Make>
  Leaf& edit(size_t i, uint64_t edit, Copy&& copy, Make&& make) {
    std::shared_ptr<Branch>& branch = branches_[i >> kShift];
    if (branch->edit != edit) {
      branch = std::make_shared<Branch>(*branch);
      branch->edit = edit;
    }
    std::shared_ptr<Leaf>& leaf = branch->leaves[i & kMask];
    if (leaf == nullptr) {
      leaf = make();
      leaf->edit = edit;
    } else if (leaf->edit != edit) {
      leaf = copy(*leaf);
      leaf->edit = edit;
    }
    return *leaf;
  }

  Leaf& edit(size_t i, uint64_t edit_number) {
    return edit(
        i, edit_number, [](const Leaf& leaf) { return std::make_shared<Leaf>(leaf); },
        [] { return std::make_shared<Leaf>(); });
  }

  // Puts another leaf in place of the one that edit() gave.
  void replace(size_t i, std::shared_ptr<Leaf> leaf) noexcept {
    branches_[i >> kShift]->leaves[i & kMask] = std::move(leaf);
  }

 private:
  static constexpr size_t kShift = 6;
  static constexpr size_t kMask = (size_t{1} << kShift) - 1;

  struct Branch {
    uint64_t edit = 0;
    std::array<std::shared_ptr<Leaf>, kMask + 1> leaves;
  };

  std::vector<std::shared_ptr<Branch>> branches_;
  size_t size_ = 0;
};

}  // namespace finch
