// finch_index_save.
#include <algorithm>
#include <cstring>

#include "ann.hpp"
#include "disk.hpp"
#include "error.hpp"
#include "file_format.hpp"
#include "hash.hpp"
#include "index.hpp"

namespace finch {
namespace {

class SectionWriter {
 public:
  SectionWriter(OutputFile* file, size_t sections) : file_(file) {
    table_.reserve(sections);
    // The header and the table come last, when the checksums are known.
    const std::vector<char> room(sizeof(format::Header) + sections * sizeof(format::Section));
    file_->write(room.data(), room.size());
  }

  void begin(format::Kind kind) {
    static constexpr char zeros[format::kAlignment] = {};
    file_->write(zeros, static_cast<size_t>(format::align(file_->position()) - file_->position()));
    table_.push_back({kind, 0, file_->position(), 0, 0});
    sum_ = Checksum();
  }
  void add(const void* data, size_t size) {
    file_->write(data, size);
    sum_.add(data, size);
  }
  template <typename T>
  void add(const std::vector<T>& data) {
    add(data.data(), data.size() * sizeof(T));
  }
  void end() {
    table_.back().size = file_->position() - table_.back().offset;
    table_.back().checksum = sum_.value();
  }

  void finish(format::Header header) {
    header.file_bytes = file_->position();
    header.table_checksum = checksum(table_.data(), table_.size() * sizeof(format::Section));
    header.header_checksum = checksum(&header, offsetof(format::Header, header_checksum));
    file_->write_at(0, &header, sizeof(header));
    file_->write_at(sizeof(header), table_.data(), table_.size() * sizeof(format::Section));
  }

 private:
  OutputFile* file_;
  std::vector<format::Section> table_;
  Checksum sum_;
};

void write_ann(SectionWriter* out, const State& state, const std::vector<uint32_t>& row_of_slot) {
  const Ann& ann = *state.ann;
  const AnnLinks& links = ann.links();
  std::vector<uint32_t> rows(links.size);
  format::AnnHeader header{};
  for (uint32_t e = 0; e < links.size; ++e) {
    const uint32_t slot = ann.slot_in(state, e);
    rows[e] = slot == kNoSlot ? format::kStaleRow : row_of_slot[slot];
    header.stale += slot == kNoSlot;
  }
  header.connectivity = ann.config().connectivity;
  header.expansion_add = ann.config().expansion_add;
  header.expansion_search = ann.config().expansion_search;
  header.entries = links.size;
  header.entry = links.entry;
  header.top_level = links.top_level;
  out->begin(format::kAnn);
  out->add(&header, sizeof(header));
  out->add(rows);
  out->add(links.levels);
  static constexpr char zeros[4] = {};
  out->add(zeros, (4 - links.levels.size() % 4) % 4);
  out->add(links.base.data(), links.base.size() * sizeof(uint32_t));
  out->add(links.upper);
  for (uint32_t e = 0; e < links.size; ++e) {
    if (rows[e] == format::kStaleRow) out->add(ann.vector(e), state.dimension * sizeof(float));
  }
  out->end();
}

finch_status save(const State& state, const char* path, const finch_blob* blobs, size_t blob_count) {
  std::vector<std::pair<uint64_t, uint32_t>> rows;  // key, slot
  rows.reserve(state.count);
  for (size_t c = 0; c < state.rows.size(); ++c) {
    const RowChunk& chunk = *state.rows.get(c);
    for (size_t row = 0; row < RowChunk::kRows; ++row) {
      if (chunk.holds(row)) rows.emplace_back(chunk.keys[row], static_cast<uint32_t>(c * RowChunk::kRows + row));
    }
  }
  std::sort(rows.begin(), rows.end());
  std::vector<uint32_t> row_of_slot(state.slots, format::kStaleRow);
  for (size_t i = 0; i < rows.size(); ++i) row_of_slot[rows[i].second] = static_cast<uint32_t>(i);

  OutputFile file(path);
  format::Header header{};
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.version = format::kVersion;
  header.header_bytes = sizeof(header);
  header.dimension = state.dimension;
  header.sections = static_cast<uint32_t>(5 + (state.stride > 0) + (state.ann != nullptr) + blob_count);
  header.rows = rows.size();
  header.next_key = state.next_key;
  SectionWriter out(&file, header.sections);
  const auto section = [&](format::Kind kind, auto&& row_bytes) {
    out.begin(kind);
    for (const auto& [key, slot] : rows) row_bytes(state.chunk_of(slot), State::row_of(slot), slot);
    out.end();
  };
  section(format::kKeys, [&](const RowChunk& c, size_t r, uint32_t) { out.add(&c.keys[r], sizeof(uint64_t)); });
  section(format::kPriors, [&](const RowChunk& c, size_t r, uint32_t) { out.add(&c.priors[r], sizeof(float)); });
  section(format::kIdSizes, [&](const RowChunk& c, size_t r, uint32_t) {
    const uint32_t size = c.id_size[r];
    out.add(&size, sizeof(size));
  });
  section(format::kIdBytes, [&](const RowChunk& c, size_t r, uint32_t) { out.add(c.id(r).data(), c.id(r).size()); });
  section(format::kVectors, [&](const RowChunk&, size_t, uint32_t slot) {
    out.add(state.vector(slot), state.dimension * sizeof(float));
  });
  if (state.stride > 0) {
    out.begin(format::kCodes);
    format::CodesHeader codes{};
    codes.storage = static_cast<uint32_t>(state.storage);
    codes.stride = static_cast<uint32_t>(state.stride);
    out.add(&codes, sizeof(codes));
    const auto chunk_of = [&](uint32_t slot) { return state.codes.get(slot >> CodeChunk::kShift); };
    const auto row_of = [](uint32_t slot) { return slot & (CodeChunk::kRows - 1); };
    for (const auto& [key, slot] : rows) out.add(chunk_of(slot)->data + row_of(slot) * state.stride, state.stride);
    if (state.storage == FINCH_STORAGE_I8) {
      for (const auto& [key, slot] : rows) out.add(&chunk_of(slot)->scales[row_of(slot)], sizeof(float));
    }
    out.end();
  }
  if (state.ann != nullptr) write_ann(&out, state, row_of_slot);
  for (size_t i = 0; i < blob_count; ++i) {
    out.begin(format::kBlob);
    const auto name_size = static_cast<uint32_t>(blobs[i].name.size);
    out.add(&name_size, sizeof(name_size));
    out.add(blobs[i].name.data, name_size);
    out.add(blobs[i].data, blobs[i].size);
    out.end();
  }
  out.finish(header);
  return file.commit();
}

}  // namespace
}  // namespace finch

using finch::fail;

extern "C" finch_status finch_index_save(const finch_index* index, const char* path, const finch_blob* blobs,
                                         size_t count) {
  return finch::guarded([&]() -> finch_status {
    namespace format = finch::format;
    if (index == nullptr || path == nullptr) return fail(FINCH_INVALID_ARGUMENT, "index and path must not be NULL.");
    if (*path == '\0') return fail(FINCH_INVALID_ARGUMENT, "path is empty; give where to write the index file.");
    if (blobs == nullptr && count > 0) return fail(FINCH_INVALID_ARGUMENT, "blobs is NULL but count is %zu.", count);
    if (count > format::kMostBlobs) {
      return fail(FINCH_INVALID_ARGUMENT, "%zu blobs; an index file holds at most %u.", count, format::kMostBlobs);
    }
    for (size_t i = 0; i < count; ++i) {
      const finch_blob& blob = blobs[i];
      if (blob.name.data == nullptr || blob.name.size < 1 || blob.name.size > format::kMostBlobName) {
        return fail(FINCH_INVALID_ARGUMENT, "blobs[%zu].name is %zu bytes long; a name has 1 to %u bytes.", i,
                    blob.name.size, format::kMostBlobName);
      }
      if (blob.data == nullptr && blob.size > 0) {
        return fail(FINCH_INVALID_ARGUMENT, "blobs[%zu].data is NULL but its size is %zu.", i, blob.size);
      }
      for (size_t j = 0; j < i; ++j) {
        if (std::string_view(blobs[j].name.data, blobs[j].name.size) ==
            std::string_view(blob.name.data, blob.name.size)) {
          return fail(FINCH_INVALID_ARGUMENT, "blobs[%zu] and blobs[%zu] have the same name; names are unique.", j, i);
        }
      }
    }
    const finch::SnapshotRef snapshot = index->snapshot();
    return finch::save(snapshot.state(), path, blobs, count);
  });
}
