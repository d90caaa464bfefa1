#include "core/huge_pages.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>

namespace finch {
namespace {

TEST(HugePages, VectorsOfEverySizeKeepTheirNumbers) {
  constexpr size_t kPage = size_t{2} << 20;
  HugeVector<uint32_t> grown;
  for (const size_t bytes : {size_t{64}, kPage - 64, kPage, kPage + 4, 5 * kPage}) {
    HugeVector<uint32_t> all(bytes / sizeof(uint32_t), 7);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % (bytes < kPage ? 64 : kPage), 0u);
    EXPECT_EQ(std::accumulate(all.begin(), all.end(), uint64_t{0}), 7 * all.size());
    std::iota(all.begin(), all.end(), 0u);
    grown.resize(all.size());
    std::copy(all.begin(), all.end(), grown.begin());
    const HugeVector<uint32_t> moved = std::move(grown);
    EXPECT_EQ(moved, all);
    grown = moved;
    EXPECT_EQ(grown, all);
  }
}

TEST(HugePages, RefusesWhatNoMemoryHolds) {
  HugePages<uint64_t> pages;
  EXPECT_THROW(static_cast<void>(pages.allocate(std::numeric_limits<size_t>::max() / 4)), std::bad_alloc);
}

}  // namespace
}  // namespace finch
