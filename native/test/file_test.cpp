#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catalogue.hpp"
#include "core/file_format.hpp"
#include "core/hash.hpp"

namespace finch_test {
namespace {

namespace format = finch::format;
using Bytes = std::vector<char>;

Bytes load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

void store(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class File : public testing::Test {
 protected:
  void SetUp() override {
    // Memory where there is such a folder: tens of thousands of damaged files are written here.
    const char* memory = "/dev/shm";
    folder = std::filesystem::path(std::filesystem::is_directory(memory) ? memory : testing::TempDir()) /
             ("finch-file-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    path = (folder / "index.finch").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  finch_status open(const std::string& from, finch_index** out) { return finch_index_open(from.c_str(), nullptr, out); }
  finch_status open_bytes(const Bytes& bytes) {
    store(path, bytes);
    finch_index* index = nullptr;
    const finch_status status = open(path, &index);
    EXPECT_EQ(index != nullptr, status == FINCH_OK);
    finch_index_release(index);
    return status;
  }

  // A small index with everything in it: gaps, replaced rows, priors, a graph with stale and fresh entries, blobs.
  Bytes sample(finch_storage storage = FINCH_STORAGE_F32) {
    Random random(5);
    Index index(3, storage);
    std::vector<std::string> ids;
    for (int i = 0; i < 9; ++i) ids.push_back("tool " + std::to_string(i));
    std::vector<float> priors(9, 0.25f);
    EXPECT_EQ(index.upsert(ids, gaussian(random, 27), priors.data()), FINCH_OK);
    EXPECT_EQ(finch_index_build_ann(index.get(), nullptr, nullptr), FINCH_OK);
    EXPECT_EQ(index.remove({"tool 1", "tool 4"}), FINCH_OK);
    EXPECT_EQ(index.upsert({"late", "tool 7"}, gaussian(random, 6)), FINCH_OK);
    const char data[] = "{\"tools\":[]}";
    const finch_blob blobs[] = {{{"catalog", 7}, data, sizeof(data)}, {{"none", 4}, nullptr, 0}};
    EXPECT_EQ(finch_index_save(index.get(), path.c_str(), blobs, 2), FINCH_OK) << finch_last_error();
    return load(path);
  }

  // Edits a field and puts every checksum right again: what a hostile file can do.
  static void reseal(Bytes* bytes) {
    format::Header header;
    std::memcpy(&header, bytes->data(), sizeof(header));
    for (size_t i = 0; i < header.sections; ++i) {
      const size_t at = sizeof(header) + i * sizeof(format::Section);
      if (at + sizeof(format::Section) > bytes->size()) break;
      format::Section section;
      std::memcpy(&section, bytes->data() + at, sizeof(section));
      if (section.offset <= bytes->size() && section.size <= bytes->size() - section.offset) {
        section.checksum = finch::checksum(bytes->data() + section.offset, section.size);
      }
      std::memcpy(bytes->data() + at, &section, sizeof(section));
    }
    const size_t table =
        std::min<size_t>(bytes->size() - sizeof(header), size_t{header.sections} * sizeof(format::Section));
    header.table_checksum = finch::checksum(bytes->data() + sizeof(header), table);
    header.header_checksum = finch::checksum(&header, offsetof(format::Header, header_checksum));
    std::memcpy(bytes->data(), &header, sizeof(header));
  }

  void every_flipped_bit_is_noticed(const Bytes& good);
  void hostile_files_are_refused_or_harmless(const Bytes& good);

  static format::Section section(const Bytes& bytes, uint32_t kind) {
    format::Header header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    for (uint32_t i = 0; i < header.sections; ++i) {
      format::Section section;
      std::memcpy(&section, bytes.data() + sizeof(header) + i * sizeof(section), sizeof(section));
      if (section.kind == kind) return section;
    }
    ADD_FAILURE() << "no section " << kind;
    return {};
  }

  std::filesystem::path folder;
  std::string path;
};

TEST(Checksum, IsXxh64) {
  EXPECT_EQ(finch::checksum("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(finch::checksum("abc", 3), 0x44BC2CF5AD770999u);
  // Pieces of any length give the whole's value.
  Bytes bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 37));
  for (size_t size = 0; size <= bytes.size(); ++size) {
    finch::Checksum sum;
    for (size_t at = 0, step = 1; at < size; at += step, step = step % 41 + 1) {
      step = std::min(step, size - at);
      sum.add(bytes.data() + at, step);
    }
    ASSERT_EQ(sum.value(), finch::checksum(bytes.data(), size));
  }
}

TEST_F(File, RoundTripKeepsEverything) {
  Random random(6);
  Index index(130);
  std::vector<std::string> ids;
  std::vector<float> priors;
  for (int i = 0; i < 800; ++i) {
    ids.push_back(std::string("id\0", 3) + std::to_string(i));
    priors.push_back(static_cast<float>(i) / 800);
  }
  ASSERT_EQ(index.upsert(ids, gaussian(random, 800 * 130), priors.data()), FINCH_OK);
  ASSERT_EQ(index.remove({ids.begin() + 10, ids.begin() + 300}), FINCH_OK);
  ASSERT_EQ(index.upsert({"new", ids[20], ids[500]}, gaussian(random, 3 * 130)), FINCH_OK);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  finch_index* handle = nullptr;
  ASSERT_EQ(open(path, &handle), FINCH_OK) << finch_last_error();
  Index opened(handle);
  Snapshot a(index), b(opened);
  ASSERT_EQ(a.keys(), b.keys());
  const auto keys = a.keys();
  std::vector<finch_string> names_a(keys.size()), names_b(keys.size());
  std::vector<float> vectors_a(keys.size() * 130), vectors_b(keys.size() * 130), priors_a(keys.size()),
      priors_b(keys.size());
  finch_snapshot_rows(a.get(), keys.data(), keys.size(), names_a.data(), vectors_a.data(), priors_a.data());
  finch_snapshot_rows(b.get(), keys.data(), keys.size(), names_b.data(), vectors_b.data(), priors_b.data());
  EXPECT_EQ(vectors_a, vectors_b);
  EXPECT_EQ(priors_a, priors_b);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(std::string(names_a[i].data, names_a[i].size), std::string(names_b[i].data, names_b[i].size));
  }
  uint64_t key_a, key_b;
  ASSERT_EQ(index.upsert({"next"}, gaussian(random, 130), nullptr, &key_a), FINCH_OK);
  ASSERT_EQ(opened.upsert({"next"}, gaussian(random, 130), nullptr, &key_b), FINCH_OK);
  EXPECT_EQ(key_a, key_b) << "keys of removed rows are not given out again";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing temporary is left";
}

TEST_F(File, AnEmptyIndexRoundTrips) {
  Index index(7);
  ASSERT_EQ(index.upsert({"a"}, {1, 2, 3, 4, 5, 6, 7}), FINCH_OK);
  ASSERT_EQ(index.remove({"a"}), FINCH_OK);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  finch_index* handle = nullptr;
  ASSERT_EQ(open(path, &handle), FINCH_OK) << finch_last_error();
  Index opened(handle);
  EXPECT_EQ(opened.info().count, 0u);
  EXPECT_EQ(opened.info().dimension, 7u);
  uint64_t key = 0;
  ASSERT_EQ(opened.upsert({"b"}, {1, 2, 3, 4, 5, 6, 7}, nullptr, &key), FINCH_OK);
  EXPECT_EQ(key, 2u);
}

TEST_F(File, BlobsComeBackByName) {
  sample();
  finch_index* handle = nullptr;
  ASSERT_EQ(open(path, &handle), FINCH_OK) << finch_last_error();
  Index opened(handle);
  const void* data = nullptr;
  size_t size = 0;
  ASSERT_EQ(finch_index_blob(handle, {"catalog", 7}, &data, &size), FINCH_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(data), size), std::string("{\"tools\":[]}\0", 13));
  ASSERT_EQ(finch_index_blob(handle, {"none", 4}, &data, &size), FINCH_OK);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(finch_index_blob(handle, {"catalo", 6}, &data, &size), FINCH_UNKNOWN_ID);
}

TEST_F(File, RefusesBadBlobs) {
  Index index(1);
  const std::string longest(63, 'n'), too_long(64, 'n');
  const auto save = [&](const std::vector<finch_blob>& blobs) {
    return finch_index_save(index.get(), path.c_str(), blobs.data(), blobs.size());
  };
  EXPECT_EQ(save({{{"", 0}, "x", 1}}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(save({{text(too_long), "x", 1}}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(save({{{"a", 1}, "x", 1}, {{"a", 1}, "y", 1}}), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(save({{{"a", 1}, nullptr, 1}}), FINCH_INVALID_ARGUMENT);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(save({{text(longest), "x", 1}}), FINCH_OK);
}

TEST_F(File, PathsThatCannotBe) {
  Index index(1);
  finch_index* out = nullptr;
  const std::string missing = (folder / "no" / "index.finch").string();
  EXPECT_EQ(finch_index_save(index.get(), missing.c_str(), nullptr, 0), FINCH_IO);
  EXPECT_NE(std::string(finch_last_error()).find(missing), std::string::npos);
  EXPECT_EQ(open(missing, &out), FINCH_IO);
  EXPECT_EQ(open(folder.string(), &out), FINCH_IO);
  EXPECT_EQ(finch_index_save(index.get(), folder.string().c_str(), nullptr, 0), FINCH_IO) << "a folder is in the way";
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(finch_index_save(index.get(), "", nullptr, 0), FINCH_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
}

TEST_F(File, SavingReplacesInOneStep) {
  Index index(1);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  std::ifstream old(path, std::ios::binary);
  ASSERT_EQ(index.upsert({"a"}, {1}), FINCH_OK);
  ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
  const Bytes still(std::istreambuf_iterator<char>(old), {});
  EXPECT_NE(still, load(path));
  EXPECT_EQ(open_bytes(still), FINCH_OK) << "a reader of the old file has all of the old file";
}

TEST_F(File, EveryFlippedBitIsNoticed) {
  for (const finch_storage storage : {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_I8}) {
    every_flipped_bit_is_noticed(sample(storage));
  }
}

TEST_F(File, CodesRoundTrip) {
  for (const finch_storage storage : {FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8}) {
    for (const uint32_t map : {0u, 1u}) {
      Random random(7);
      constexpr uint32_t kDimension = 70;
      constexpr size_t kRows = 300;
      Index index(kDimension, storage);
      std::vector<std::string> ids;
      for (size_t i = 0; i < kRows; ++i) ids.push_back(std::to_string(i));
      ASSERT_EQ(index.upsert(ids, gaussian(random, kRows * kDimension)), FINCH_OK);
      ASSERT_EQ(index.remove({ids.begin() + 20, ids.begin() + 50}), FINCH_OK);
      ASSERT_EQ(index.upsert({"late"}, gaussian(random, kDimension)), FINCH_OK);
      ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
      const Bytes first = load(path);
      finch_open_options options{sizeof(options), map, 0};
      finch_index* handle = nullptr;
      ASSERT_EQ(finch_index_open(path.c_str(), &options, &handle), FINCH_OK) << finch_last_error();
      Index opened(handle);
      EXPECT_EQ(opened.info().storage, storage);
      const uint64_t bytes = (kRows - 29 + 63) / 64 * 64 * (storage == FINCH_STORAGE_I8 ? 128 : 192);
      if (map == 0) {
        EXPECT_EQ(opened.info().code_bytes, bytes);
      } else {
        const uint64_t part = bytes / ((kRows - 29 + 63) / 64);
        EXPECT_EQ(opened.info().code_bytes, part) << "the last chunk, which is not whole";
        EXPECT_EQ(opened.info().mapped_bytes, (kRows - 29) * kDimension * sizeof(float) + bytes - part);
      }
      const auto queries = gaussian(random, 5 * kDimension);
      EXPECT_EQ(Snapshot(index).search(queries, 5, 10), Snapshot(opened).search(queries, 5, 10));
      ASSERT_EQ(finch_index_save(opened.get(), path.c_str(), nullptr, 0), FINCH_OK);
      EXPECT_EQ(load(path), first) << "the codes as they were, not made anew";
      const auto fresh = gaussian(random, 2 * kDimension);
      ASSERT_EQ(index.upsert({"0", "1"}, fresh), FINCH_OK);
      ASSERT_EQ(opened.upsert({"0", "1"}, fresh), FINCH_OK);
      EXPECT_EQ(opened.info().code_bytes, map == 0 ? bytes : 2 * bytes / ((kRows - 29 + 63) / 64));
      EXPECT_EQ(Snapshot(index).search(queries, 5, 10), Snapshot(opened).search(queries, 5, 10));
      ASSERT_EQ(finch_index_save(opened.get(), path.c_str(), nullptr, 0), FINCH_OK);
      const Bytes of_opened = load(path);
      ASSERT_EQ(finch_index_save(index.get(), path.c_str(), nullptr, 0), FINCH_OK);
      EXPECT_EQ(load(path), of_opened);
    }
  }
}

TEST_F(File, HostileCodes) {
  const auto with = [&](finch_storage storage, size_t offset, auto value) {
    Bytes bad = sample(storage);
    std::memcpy(bad.data() + section(bad, format::kCodes).offset + offset, &value, sizeof(value));
    reseal(&bad);
    return open_bytes(bad);
  };
  EXPECT_EQ(with(FINCH_STORAGE_I8, 0, uint32_t{0}), FINCH_CORRUPT);
  EXPECT_EQ(with(FINCH_STORAGE_I8, 0, uint32_t{1}), FINCH_CORRUPT) << "no scales there";
  EXPECT_EQ(with(FINCH_STORAGE_I8, 0, uint32_t{4}), FINCH_CORRUPT);
  EXPECT_EQ(with(FINCH_STORAGE_I8, 4, uint32_t{128}), FINCH_CORRUPT);
  EXPECT_EQ(with(FINCH_STORAGE_I8, 8, uint32_t{1}), FINCH_CORRUPT) << "zeros that are none";
  EXPECT_EQ(with(FINCH_STORAGE_I8, 64 + 8 * 64, std::nanf("")), FINCH_CORRUPT) << "a scale";
  EXPECT_EQ(with(FINCH_STORAGE_I8, 64 + 8 * 64, 0.0f), FINCH_CORRUPT);
  EXPECT_EQ(with(FINCH_STORAGE_BF16, 64, uint16_t{0x7F80}), FINCH_CORRUPT) << "infinity";
  EXPECT_EQ(with(FINCH_STORAGE_BF16, 64 + 62, uint16_t{0x7FC0}), FINCH_CORRUPT) << "in the filling, too";
  EXPECT_EQ(with(FINCH_STORAGE_F16, 66, uint16_t{0xFC00}), FINCH_CORRUPT);
  EXPECT_EQ(with(FINCH_STORAGE_F16, 66, uint16_t{0x3C00}), FINCH_OK) << "wrong, and harmless";
}

void File::every_flipped_bit_is_noticed(const Bytes& good) {
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const finch_status expected = at >= 8 && at < 12 ? FINCH_VERSION : FINCH_CORRUPT;
      ASSERT_EQ(open_bytes(bad), expected) << "byte " << at << " bit " << bit;
    }
  }
  EXPECT_EQ(open_bytes(good), FINCH_OK);
}

TEST_F(File, EveryTruncationAndExtensionIsNoticed) {
  const Bytes good = sample();
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_EQ(open_bytes(Bytes(good.begin(), good.begin() + static_cast<long>(size))), FINCH_CORRUPT) << size;
  }
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_EQ(open_bytes(longer), FINCH_CORRUPT);
  Random random(9);
  for (int i = 0; i < 200; ++i) {
    Bytes noise(random() % 2000);
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 2 == 0 && noise.size() > 12) std::memcpy(noise.data(), good.data(), 12);
    ASSERT_EQ(open_bytes(noise), FINCH_CORRUPT);
  }
}

// Right checksums over wrong contents: must be refused or be harmless, never crash or allocate what it claims to need.
TEST_F(File, HostileFilesAreRefusedOrHarmless) {
  for (const finch_storage storage : {FINCH_STORAGE_F32, FINCH_STORAGE_F16, FINCH_STORAGE_I8}) {
    hostile_files_are_refused_or_harmless(sample(storage));
  }
}

// The same for a mapped open that verifies nothing of the vectors and codes: they may be any numbers.
void File::hostile_files_are_refused_or_harmless(const Bytes& good) {
  Random random(10);
  const auto try_bytes = [&](Bytes bytes) {
    reseal(&bytes);
    store(path, bytes);
    finch_index* index = nullptr;
    const finch_status status = open(path, &index);
    finch_open_options unverified{sizeof(unverified), 1, 1};
    finch_index* mapped = nullptr;
    EXPECT_TRUE(finch_index_open(path.c_str(), &unverified, &mapped) == FINCH_OK || status != FINCH_OK);
    EXPECT_TRUE(status == FINCH_OK || status == FINCH_CORRUPT || status == FINCH_VERSION) << status;
    for (finch_index* opened : {index, mapped}) {
      if (opened == nullptr) continue;
      Snapshot snapshot(opened);
      finch_index_info info{};
      info.size = sizeof(info);
      finch_index_inspect(opened, &info);
      const std::vector<float> query(info.dimension, 1.0f);
      snapshot.search(query, 1, 5, FINCH_SEARCH_AUTO);
      snapshot.search(query, 1, 1, FINCH_SEARCH_EXACT);
      snapshot.keys();
    }
    finch_index_release(mapped);
    finch_index_release(index);
    return status;
  };
  ASSERT_EQ(try_bytes(good), FINCH_OK);
  const uint32_t extremes[] = {0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 9, 100};
  for (size_t at = 12; at + 4 <= good.size(); at += 4) {
    for (const uint32_t value : extremes) {
      Bytes bad = good;
      std::memcpy(bad.data() + at, &value, sizeof(value));
      try_bytes(bad);
    }
  }
  for (int i = 0; i < 3000; ++i) {
    Bytes bad = good;
    for (int j = 0; j < 3; ++j) bad[12 + random() % (bad.size() - 12)] = static_cast<char>(random());
    try_bytes(bad);
  }
}

TEST_F(File, HostileContentsByName) {
  const Bytes good = sample();
  const auto with = [&](uint32_t kind, size_t offset, auto value) {
    Bytes bad = good;
    std::memcpy(bad.data() + section(good, kind).offset + offset, &value, sizeof(value));
    reseal(&bad);
    return open_bytes(bad);
  };
  EXPECT_EQ(with(format::kKeys, 0, uint64_t{0}), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kKeys, 8, uint64_t{1}), FINCH_CORRUPT) << "not ascending";
  EXPECT_EQ(with(format::kKeys, section(good, format::kKeys).size - 8, uint64_t{1} << 60), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kPriors, 0, 1.5f), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kPriors, 4, std::nanf("")), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kIdSizes, 0, uint32_t{0}), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kIdSizes, 0, uint32_t{0xFFFFFFFF}), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kIdBytes, 5, '2'), FINCH_CORRUPT) << "the same id twice";
  EXPECT_EQ(with(format::kVectors, 0, std::nanf("")), FINCH_CORRUPT);
  EXPECT_EQ(with(format::kVectors, 4, 7.0f), FINCH_CORRUPT) << "not of unit length";
  EXPECT_EQ(with(format::kAnn, 12, uint32_t{0xFFFFFFFF}), FINCH_CORRUPT) << "more entries than bytes";
  EXPECT_EQ(with(format::kAnn, 16, uint32_t{9}), FINCH_CORRUPT) << "an entry point that is no entry";
  EXPECT_EQ(with(format::kAnn, 32, uint32_t{8}), FINCH_CORRUPT) << "two entries for a row, or a row that is none";
  const uint64_t n = 9;
  EXPECT_EQ(with(format::kAnn, 32 + n * 4 + 12 + 4, uint32_t{9}), FINCH_CORRUPT) << "a link to nowhere";
  EXPECT_EQ(with(format::kAnn, 32 + n * 4 + 12, uint32_t{33}), FINCH_CORRUPT) << "more links than there is room for";
}

TEST_F(File, NewerFormatsAreToldApartFromDamage) {
  Bytes bytes = sample();
  const uint32_t version = 2;
  std::memcpy(bytes.data() + 8, &version, sizeof(version));
  EXPECT_EQ(open_bytes(bytes), FINCH_VERSION);
  EXPECT_NE(std::string(finch_last_error()).find("version 2"), std::string::npos);
}

// Files of the first release must open for ever.
TEST(Fixture, TheFirstFormatStillOpens) {
  finch_index* handle = nullptr;
  ASSERT_EQ(finch_index_open(TOOLFINCH_ROOT "/native/test/fixtures/index-v1.finch", nullptr, &handle), FINCH_OK)
      << finch_last_error();
  Index index(handle);
  EXPECT_EQ(index.info().count, 8u);
  EXPECT_EQ(index.info().dimension, 3u);
  EXPECT_EQ(index.info().ann_count, 9u);
  Snapshot snapshot(index);
  EXPECT_EQ(snapshot.keys(), (std::vector<uint64_t>{1, 3, 4, 6, 7, 8, 9, 10}));
  EXPECT_EQ(snapshot.find("late"), 10u);
  EXPECT_EQ(snapshot.find("tool 1"), FINCH_NO_KEY);
  const auto keys = snapshot.keys();
  std::vector<float> priors(keys.size()), vectors(keys.size() * 3);
  ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), keys.size(), nullptr, vectors.data(), priors.data()),
            FINCH_OK);
  EXPECT_EQ(priors, (std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.5f}));
  const std::vector<float> first(vectors.begin(), vectors.begin() + 3);
  const auto hits = snapshot.search(first, 1, 3);
  EXPECT_EQ(hits[0][0].key, 1u);
  EXPECT_NEAR(hits[0][0].score, 1.0f, 1e-6);
  const void* data = nullptr;
  size_t size = 0;
  ASSERT_EQ(finch_index_blob(handle, {"catalog", 7}, &data, &size), FINCH_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(data), size), std::string("{\"tools\":[]}\0", 13));
}

// Files with codes of the release that first wrote them.
TEST(Fixture, TheFirstFilesWithCodesStillOpen) {
  for (const auto& [name, storage] : {std::pair{"index-v1-bf16", FINCH_STORAGE_BF16},
                                      {"index-v1-f16", FINCH_STORAGE_F16},
                                      {"index-v1-i8", FINCH_STORAGE_I8}}) {
    for (const uint32_t map : {0u, 1u}) {
      finch_open_options options{sizeof(options), map, 0};
      finch_index* handle = nullptr;
      const std::string path = std::string(TOOLFINCH_ROOT "/native/test/fixtures/") + name + ".finch";
      ASSERT_EQ(finch_index_open(path.c_str(), &options, &handle), FINCH_OK) << finch_last_error();
      Index index(handle);
      EXPECT_EQ(index.info().storage, storage);
      EXPECT_EQ(index.info().count, 8u);
      EXPECT_EQ(index.info().ann_count, 9u);
      const Snapshot snapshot(index);
      const auto keys = snapshot.keys();
      EXPECT_EQ(keys, (std::vector<uint64_t>{1, 3, 4, 6, 7, 8, 9, 10}));
      std::vector<float> vectors(keys.size() * 3);
      ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), keys.size(), nullptr, vectors.data(), nullptr),
                FINCH_OK);
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto hits = snapshot.search(
            {vectors.begin() + static_cast<long>(3 * i), vectors.begin() + static_cast<long>(3 * i + 3)}, 1, 2);
        EXPECT_EQ(hits[0][0].key, keys[i]);
        EXPECT_NEAR(hits[0][0].score, 1.0f, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace finch_test
