#include <gtest/gtest.h>

#include "golden.hpp"
#include "toolfinch.h"

namespace finch::test {
namespace {

TEST(CosineGolden, Pairs) {
  const Json golden = read_golden("cosine.json");
  for (const Json& c : golden.at("cosine")) {
    const std::vector<float> a = floats(c.at("a")), b = floats(c.at("b"));
    float out = 7.0f;
    ASSERT_EQ(finch_cosine(a.data(), b.data(), 1, static_cast<uint32_t>(a.size()), &out), FINCH_OK) << c.at("name");
    expect_close(out, c.at("expected").get<double>(), golden.at("tolerance"), c.at("name").get<std::string>());
  }
}

TEST(CosineGolden, Errors) {
  const Json golden = read_golden("cosine.json");
  for (const Json& c : golden.at("errors")) {
    const std::vector<float> a = floats(c.at("a")), b = floats(c.at("b"));
    float out = 7.0f;
    const finch_status status = finch_cosine(a.data(), b.data(), 1, static_cast<uint32_t>(a.size()), &out);
    EXPECT_EQ(finch_status_name(status), c.at("code").get<std::string>()) << c.at("name");
    EXPECT_EQ(out, 7.0f) << c.at("name");
  }
}

TEST(CosineGolden, Search) {
  const Json golden = read_golden("cosine.json");
  for (const Json& c : golden.at("search")) {
    const std::string name = c.at("name");
    const std::vector<float> rows = floats(c.at("rows")), query = floats(c.at("query"));
    finch_index_options options{sizeof(finch_index_options), c.at("dimension").get<uint32_t>(), FINCH_STORAGE_F32};
    const size_t count = rows.size() / options.dimension;
    std::vector<std::string> names;
    std::vector<finch_string> ids;
    for (size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    for (const std::string& id : names) ids.push_back(as_string(id));
    finch_index* index = nullptr;
    finch_snapshot* snapshot = nullptr;
    std::vector<uint64_t> keys(count);
    ASSERT_EQ(finch_index_create(&options, &index), FINCH_OK);
    ASSERT_EQ(finch_index_upsert(index, ids.data(), rows.data(), count, nullptr, keys.data()), FINCH_OK);
    ASSERT_EQ(finch_index_snapshot(index, &snapshot), FINCH_OK);
    finch_search_options search{};
    search.size = sizeof(search);
    search.k = c.at("k");
    std::vector<uint64_t> found_keys(search.k);
    std::vector<float> scores(search.k);
    uint32_t found = 0;
    ASSERT_EQ(finch_search(snapshot, query.data(), 1, &search, found_keys.data(), scores.data(), &found), FINCH_OK)
        << name;
    const Json& expected = c.at("expected");
    ASSERT_EQ(found, expected.at("rows").size()) << name;
    for (size_t i = 0; i < found; ++i) {
      EXPECT_EQ(found_keys[i], keys[expected.at("rows").at(i).get<size_t>()]) << name << " place " << i;
      expect_close(scores[i], expected.at("scores").at(i).get<double>(), golden.at("tolerance"), name);
    }
    finch_snapshot_release(snapshot);
    finch_index_release(index);
  }
}

}  // namespace
}  // namespace finch::test
