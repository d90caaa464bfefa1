#include "core/pieces.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catalogue.hpp"

namespace finch {
namespace {

TEST(Pieces, AreAlignedAndDoNotOverlap) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{24576}, size_t{196608}, size_t{262140}, size_t{3} << 20}) {
    for (const size_t together : {size_t{0}, size_t{64} << 20}) {
      std::vector<Piece<uint8_t>> pieces;
      for (size_t i = 0; i < 100; ++i) {
        pieces.push_back(make_piece<uint8_t>(bytes, together));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[i].get()) % 64, 0u);
        std::memset(pieces[i].get(), static_cast<int>(i), bytes);
      }
      for (size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_EQ(pieces[i][0], i);
        EXPECT_EQ(pieces[i][bytes - 1], i);
      }
    }
  }
}

TEST(Pieces, OfASmallIndexComeFromTheHeap) {
  const size_t before = slab_bytes_held();
  const auto piece = make_piece<float>(1024, slab_bytes(4096) - 1);
  EXPECT_EQ(slab_bytes_held(), before);
}

TEST(Pieces, WasteLittleOfASlab) {
  for (size_t bytes = 64; bytes <= (size_t{1} << 18); bytes += 64) {
    const size_t waste = slab_bytes(bytes) % bytes;
    EXPECT_LE(waste, slab_bytes(bytes) / 32) << bytes;
  }
}

TEST(Pieces, AreTakenAndFreedByAnyThread) {
  const size_t before = slab_bytes_held();
  std::vector<Piece<uint64_t>> shared(64);
  std::mutex mutexes[64];
  const auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 3000; ++i) {
      const size_t at = random() % 64;
      std::lock_guard lock(mutexes[at]);
      if (shared[at] != nullptr) {
        ASSERT_EQ(shared[at][0], at);
        ASSERT_EQ(shared[at][1023], at);
      }
      shared[at] = random() % 4 == 0 ? Piece<uint64_t>() : make_piece<uint64_t>(1024, size_t{64} << 20);
      if (shared[at] != nullptr) shared[at][0] = shared[at][1023] = at;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  shared.clear();
  EXPECT_EQ(slab_bytes_held(), before);
}

#if defined(__linux__)  // elsewhere there are no slabs
TEST(Pieces, LieSideBySideInSlabsThatAreGivenBack) {
  constexpr size_t kBytes = 196608;
  const size_t before = slab_bytes_held();
  const size_t per_slab = slab_bytes(kBytes) / kBytes;
  std::vector<Piece<uint8_t>> pieces;
  for (size_t i = 0; i < 3 * per_slab; ++i) pieces.push_back(make_piece<uint8_t>(kBytes, size_t{64} << 20));
  EXPECT_EQ(slab_bytes_held(), before + 3 * slab_bytes(kBytes));
  for (size_t i = 1; i < per_slab; ++i) EXPECT_EQ(pieces[i].get(), pieces[i - 1].get() + kBytes);
  const uint8_t* const freed = pieces[5].get();
  pieces[5].reset();
  pieces[5] = make_piece<uint8_t>(kBytes, size_t{64} << 20);
  EXPECT_EQ(pieces[5].get(), freed) << "a vacant place is taken before there is another slab";
  pieces.clear();
  EXPECT_EQ(slab_bytes_held(), before);
}

// 20,000 rows lie in slabs; edits of single rows take vacant places there, and what is held stays bounded.
TEST(Pieces, OfAnIndexStayInSlabsUnderEdits) {
  const size_t before = slab_bytes_held();
  {
    finch_test::Index index(64, FINCH_STORAGE_I8);
    finch_test::Random random(3);
    std::vector<std::string> ids;
    for (size_t i = 0; i < 20000; ++i) ids.push_back("tool " + std::to_string(i));
    ASSERT_EQ(index.upsert(ids, finch_test::gaussian(random, 20000 * 64)), FINCH_OK);
    const size_t loaded = slab_bytes_held();
    EXPECT_GE(loaded - before, 20000 / 1024 * size_t{1024} * 64 * sizeof(float));
    for (int i = 0; i < 500; ++i) {
      ASSERT_EQ(index.upsert({ids[random() % ids.size()]}, finch_test::gaussian(random, 64)), FINCH_OK);
    }
    EXPECT_LE(slab_bytes_held(), loaded + 2 * slab_bytes(262144));
  }
  EXPECT_EQ(slab_bytes_held(), before);
}
#endif

}  // namespace
}  // namespace finch
