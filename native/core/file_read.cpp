// finch_index_open. Nothing in the file is believed: every number is checked against the file's true size before
// anything of that size is allocated, and every section against its checksum before it is used.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "ann.hpp"
#include "disk.hpp"
#include "error.hpp"
#include "file_format.hpp"
#include "hash.hpp"
#include "index.hpp"
#include "snapshot.hpp"

namespace finch {
namespace {

class Reader {
 public:
  explicit Reader(const char* path) : path_(path) {}

  finch_status open() {
    if (const finch_status status = file_.open(path_)) return status;
    if (file_.size() < sizeof(header_)) return corrupt("it is shorter than a header");
    if (!file_.read_at(0, &header_, sizeof(header_))) return unreadable();
    if (std::memcmp(header_.magic, format::kMagic, sizeof(header_.magic)) != 0) return corrupt("it is no index file");
    if (header_.version != format::kVersion) {
      return fail(FINCH_VERSION,
                  "\"%.400s\" has format version %u; this build reads version %u. Use the release that wrote it.",
                  path_, header_.version, format::kVersion);
    }
    if (checksum(&header_, offsetof(format::Header, header_checksum)) != header_.header_checksum) {
      return corrupt("its header fails its checksum");
    }
    if (header_.header_bytes != sizeof(header_) || header_.file_bytes != file_.size())
      return corrupt("its size is wrong");
    if (header_.dimension < 1 || header_.dimension > FINCH_MAX_DIMENSION || header_.rows > kMostRows ||
        header_.next_key < 1 || header_.next_key > kLastKey + 1 || header_.sections > format::kMostSections) {
      return corrupt("its header is out of range");
    }
    return read_table();
  }

  finch_status read_index(std::unique_ptr<finch_index>* out) {
    State state(header_.dimension, next_index_id());
    if (const finch_status status = read_rows(&state)) return status;
    if (const finch_status status = read_vectors(&state)) return status;
    if (find(format::kAnn) != nullptr) {
      if (const finch_status status = read_ann(&state)) return status;
    }
    auto index = std::make_unique<finch_index>(std::move(state));
    for (const format::Section& section : table_) {
      if (section.kind == format::kBlob) {
        if (const finch_status status = read_blob(section, index.get())) return status;
      } else if (!known(section.kind)) {
        std::vector<char> ignored;
        if (const finch_status status = read(section, &ignored)) return status;
      }
    }
    *out = std::move(index);
    return FINCH_OK;
  }

 private:
  finch_status corrupt(const char* why) const {
    return fail(FINCH_CORRUPT, "\"%.400s\" is damaged: %s. Restore it from a copy or build the index anew.", path_,
                why);
  }

  // A file that shrinks while it is read is damaged; a disk that fails is not the file's fault.
  finch_status unreadable() const {
    if (file_.error() == 0) return corrupt("it ends too early");
    return fail(FINCH_IO, "cannot read \"%.400s\": %s.", path_, std::strerror(file_.error()));
  }

  static bool known(uint32_t kind) { return (kind >= format::kKeys && kind <= format::kAnn) || kind == format::kBlob; }

  const format::Section* find(format::Kind kind) const {
    const auto at =
        std::find_if(table_.begin(), table_.end(), [&](const format::Section& s) { return s.kind == kind; });
    return at == table_.end() ? nullptr : &*at;
  }

  finch_status read_table() {
    const uint64_t table_bytes = header_.sections * sizeof(format::Section);
    if (table_bytes > file_.size() - sizeof(header_)) return corrupt("its table of sections is cut off");
    table_.resize(header_.sections);
    if (!file_.read_at(sizeof(header_), table_.data(), table_bytes)) return unreadable();
    if (checksum(table_.data(), table_bytes) != header_.table_checksum) {
      return corrupt("its table of sections fails its checksum");
    }
    // Sections follow one another with nothing but zeros between them, up to the end of the file.
    uint64_t end = sizeof(header_) + table_bytes;
    for (const format::Section& section : table_) {
      if (section.flags != 0 || section.offset != format::align(end) || section.offset > file_.size() ||
          section.size > file_.size() - section.offset) {
        return corrupt("its table of sections makes no sense");
      }
      char gap[format::kAlignment];
      const auto gap_bytes = static_cast<size_t>(section.offset - end);
      if (!file_.read_at(end, gap, gap_bytes)) return unreadable();
      if (std::any_of(gap, gap + gap_bytes, [](char c) { return c != 0; }))
        return corrupt("there are bytes between sections");
      end = section.offset + section.size;
    }
    if (end != file_.size()) return corrupt("there are bytes after the last section");
    for (const format::Kind kind :
         {format::kKeys, format::kPriors, format::kIdSizes, format::kIdBytes, format::kVectors, format::kAnn}) {
      const auto same = [&](const format::Section& s) { return s.kind == kind; };
      const auto count = std::count_if(table_.begin(), table_.end(), same);
      if (count > 1 || (count == 0 && kind != format::kAnn)) return corrupt("a section is missing or there twice");
    }
    const uint64_t n = header_.rows;
    if (find(format::kKeys)->size != n * sizeof(uint64_t) || find(format::kPriors)->size != n * sizeof(float) ||
        find(format::kIdSizes)->size != n * sizeof(uint32_t) ||
        find(format::kVectors)->size != n * header_.dimension * sizeof(float)) {
      return corrupt("a section's size does not fit the number of rows");
    }
    return FINCH_OK;
  }

  // A whole section, of a size already checked against the file's.
  template <typename T>
  finch_status read(const format::Section& section, std::vector<T>* out) {
    out->resize(static_cast<size_t>(section.size / sizeof(T)));
    if (!file_.read_at(section.offset, out->data(), static_cast<size_t>(section.size))) return unreadable();
    if (checksum(out->data(), static_cast<size_t>(section.size)) != section.checksum) {
      return corrupt("a section fails its checksum");
    }
    return FINCH_OK;
  }

  finch_status read_rows(State* state) {
    std::vector<uint64_t> keys;
    std::vector<float> priors;
    std::vector<uint32_t> id_sizes;
    std::vector<char> ids;
    if (const finch_status status = read(*find(format::kKeys), &keys)) return status;
    if (const finch_status status = read(*find(format::kPriors), &priors)) return status;
    if (const finch_status status = read(*find(format::kIdSizes), &id_sizes)) return status;
    if (const finch_status status = read(*find(format::kIdBytes), &ids)) return status;
    const uint64_t edit = next_edit();
    state->resize(header_.rows, edit);
    uint64_t last_key = FINCH_NO_KEY;
    size_t offset = 0;
    for (uint32_t slot = 0; slot < header_.rows; ++slot) {
      if (keys[slot] <= last_key || keys[slot] >= header_.next_key) return corrupt("its keys are out of order");
      last_key = keys[slot];
      if (!(priors[slot] >= 0.0f && priors[slot] <= 1.0f)) return corrupt("a prior is outside [0, 1]");
      const uint32_t size = id_sizes[slot];
      if (size < 1 || size > FINCH_MAX_ID_BYTES || size > ids.size() - offset) return corrupt("an id's size is wrong");
      const std::string_view id(ids.data() + offset, size);
      offset += size;
      const uint64_t hash = hash_id(id);
      if (state->find_id(id, hash) != kNoSlot) return corrupt("an id is there twice");
      state->place(slot, keys[slot], id, hash, priors[slot], edit);
    }
    if (offset != ids.size()) return corrupt("there are more bytes of ids than ids");
    state->next_key = header_.next_key;
    return FINCH_OK;
  }

  static bool is_unit(const float* vector, size_t dimension) {
    double sum = 0;
    for (size_t i = 0; i < dimension; ++i) sum += static_cast<double>(vector[i]) * static_cast<double>(vector[i]);
    return std::abs(sum - 1.0) < 1e-3;  // false for NaN and infinity
  }

  finch_status read_vectors(State* state) {
    const format::Section& section = *find(format::kVectors);
    const uint64_t edit = next_edit();
    const size_t d = header_.dimension;
    const uint64_t chunk_rows = uint64_t{1} << state->chunk_shift;
    Checksum sum;
    uint64_t offset = section.offset;
    for (uint64_t slot = 0; slot < header_.rows; slot += chunk_rows) {
      const auto rows = static_cast<size_t>(std::min(chunk_rows, header_.rows - slot));
      float* first = state->edit_vector(static_cast<uint32_t>(slot), edit, header_.rows);
      state->edit_vector(static_cast<uint32_t>(slot + rows - 1), edit, header_.rows);
      const size_t bytes = rows * d * sizeof(float);
      if (!file_.read_at(offset, first, bytes)) return unreadable();
      offset += bytes;
      sum.add(first, bytes);
      for (size_t row = 0; row < rows; ++row) {
        if (!is_unit(first + row * d, d)) return corrupt("a vector is not of unit length");
      }
    }
    if (sum.value() != section.checksum) return corrupt("a section fails its checksum");
    return FINCH_OK;
  }

  finch_status read_ann(State* state) {
    const format::Section& section = *find(format::kAnn);
    if (section.size < sizeof(format::AnnHeader) || section.size % sizeof(uint32_t) != 0) {
      return corrupt("the graph is cut off");
    }
    std::vector<uint32_t> words;
    if (const finch_status status = read(section, &words)) return status;
    format::AnnHeader header;
    std::memcpy(&header, words.data(), sizeof(header));
    AnnConfig config{header.connectivity, header.expansion_add, header.expansion_search};
    if (config.connectivity < 2 || config.connectivity > AnnConfig::kMostConnectivity || config.expansion_add < 1 ||
        config.expansion_add > AnnConfig::kMostExpansion || config.expansion_search < 1 ||
        config.expansion_search > AnnConfig::kMostExpansion || header.reserved != 0 || header.stale > header.entries ||
        header.entries - header.stale > header_.rows) {
      return corrupt("the graph's header is out of range");
    }
    // Every entry has a reference, a level and base links: so much must be there before room is made for it.
    const uint64_t entries = header.entries;
    const uint64_t level_words = (entries + 3) / 4;
    uint64_t left = words.size() - sizeof(header) / sizeof(uint32_t);
    const uint64_t fixed = entries + level_words + entries * (2 * uint64_t{config.connectivity} + 1) +
                           header.stale * uint64_t{header_.dimension};
    if (left < fixed) return corrupt("the graph is cut off");
    left -= fixed;

    const uint32_t* next = words.data() + sizeof(header) / sizeof(uint32_t);
    AnnLinks links;
    links.size = header.entries;
    links.entry = header.entry;
    links.top_level = header.top_level;
    std::vector<uint32_t> slots(next, next + entries);  // rows are in the order of slots
    next += entries;
    links.levels.resize(entries);
    if (entries > 0) std::memcpy(links.levels.data(), next, entries);
    const auto* filling = reinterpret_cast<const unsigned char*>(next) + entries;
    if (std::any_of(filling, filling + (level_words * 4 - entries), [](unsigned char c) { return c != 0; })) {
      return corrupt("the graph's levels are wrong");
    }
    next += level_words;
    uint64_t upper_words = 0;
    for (const uint8_t level : links.levels) upper_words += uint64_t{level} * (config.connectivity + 1);
    if (left != upper_words) return corrupt("the graph's levels are wrong");
    links.lay_out(config.connectivity);
    std::copy_n(next, links.base.size(), links.base.begin());
    next += links.base.size();
    std::copy_n(next, links.upper.size(), links.upper.begin());
    next += links.upper.size();
    if (!links.sound(config.connectivity)) return corrupt("the graph's links lead nowhere");

    std::vector<bool> covered(header_.rows);
    uint32_t stale = 0;
    for (uint32_t& slot : slots) {
      if (slot == format::kStaleRow) {
        ++stale;
        slot = kNoSlot;
      } else if (slot >= header_.rows || covered[slot]) {
        return corrupt("the graph's entries are no rows");
      } else {
        covered[slot] = true;
      }
    }
    if (stale != header.stale) return corrupt("the graph's entries are no rows");
    const size_t d = header_.dimension;
    std::unique_ptr<float[], VectorChunk::Free> vectors;
    if (stale > 0) {
      vectors.reset(static_cast<float*>(::operator new[](stale* d * sizeof(float), std::align_val_t{64})));
      std::memcpy(vectors.get(), next, stale * d * sizeof(float));
      for (uint32_t i = 0; i < stale; ++i) {
        if (!is_unit(vectors.get() + i * d, d)) return corrupt("a vector is not of unit length");
      }
    }

    // Covered rows get a stamp from before the graph, the others one from after it.
    const uint64_t edit = next_edit();
    const uint64_t before = state->version;
    const uint64_t after = ++state->version;
    auto fresh = std::make_shared<std::vector<Fresh>>();
    for (uint32_t slot = 0; slot < header_.rows; ++slot) {
      state->edit_rows(slot, edit).stamps[State::row_of(slot)] = covered[slot] ? before : after;
      if (!covered[slot]) fresh->push_back({after, slot});
    }
    state->ann = AnnBuilder::restore(*state, config, std::move(links), std::move(slots), std::move(vectors), before);
    if (!fresh->empty()) state->fresh = std::move(fresh);
    return FINCH_OK;
  }

  finch_status read_blob(const format::Section& section, finch_index* index) {
    std::vector<char> bytes;
    if (const finch_status status = read(section, &bytes)) return status;
    uint32_t name_size = 0;
    if (bytes.size() < sizeof(name_size)) return corrupt("a blob is cut off");
    std::memcpy(&name_size, bytes.data(), sizeof(name_size));
    if (name_size < 1 || name_size > format::kMostBlobName || name_size > bytes.size() - sizeof(name_size)) {
      return corrupt("a blob's name is wrong");
    }
    const char* name = bytes.data() + sizeof(name_size);
    Blob blob{std::string(name, name_size), {}};
    bytes.erase(bytes.begin(), bytes.begin() + sizeof(name_size) + name_size);
    blob.data = std::move(bytes);
    for (const Blob& other : index->blobs) {
      if (other.name == blob.name) return corrupt("a blob is there twice");
    }
    index->blobs.push_back(std::move(blob));
    return FINCH_OK;
  }

  const char* path_;
  InputFile file_;
  format::Header header_;
  std::vector<format::Section> table_;
};

}  // namespace
}  // namespace finch

extern "C" finch_status finch_index_open(const char* path, finch_index** out) {
  return finch::guarded([&]() -> finch_status {
    if (path == nullptr || out == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "path and out must not be NULL.");
    finch::Reader reader(path);
    if (const finch_status status = reader.open()) return status;
    std::unique_ptr<finch_index> index;
    if (const finch_status status = reader.read_index(&index)) return status;
    *out = index.release();
    return FINCH_OK;
  });
}
