#include <gtest/gtest.h>

#include "catalogue.hpp"

namespace finch_test {
namespace {

TEST(Allow, IgnoresIdsThatAreNotThereAndCountsEachOnce) {
  Index index(1);
  ASSERT_EQ(index.upsert({"a", "b", "c"}, {1, 2, 3}), FINCH_OK);
  ASSERT_EQ(index.remove({"b"}), FINCH_OK);
  Snapshot snapshot(index);
  const std::vector<std::string> given{"a", "b", "z", "a", "", std::string(FINCH_MAX_ID_BYTES + 1, 'q')};
  const auto ids = texts(given);
  finch_allow* allow = nullptr;
  size_t matched = 77;
  ASSERT_EQ(finch_allow_create(snapshot.get(), ids.data(), ids.size(), &allow, &matched), FINCH_OK);
  EXPECT_EQ(matched, 1u);
  const auto hits = snapshot.search({1}, 1, 5, FINCH_SEARCH_EXACT, allow)[0];
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].key, 1u);
  finch_allow_release(allow);
}

TEST(Allow, AnEmptySetAllowsNothing) {
  Index index(1);
  ASSERT_EQ(index.upsert({"a", "b"}, {1, 2}), FINCH_OK);
  Snapshot snapshot(index);
  finch_allow* allow = nullptr;
  ASSERT_EQ(finch_allow_create(snapshot.get(), nullptr, 0, &allow, nullptr), FINCH_OK);
  EXPECT_TRUE(snapshot.search({1}, 1, 5, FINCH_SEARCH_EXACT, allow)[0].empty());
  EXPECT_TRUE(snapshot.search({1}, 1, 5, FINCH_SEARCH_AUTO, allow)[0].empty());
  finch_allow_release(allow);
  Index empty(1);
  Snapshot none(empty);
  ASSERT_EQ(finch_allow_create(none.get(), nullptr, 0, &allow, nullptr), FINCH_OK);
  EXPECT_TRUE(none.search({1}, 1, 5, FINCH_SEARCH_EXACT, allow)[0].empty());
  finch_allow_release(allow);
}

TEST(Allow, OutlivesItsSnapshotAndServesTheSameVersionAgain) {
  Index index(1);
  ASSERT_EQ(index.upsert({"a", "b"}, {1, 2}), FINCH_OK);
  finch_allow* allow = nullptr;
  {
    Snapshot snapshot(index);
    const finch_string id{"b", 1};
    ASSERT_EQ(finch_allow_create(snapshot.get(), &id, 1, &allow, nullptr), FINCH_OK);
  }
  EXPECT_EQ(Snapshot(index).search({1}, 1, 5, FINCH_SEARCH_EXACT, allow)[0].size(), 1u);
  finch_allow_release(allow);
}

TEST(Allow, RefusesNull) {
  Index index(1);
  Snapshot snapshot(index);
  finch_allow* allow = nullptr;
  const finch_string broken{nullptr, 3};
  EXPECT_EQ(finch_allow_create(nullptr, nullptr, 0, &allow, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_allow_create(snapshot.get(), nullptr, 0, nullptr, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_allow_create(snapshot.get(), nullptr, 2, &allow, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(finch_allow_create(snapshot.get(), &broken, 1, &allow, nullptr), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(allow, nullptr);
  finch_allow_release(nullptr);
}

}  // namespace
}  // namespace finch_test
