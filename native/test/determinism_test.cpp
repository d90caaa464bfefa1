// The same bits whatever the number of threads, the size of the batch and the size of the pool: for every storage, in
// this process for the instruction set in use, and in processes of their own for all that the machine has.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "catalogue.hpp"
#include "core/hash.hpp"
#include "kernels/kernels.hpp"

namespace {

using namespace finch_test;

constexpr finch_storage kStorages[] = {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8};
constexpr size_t kBatch = 64;
constexpr uint32_t kK = 24;

struct Answer {
  std::vector<uint64_t> keys;
  std::vector<float> scores;
  std::vector<uint32_t> counts;

  // Only what was found: the rest of a row is not written.
  uint64_t digest(uint64_t seed) const {
    finch::Checksum sum;
    sum.add(&seed, sizeof(seed));
    for (size_t q = 0; q < counts.size(); ++q) {
      sum.add(&counts[q], sizeof(counts[q]));
      sum.add(keys.data() + q * kK, counts[q] * sizeof(uint64_t));
      sum.add(scores.data() + q * kK, counts[q] * sizeof(float));
    }
    return sum.value();
  }
  Answer row(size_t q) const {
    return {
        {keys.begin() + static_cast<std::ptrdiff_t>(q * kK), keys.begin() + static_cast<std::ptrdiff_t>((q + 1) * kK)},
        {scores.begin() + static_cast<std::ptrdiff_t>(q * kK),
         scores.begin() + static_cast<std::ptrdiff_t>((q + 1) * kK)},
        {counts[q]}};
  }
};

// Rows with ties, near misses and a remainder at every width of register; enough of them for several threads.
class Catalogue {
 public:
  Catalogue(finch_storage storage, uint32_t dimension, size_t rows) : dimension_(dimension) {
    finch_index_options options{};
    options.size = sizeof(options);
    options.dimension = dimension;
    options.storage = storage;
    finch_index* made = nullptr;
    EXPECT_EQ(finch_index_create(&options, &made), FINCH_OK) << finch_last_error();
    index_ = std::make_unique<Index>(made);
    Random random(11);
    std::vector<float> vectors = gaussian(random, rows * dimension);
    for (size_t i = 1; i < rows; ++i) {
      if (i % 5 != 0) continue;  // the row before once more, or all but
      std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>((i - 1) * dimension), dimension,
                  vectors.begin() + static_cast<std::ptrdiff_t>(i * dimension));
      if (i % 10 == 0) vectors[i * dimension] *= 1.0000002f;
    }
    std::vector<std::string> ids;
    for (size_t i = 0; i < rows; ++i) ids.push_back("tool " + std::to_string(i));
    EXPECT_EQ(index_->upsert(ids, vectors), FINCH_OK) << finch_last_error();
    std::vector<std::string> gone;
    for (size_t i = 0; i < rows; i += 7) gone.push_back(ids[i]);
    EXPECT_EQ(index_->remove(gone), FINCH_OK);
    snapshot_ = std::make_unique<Snapshot>(*index_);
    queries_ = gaussian(random, kBatch * dimension);
    std::vector<std::string> some;
    for (size_t i = 0; i < rows; i += 3) some.push_back(ids[i]);
    const auto list = texts(some);
    EXPECT_EQ(finch_allow_create(snapshot_->get(), list.data(), list.size(), &allow_, nullptr), FINCH_OK);
  }
  ~Catalogue() { finch_allow_release(allow_); }

  Answer search(size_t first, size_t count, uint32_t threads, bool masked) const {
    finch_search_options options{};
    options.size = sizeof(options);
    options.k = kK;
    options.mode = FINCH_SEARCH_EXACT;
    options.threads = threads;
    options.allow = masked ? allow_ : nullptr;
    Answer out{std::vector<uint64_t>(count * kK), std::vector<float>(count * kK), std::vector<uint32_t>(count)};
    EXPECT_EQ(finch_search(snapshot_->get(), queries_.data() + first * dimension_, count, &options, out.keys.data(),
                           out.scores.data(), out.counts.data()),
              FINCH_OK)
        << finch_last_error();
    return out;
  }

 private:
  uint32_t dimension_;
  std::unique_ptr<Index> index_;
  std::unique_ptr<Snapshot> snapshot_;
  finch_allow* allow_ = nullptr;
  std::vector<float> queries_;
};

constexpr std::array<std::pair<uint32_t, size_t>, 4> kShapes = {{{1, 200}, {37, 1500}, {128, 3000}, {384, 2501}}};

// One number for everything that was found, by as many threads as asked for.
uint64_t digest(uint32_t threads) {
  uint64_t sum = 0;
  for (const finch_storage storage : kStorages) {
    for (const auto& [dimension, rows] : kShapes) {
      const Catalogue catalogue(storage, dimension, rows);
      for (const bool masked : {false, true}) sum = catalogue.search(0, kBatch, threads, masked).digest(sum);
    }
  }
  return sum;
}

TEST(Determinism, SameBitsForAnyNumberOfThreadsAndAnyBatch) {
  for (const finch_storage storage : kStorages) {
    for (const auto& [dimension, rows] : kShapes) {
      SCOPED_TRACE("storage " + std::to_string(storage) + ", " + std::to_string(rows) + " x " +
                   std::to_string(dimension));
      const Catalogue catalogue(storage, dimension, rows);
      for (const bool masked : {false, true}) {
        const Answer whole = catalogue.search(0, kBatch, 1, masked);
        const uint64_t expected = whole.digest(0);
        for (const uint32_t threads : {2u, 7u, 0u}) {
          EXPECT_EQ(catalogue.search(0, kBatch, threads, masked).digest(0), expected) << threads << " threads";
        }
        for (size_t q = 0; q < kBatch; q += 9) {
          const uint64_t alone = whole.row(q).digest(0);
          EXPECT_EQ(catalogue.search(q, 1, 1, masked).digest(0), alone) << "query " << q << " alone";
          EXPECT_EQ(catalogue.search(q, 1, 7, masked).digest(0), alone) << "query " << q << " alone, 7 threads";
        }
        for (const size_t batch : {2u, 5u, 8u, 16u, 17u, 33u}) {
          const Answer part = catalogue.search(kBatch - batch, batch, 2, masked);
          for (size_t q = 0; q < batch; ++q) {
            ASSERT_EQ(part.row(q).digest(0), whole.row(kBatch - batch + q).digest(0))
                << q << " of a batch of " << batch;
          }
        }
      }
    }
  }
}

#if !defined(_WIN32)
// What the processes below run; by itself it only says the number.
TEST(Determinism, Digest) {
  const char* threads = std::getenv("TOOLFINCH_TEST_THREADS");
  const uint64_t sum = digest(threads == nullptr ? 0 : static_cast<uint32_t>(std::atoi(threads)));
  std::printf("digest %016llx %s\n", static_cast<unsigned long long>(sum), finch_isa());
}

// This program's name, and what runs it: TOOLFINCH_TEST_LAUNCHER is an emulator with its arguments, when there is one.
std::string this_program() {
  const char* launcher = std::getenv("TOOLFINCH_TEST_LAUNCHER");
  const std::string path = testing::internal::GetArgvs().front();
  return (launcher == nullptr ? "" : std::string(launcher) + " ") + "'" + path + "'";
}

std::string digest_of(const char* isa, uint32_t pool, uint32_t threads) {
  char command[4096];
  std::snprintf(command, sizeof(command),
                "TOOLFINCH_ISA=%s TOOLFINCH_THREADS=%u TOOLFINCH_TEST_THREADS=%u %s --gtest_filter=Determinism.Digest",
                isa, pool, threads, this_program().c_str());
  std::FILE* pipe = popen(command, "r");
  EXPECT_NE(pipe, nullptr);
  std::string found;
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
    if (std::strncmp(line, "digest ", 7) == 0) found = line + 7;
  }
  EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0) << command;
  return found;
}

TEST(Determinism, SameBitsForAnySizeOfThePoolAndEveryInstructionSet) {
  for (const finch::Kernels* level : finch::available_kernels()) {
    const std::string one = digest_of(level->name, 1, 1);
    ASSERT_NE(one.find(level->name), std::string::npos) << "the process did not use the level asked for: " << one;
    EXPECT_EQ(digest_of(level->name, 2, 0), one) << level->name << ", a pool of 2";
    EXPECT_EQ(digest_of(level->name, 7, 7), one) << level->name << ", a pool of 7";
  }
}
#endif

}  // namespace
