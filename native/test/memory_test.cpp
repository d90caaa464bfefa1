// Every allocation of every call fails once: the call must report FINCH_NO_MEMORY (or do without) and change nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <thread>

#include "catalogue.hpp"

namespace {

// Allocations on this thread until one fails; negative: none does.
thread_local long countdown = -1;
thread_local bool failed = false;

bool refuse() noexcept {
  if (countdown < 0) return false;
  if (countdown-- > 0) return false;
  failed = true;
  return true;
}

void* take(size_t size, size_t alignment) noexcept {
  if (refuse()) return nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* take_or_throw(size_t size, size_t alignment) {
  void* p = take(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t size) { return take_or_throw(size, 1); }
void* operator new[](size_t size) { return take_or_throw(size, 1); }
void* operator new(size_t size, std::align_val_t a) { return take_or_throw(size, static_cast<size_t>(a)); }
void* operator new[](size_t size, std::align_val_t a) { return take_or_throw(size, static_cast<size_t>(a)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }

namespace finch_test {
namespace {

class Memory : public testing::Test {
 protected:
  static constexpr uint32_t kDimension = 12;

  void SetUp() override {
    for (int i = 0; i < 400; ++i) ids.push_back("tool number " + std::to_string(i));
    ASSERT_EQ(index.upsert(ids, gaussian(random, ids.size() * kDimension)), FINCH_OK);
    ASSERT_EQ(index.remove({ids[3], ids[77]}), FINCH_OK);
  }

  // Calls with the 1st, 2nd, ... allocation failing until one call meets no failure; that one must succeed.
  void exhaust(const std::function<finch_status()>& call, const std::function<void()>& unchanged) {
    int failures = 0;
    for (long n = 0; n < 100000; ++n) {
      failed = false;
      countdown = n;
      const finch_status status = call();
      countdown = -1;
      if (!failed) {
        EXPECT_EQ(status, FINCH_OK) << finch_last_error();
        EXPECT_GT(failures, 0) << "nothing was allocated: nothing was tested";
        return;
      }
      if (status == FINCH_OK) return;  // it could do without; the change is made
      ++failures;
      ASSERT_EQ(status, FINCH_NO_MEMORY) << "allocation " << n << ": " << finch_last_error();
      unchanged();
      if (HasFailure()) return;
    }
    FAIL() << "it never stopped allocating";
  }

  std::function<void()> same_index() {
    struct Before {
      finch_index_info info;
      std::vector<uint64_t> keys;
      std::vector<std::vector<Hit>> hits;
    };
    const auto queries = gaussian(random, kDimension * 2);
    const auto look = [this, queries] {
      Snapshot snapshot(index);
      return Before{index.info(), snapshot.keys(), snapshot.search(queries, 2, 500, FINCH_SEARCH_AUTO)};
    };
    return [look, before = look()] {
      const Before now = look();
      EXPECT_EQ(std::memcmp(&now.info, &before.info, sizeof(now.info)), 0);
      EXPECT_EQ(now.keys, before.keys);
      EXPECT_EQ(now.hits, before.hits);
    };
  }

  Random random{21};
  std::vector<std::string> ids;
  Index index{kDimension};
};

TEST_F(Memory, Upsert) {
  const std::vector<std::string> given{ids[3], "quite new", ids[5], ids[300], "newer still", "newest"};
  const auto list = texts(given);
  const auto vectors = gaussian(random, given.size() * kDimension);
  uint64_t keys[6] = {};
  exhaust([&] { return finch_index_upsert(index.get(), list.data(), vectors.data(), list.size(), nullptr, keys); },
          same_index());
  EXPECT_EQ(keys[0], 401u) << "failed calls used up no keys";
  EXPECT_EQ(index.info().slots, 402u) << "nor slots: two of the four new rows took those of removed ones";
  EXPECT_EQ(index.info().count, 402u);
}

TEST_F(Memory, RemoveAndPriors) {
  const std::vector<std::string> given{ids[0], ids[200], ids[399]};
  const auto list = texts(given);
  const float priors[] = {0, 0.25f, 1};
  exhaust([&] { return finch_index_set_priors(index.get(), list.data(), priors, list.size()); }, same_index());
  exhaust([&] { return finch_index_remove(index.get(), list.data(), list.size()); }, same_index());
  EXPECT_EQ(index.info().count, 395u);
}

TEST_F(Memory, SearchAndAllow) {
  Snapshot snapshot(index);
  const auto list = texts(ids);
  finch_allow* allow = nullptr;
  exhaust([&] { return finch_allow_create(snapshot.get(), list.data(), list.size(), &allow, nullptr); },
          [&] { EXPECT_EQ(allow, nullptr); });
  const auto queries = gaussian(random, kDimension * 20);
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = 5;
  options.allow = allow;
  std::vector<uint64_t> keys(100, 77);
  std::vector<float> scores(100);
  std::vector<uint32_t> counts(20);
  // A thread of its own: what a search needs is kept for the thread's next one.
  std::thread([&] {
    exhaust(
        [&] {
          return finch_search(snapshot.get(), queries.data(), 20, &options, keys.data(), scores.data(), counts.data());
        },
        [&] { EXPECT_EQ(keys, std::vector<uint64_t>(100, 77)); });
  }).join();
  finch_allow_release(allow);
}

TEST_F(Memory, GraphBuildSearchAndChange) {
  std::vector<std::string> more;
  for (int i = 0; i < 1500; ++i) more.push_back("more " + std::to_string(i));
  ASSERT_EQ(index.upsert(more, gaussian(random, more.size() * kDimension)), FINCH_OK);
  finch_ann_options options{};
  options.size = sizeof(options);
  options.connectivity = 4;
  options.expansion_add = 8;
  options.expansion_search = 8;
  // A build allocates per row: the first failures one by one, then some further in.
  for (const long n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 30, 50, 500, 1000, 1800}) {
    failed = false;
    countdown = n;
    const finch_status status = finch_index_build_ann(index.get(), &options, nullptr);
    countdown = -1;
    ASSERT_TRUE(failed) << n;
    ASSERT_EQ(status, FINCH_NO_MEMORY) << n;
    ASSERT_EQ(index.info().ann_count, 0u);
  }
  ASSERT_EQ(finch_index_build_ann(index.get(), &options, nullptr), FINCH_OK);
  Snapshot snapshot(index);
  const auto queries = gaussian(random, kDimension);
  finch_search_options search{};
  search.size = sizeof(search);
  search.k = 5;
  search.mode = FINCH_SEARCH_ANN;
  uint64_t keys[5];
  float scores[5];
  uint32_t counts[1];
  exhaust([&] { return finch_search(snapshot.get(), queries.data(), 1, &search, keys, scores, counts); }, [] {});
  const std::vector<std::string> given{ids[3], "quite new", ids[5]};
  const auto list = texts(given);
  const auto vectors = gaussian(random, given.size() * kDimension);
  exhaust([&] { return finch_index_upsert(index.get(), list.data(), vectors.data(), list.size(), nullptr, nullptr); },
          same_index());
}

TEST_F(Memory, SaveAndOpen) {
  ASSERT_EQ(finch_index_build_ann(index.get(), nullptr, nullptr), FINCH_OK);
  ASSERT_EQ(index.remove({ids[9]}), FINCH_OK);
  const std::string path = testing::TempDir() + "memory-" + std::to_string(std::random_device{}()) + ".finch";
  const finch_blob blob{{"a name longer than the short strings", 36}, "data", 4};
  exhaust([&] { return finch_index_save(index.get(), path.c_str(), &blob, 1); },
          [&] {
            finch_index* none = nullptr;
            EXPECT_EQ(finch_index_open(path.c_str(), nullptr, &none), FINCH_IO) << "a failed save leaves no file";
          });
  const finch_open_options mapped{sizeof(mapped), 1, 0};
  for (const finch_open_options* options : {static_cast<const finch_open_options*>(nullptr), &mapped}) {
    finch_index* opened = nullptr;
    exhaust([&] { return finch_index_open(path.c_str(), options, &opened); }, [&] { EXPECT_EQ(opened, nullptr); });
    ASSERT_NE(opened, nullptr);
    finch_index_release(opened);
  }
  std::remove(path.c_str());
}

TEST_F(Memory, IndexesWithCodes) {
  const std::string path = testing::TempDir() + "memory-codes-" + std::to_string(std::random_device{}()) + ".finch";
  Index coded(kDimension, FINCH_STORAGE_I8);
  const auto list = texts(ids);
  const auto vectors = gaussian(random, ids.size() * kDimension);
  exhaust([&] { return finch_index_upsert(coded.get(), list.data(), vectors.data(), list.size(), nullptr, nullptr); },
          [&] {
            EXPECT_EQ(coded.info().count, 0u);
            EXPECT_EQ(coded.info().code_bytes, 0u);
          });
  ASSERT_EQ(finch_index_save(coded.get(), path.c_str(), nullptr, 0), FINCH_OK);
  const finch_open_options mapped{sizeof(mapped), 1, 0};
  for (const finch_open_options* options : {static_cast<const finch_open_options*>(nullptr), &mapped}) {
    finch_index* handle = nullptr;
    exhaust([&] { return finch_index_open(path.c_str(), options, &handle); }, [&] { EXPECT_EQ(handle, nullptr); });
    Index opened(handle);
    const finch_index_info before = opened.info();
    const auto fresh = gaussian(random, kDimension);
    exhaust([&] { return finch_index_upsert(opened.get(), list.data(), fresh.data(), 1, nullptr, nullptr); },
            [&] {
              EXPECT_EQ(opened.info().code_bytes, before.code_bytes);
              EXPECT_EQ(opened.info().mapped_bytes, before.mapped_bytes);
            });
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace finch_test
