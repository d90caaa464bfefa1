// finch_index_open on damaged files, and everything an index that opened must then be able to do. The mutator makes
// sizes and checksums right again, so that what lies behind them is reached.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/file_format.hpp"
#include "core/hash.hpp"
#include "input.hpp"

using finch_fuzz::checked;
namespace format = finch::format;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

struct Rows {
  std::vector<uint64_t> keys;
  std::vector<std::string> ids;
  std::vector<float> vectors;
  std::vector<float> priors;
  bool operator==(const Rows&) const = default;
};

Rows rows_of(const finch_snapshot* snapshot, uint32_t d) {
  Rows rows;
  size_t n = 0;
  FUZZ_CHECK(finch_snapshot_keys(snapshot, nullptr, 0, &n) == FINCH_OK);
  rows.keys.resize(n);
  FUZZ_CHECK(finch_snapshot_keys(snapshot, rows.keys.data(), n, &n) == FINCH_OK && n == rows.keys.size());
  FUZZ_CHECK(std::is_sorted(rows.keys.begin(), rows.keys.end()));
  std::vector<finch_string> ids(n);
  rows.vectors.resize(n * d);
  rows.priors.resize(n);
  FUZZ_CHECK(finch_snapshot_rows(snapshot, rows.keys.data(), n, ids.data(), rows.vectors.data(), rows.priors.data()) ==
             FINCH_OK);
  for (const finch_string& id : ids) rows.ids.emplace_back(id.data, id.size);
  std::vector<uint64_t> found(n);
  FUZZ_CHECK(finch_snapshot_find(snapshot, ids.data(), n, found.data()) == FINCH_OK && found == rows.keys);
  return rows;
}

void search(const finch_snapshot* snapshot, uint32_t d, uint64_t n, int32_t mode) {
  std::vector<float> queries(2 * size_t{d});
  for (size_t i = 0; i < queries.size(); ++i) queries[i] = static_cast<float>((i * 7 + 3) % 11) - 4.5f;
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = 10;
  options.mode = mode;
  uint64_t keys[20];
  float scores[20];
  uint32_t counts[2];
  FUZZ_CHECK(checked(finch_search(snapshot, queries.data(), 2, &options, keys, scores, counts)) == FINCH_OK);
  for (size_t q = 0; q < 2; ++q) {
    FUZZ_CHECK(counts[q] == std::min<uint64_t>(10, n), "%u of %llu rows", counts[q],
               static_cast<unsigned long long>(n));
    for (uint32_t i = 0; i < counts[q]; ++i) {
      const size_t at = q * 10 + i;
      FUZZ_CHECK(std::fabs(scores[at]) <= 1.002f, "score %g", static_cast<double>(scores[at]));
      if (i == 0) continue;
      FUZZ_CHECK(scores[at - 1] > scores[at] || (scores[at - 1] == scores[at] && keys[at - 1] < keys[at]), "order");
    }
  }
}

// Vectors that nobody verified may be anything: what is asked of such an index is that it does no harm.
void use_unverified(finch_index* index) {
  finch_index_info info{};
  info.size = sizeof(info);
  FUZZ_CHECK(finch_index_inspect(index, &info) == FINCH_OK);
  finch_snapshot* snapshot = nullptr;
  FUZZ_CHECK(finch_index_snapshot(index, &snapshot) == FINCH_OK);
  std::vector<float> query(info.dimension, 1.0f);
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = 5;
  uint64_t keys[5];
  float scores[5];
  uint32_t found = 0;
  checked(finch_search(snapshot, query.data(), 1, &options, keys, scores, &found));
  options.mode = FINCH_SEARCH_EXACT;
  checked(finch_search(snapshot, query.data(), 1, &options, keys, scores, &found));
  const finch_string id{"new", 3};
  checked(finch_index_upsert(index, &id, query.data(), 1, nullptr, nullptr));
  checked(finch_search(snapshot, query.data(), 1, &options, keys, scores, &found));
  finch_snapshot_release(snapshot);
}

void use(finch_index* index) {
  finch_index_info info{};
  info.size = sizeof(info);
  FUZZ_CHECK(finch_index_inspect(index, &info) == FINCH_OK);
  const uint32_t d = info.dimension;
  finch_snapshot* snapshot = nullptr;
  FUZZ_CHECK(finch_index_snapshot(index, &snapshot) == FINCH_OK);
  FUZZ_CHECK(finch_snapshot_count(snapshot) == info.count);
  const Rows rows = rows_of(snapshot, d);
  search(snapshot, d, info.count, FINCH_SEARCH_EXACT);
  search(snapshot, d, info.count, FINCH_SEARCH_AUTO);

  // Written and opened again it is the same.
  const std::string path = finch_fuzz::scratch() + "/again.finch";
  const finch_blob blob{{"note", 4}, "abc", 3};
  FUZZ_CHECK(checked(finch_index_save(index, path.c_str(), &blob, 1)) == FINCH_OK);
  finch_index* again = nullptr;
  FUZZ_CHECK(checked(finch_index_open(path.c_str(), nullptr, &again)) == FINCH_OK, "what it saved does not open");
  const void* data = nullptr;
  size_t size = 0;
  FUZZ_CHECK(finch_index_blob(again, {"note", 4}, &data, &size) == FINCH_OK && size == 3 &&
             std::memcmp(data, "abc", 3) == 0);
  finch_snapshot* second = nullptr;
  FUZZ_CHECK(finch_index_snapshot(again, &second) == FINCH_OK);
  FUZZ_CHECK(rows_of(second, d) == rows, "saved and opened again, the rows differ");
  search(second, d, info.count, FINCH_SEARCH_AUTO);
  finch_snapshot_release(second);
  finch_index_release(again);

  // And it can be changed; the graph, if there is one, is kept up.
  std::vector<float> vector(2 * size_t{d}, 0.5f);
  for (uint32_t i = 0; i < d; ++i) vector[i] = static_cast<float>(i % 3) - 0.75f;
  std::vector<std::string> names{"\x01new"};
  if (!rows.ids.empty()) names.push_back(rows.ids.front());
  std::vector<finch_string> ids;
  for (const std::string& name : names) ids.push_back({name.data(), name.size()});
  const bool there = std::find(rows.ids.begin(), rows.ids.end(), names[0]) != rows.ids.end();
  const bool twice = names.size() == 2 && names[0] == names[1];
  const finch_status status =
      checked(finch_index_upsert(index, ids.data(), vector.data(), twice ? 1 : ids.size(), nullptr, nullptr));
  FUZZ_CHECK(status == FINCH_OK || status == FINCH_INVALID_ARGUMENT, "status %d", status);  // out of keys
  uint64_t count = info.count + (status == FINCH_OK && !there);
  if (!rows.ids.empty()) {
    FUZZ_CHECK(finch_index_remove(index, &ids.back(), 1) == FINCH_OK);
    --count;
  }
  finch_snapshot* changed = nullptr;
  FUZZ_CHECK(finch_index_snapshot(index, &changed) == FINCH_OK);
  FUZZ_CHECK(finch_snapshot_count(changed) == count);
  search(changed, d, count, FINCH_SEARCH_AUTO);
  finch_snapshot_release(changed);
  FUZZ_CHECK(rows_of(snapshot, d) == rows, "a snapshot changed");
  finch_snapshot_release(snapshot);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = finch_fuzz::put_file("input.finch", data, size);
  finch_index* const nothing = reinterpret_cast<finch_index*>(uintptr_t{0x5A5A});
  finch_status read = FINCH_OK;
  for (uint32_t way = 0; way < 3; ++way) {  // read into memory, mapped, mapped unverified
    const finch_open_options options{sizeof(options), way > 0, way > 1};
    finch_index* index = nothing;
    const finch_status status = checked(finch_index_open(path.c_str(), way == 0 ? nullptr : &options, &index));
    if (status != FINCH_OK) {
      FUZZ_CHECK(index == nothing, "a failed open set its output");
      FUZZ_CHECK(status == FINCH_CORRUPT || status == FINCH_VERSION || status == FINCH_NO_MEMORY, "status %d", status);
    }
    if (way == 0) read = status;
    if (way == 1) FUZZ_CHECK(status == read, "read: %d, mapped: %d", read, status);
    if (way == 2 && read == FINCH_OK) FUZZ_CHECK(status == FINCH_OK, "verified, but not unverified: %d", status);
    if (status != FINCH_OK) continue;
    if (way < 2) {
      use(index);
    } else {
      use_unverified(index);
    }
    finch_index_release(index);
  }
  return 0;
}

#if defined(FINCH_LIBFUZZER)
namespace {

// Sizes and checksums as the present bytes want them; what cannot be mended stays as it is.
void mend(uint8_t* data, size_t size) {
  if (size < sizeof(format::Header)) return;
  format::Header header;
  std::memcpy(&header, data, sizeof(header));
  header.file_bytes = size;
  const uint64_t table_bytes = uint64_t{header.sections} * sizeof(format::Section);
  if (table_bytes <= size - sizeof(header)) {
    for (uint32_t i = 0; i < header.sections; ++i) {
      uint8_t* at = data + sizeof(header) + i * sizeof(format::Section);
      format::Section section;
      std::memcpy(&section, at, sizeof(section));
      if (section.offset > size || section.size > size - section.offset) continue;
      section.checksum = finch::checksum(data + section.offset, section.size);
      std::memcpy(at, &section, sizeof(section));
    }
    header.table_checksum = finch::checksum(data + sizeof(header), table_bytes);
  }
  header.header_checksum = finch::checksum(&header, offsetof(format::Header, header_checksum));
  std::memcpy(data, &header, sizeof(header));
}

// One section grown or shrunk by up to 64 bytes, with everything after it moved and described anew.
size_t resize_section(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  format::Header header;
  if (size < sizeof(header)) return size;
  std::memcpy(&header, data, sizeof(header));
  if (header.sections == 0 || header.sections > 64) return size;
  std::vector<format::Section> table(header.sections);
  const size_t table_bytes = table.size() * sizeof(format::Section);
  if (size < sizeof(header) + table_bytes) return size;
  std::memcpy(table.data(), data + sizeof(header), table_bytes);
  std::vector<std::vector<uint8_t>> contents;
  for (const format::Section& section : table) {
    if (section.offset > size || section.size > size - section.offset) return size;
    contents.emplace_back(data + section.offset, data + section.offset + section.size);
  }
  const size_t chosen = seed % table.size();
  std::vector<uint8_t>& content = contents[chosen];
  switch (seed / 64 % 4) {
    case 0:
      content.resize(content.size() + 1 + seed / 256 % 64, static_cast<uint8_t>(seed));
      break;
    case 1:
      content.resize(content.size() - std::min<size_t>(content.size(), 1 + seed / 256 % 64));
      break;
    case 2:
      table[chosen].kind = seed / 256 % 20;
      break;
    default: {  // a section more
      table.push_back(table[chosen]);
      contents.push_back(contents[chosen]);
    }
  }
  std::vector<uint8_t> out(sizeof(header) + table.size() * sizeof(format::Section));
  for (size_t i = 0; i < table.size(); ++i) {
    out.resize(format::align(out.size()));
    table[i].offset = out.size();
    table[i].size = contents[i].size();
    out.insert(out.end(), contents[i].begin(), contents[i].end());
  }
  header.sections = static_cast<uint32_t>(table.size());
  std::memcpy(out.data(), &header, sizeof(header));
  std::memcpy(out.data() + sizeof(header), table.data(), table.size() * sizeof(format::Section));
  if (out.size() > max_size) return size;
  std::copy(out.begin(), out.end(), data);
  return out.size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const unsigned what = seed % 8;
  seed /= 8;
  if (what == 0 || size < 128) {
    size = LLVMFuzzerMutate(data, size, max_size);
  } else if (what == 1) {
    size = resize_section(data, size, max_size, seed);
  } else {  // inside one field, so that the layout stays
    const size_t width = size_t{1} << (seed % 4);
    // As often in header and table as in all the rest.
    const size_t end = what < 5 ? std::min<size_t>(size, 64 + 7 * 32) : size;
    const size_t at = 8 + seed / 4 % (end - 8 - width + 1);
    LLVMFuzzerMutate(data + at / width * width, width, width);
  }
  if (seed % 17 != 0) mend(data, size);
  return size;
}
#endif
