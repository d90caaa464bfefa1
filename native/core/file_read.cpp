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
#include "sized.hpp"
#include "snapshot.hpp"

namespace finch {
namespace {

class Reader {
 public:
  Reader(const char* path, const finch_open_options& options)
      : path_(path), map_(options.map != 0), verify_(options.unverified == 0) {}

  finch_status open() {
    if (const finch_status status = file_.open(path_)) return status;
    if (file_.size() < sizeof(header_)) return corrupt("it is shorter than a header");
    if (file_.size() > SIZE_MAX / 2) return fail(FINCH_NO_MEMORY, "\"%.400s\" is larger than the memory.", path_);
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
    State state(header_.dimension, storage_, next_index_id());
    if (map_) {
      if (const finch_status status = file_.map(path_, &mapping_)) return status;
    }
    if (const finch_status status = read_rows(&state)) return status;
    if (const finch_status status = map_ ? map_vectors(&state) : read_vectors(&state)) return status;
    if (storage_ != FINCH_STORAGE_F32) {
      if (const finch_status status = read_codes(&state)) return status;
    }
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

  static bool known(uint32_t kind) {
    return (kind >= format::kKeys && kind <= format::kCodes) || kind == format::kBlob;
  }

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
    for (const format::Kind kind : {format::kKeys, format::kPriors, format::kIdSizes, format::kIdBytes,
                                    format::kVectors, format::kAnn, format::kCodes}) {
      const auto same = [&](const format::Section& s) { return s.kind == kind; };
      const auto count = std::count_if(table_.begin(), table_.end(), same);
      const bool optional = kind == format::kAnn || kind == format::kCodes;
      if (count > 1 || (count == 0 && !optional)) return corrupt("a section is missing or there twice");
    }
    const uint64_t n = header_.rows;
    if (find(format::kKeys)->size != n * sizeof(uint64_t) || find(format::kPriors)->size != n * sizeof(float) ||
        find(format::kIdSizes)->size != n * sizeof(uint32_t) ||
        find(format::kVectors)->size != n * header_.dimension * sizeof(float)) {
      return corrupt("a section's size does not fit the number of rows");
    }
    return read_storage();
  }

  // Which codes there are: of what kind the index is depends on it. None: float32.
  finch_status read_storage() {
    const format::Section* section = find(format::kCodes);
    if (section == nullptr) return FINCH_OK;
    format::CodesHeader codes;
    if (section->size < sizeof(codes)) return corrupt("the codes are cut off");
    if (!file_.read_at(section->offset, &codes, sizeof(codes))) return unreadable();
    if (codes.storage < FINCH_STORAGE_BF16 || codes.storage > FINCH_STORAGE_I8) {
      return corrupt("its storage is none that there is");
    }
    storage_ = static_cast<finch_storage>(codes.storage);
    const size_t stride = code_stride(storage_, header_.dimension);
    const uint64_t row_bytes = stride + (storage_ == FINCH_STORAGE_I8 ? sizeof(float) : 0);
    if (codes.stride != stride || section->size != sizeof(codes) + header_.rows * row_bytes ||
        std::any_of(std::begin(codes.zeros), std::end(codes.zeros), [](unsigned char c) { return c != 0; })) {
      return corrupt("the codes do not fit the rows");
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
    // Sums that do not wait for one another.
    constexpr size_t kSums = 8;
    double sums[kSums] = {};
    size_t i = 0;
    for (; i + kSums <= dimension; i += kSums) {
      for (size_t j = 0; j < kSums; ++j) {
        const double x = vector[i + j];
        sums[j] += x * x;
      }
    }
    double sum = 0;
    for (; i < dimension; ++i) sum += static_cast<double>(vector[i]) * static_cast<double>(vector[i]);
    for (const double part : sums) sum += part;
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

  finch_status map_vectors(State* state) {
    const format::Section& section = *find(format::kVectors);
    const uint64_t edit = next_edit();
    const size_t d = header_.dimension;
    const uint64_t chunk_rows = uint64_t{1} << state->chunk_shift;
    const auto* vectors = reinterpret_cast<const float*>(mapping_->data() + section.offset);  // both are aligned
    Checksum sum;
    for (uint64_t slot = 0; slot < header_.rows; slot += chunk_rows) {
      const auto rows = static_cast<size_t>(std::min(chunk_rows, header_.rows - slot));
      const float* first = vectors + static_cast<size_t>(slot) * d;
      state->borrow_vectors(static_cast<size_t>(slot >> state->chunk_shift), first, rows, mapping_, edit);
      if (!verify_) continue;
      sum.add(first, rows * d * sizeof(float));
      for (size_t row = 0; row < rows; ++row) {
        if (!is_unit(first + row * d, d)) return corrupt("a vector is not of unit length");
      }
    }
    if (verify_ && sum.value() != section.checksum) return corrupt("a section fails its checksum");
    return FINCH_OK;
  }

  // Infinity and NaN would spread through the scan; whole numbers cannot be either.
  bool finite(const uint8_t* codes, size_t stride) const {
    if (storage_ == FINCH_STORAGE_I8) return true;
    const uint16_t exponent = storage_ == FINCH_STORAGE_BF16 ? 0x7F80 : 0x7C00;
    bool all = true;
    for (size_t at = 0; at < stride; at += sizeof(uint16_t)) {
      uint16_t code;
      std::memcpy(&code, codes + at, sizeof(code));
      all &= (code & exponent) != exponent;
    }
    return all;
  }

  finch_status read_codes(State* state) {
    const format::Section& section = *find(format::kCodes);
    const uint64_t edit = next_edit();
    const size_t stride = state->stride;
    const uint64_t codes_at = section.offset + sizeof(format::CodesHeader);
    const auto together = static_cast<size_t>(header_.rows * stride);
    std::vector<float> scales(static_cast<size_t>(header_.rows), 1.0f);
    const size_t scale_bytes = storage_ == FINCH_STORAGE_I8 ? scales.size() * sizeof(float) : 0;
    if (!file_.read_at(codes_at + header_.rows * stride, scales.data(), scale_bytes)) return unreadable();
    for (const float scale : scales) {
      if (!(scale > 0 && scale <= 1)) return corrupt("a scale of the codes is out of range");
    }
    Checksum sum;
    format::CodesHeader header;
    if (!file_.read_at(section.offset, &header, sizeof(header))) return unreadable();
    sum.add(&header, sizeof(header));
    for (uint64_t slot = 0; slot < header_.rows; slot += CodeChunk::kRows) {
      const auto rows = static_cast<size_t>(std::min<uint64_t>(CodeChunk::kRows, header_.rows - slot));
      const uint64_t at = codes_at + slot * stride;
      const bool borrow = map_ && rows == CodeChunk::kRows;  // a chunk is always whole: its copies are
      CodeChunk& chunk = state->codes.edit(
          static_cast<size_t>(slot >> CodeChunk::kShift), edit,
          [&](const CodeChunk& old) { return CodeChunk::copy(old, stride, together); },
          [&] {
            if (!borrow) return CodeChunk::make(storage_, stride, together);
            auto borrowed = std::make_shared<CodeChunk>();
            borrowed->data = mapping_->data() + at;
            borrowed->owner = mapping_;
            return borrowed;
          });
      (borrow ? state->mapped_bytes : state->code_bytes) += CodeChunk::kRows * stride;
      std::copy_n(scales.begin() + static_cast<ptrdiff_t>(slot), rows, chunk.scales);
      if (!borrow && !file_.read_at(at, chunk.own.get(), rows * stride)) return unreadable();
      if (!verify_) continue;
      sum.add(chunk.data, rows * stride);
      for (size_t row = 0; row < rows; ++row) {
        if (!finite(chunk.data + row * stride, stride)) return corrupt("a code is not finite");
      }
    }
    sum.add(scales.data(), scale_bytes);
    if (verify_ && sum.value() != section.checksum) return corrupt("a section fails its checksum");
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
    Piece<float> vectors;
    if (stale > 0) {
      vectors = make_piece<float>(stale * d, 0);
      std::memcpy(vectors.get(), next, stale * d * sizeof(float));
      for (uint32_t i = 0; i < stale; ++i) {
        if (!is_unit(vectors.get() + i * d, d)) return corrupt("a vector is not of unit length");
      }
    }

    // Covered rows get a stamp from before the graph, the others one from after it.
    const uint64_t edit = next_edit();
    const uint64_t before = state->version;
    const uint64_t after = before + 1;
    if (header.entries - header.stale < header_.rows) state->version = after;
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
  const bool map_;
  const bool verify_;
  finch_storage storage_ = FINCH_STORAGE_F32;
  InputFile file_;
  std::shared_ptr<const Mapping> mapping_;
  format::Header header_;
  std::vector<format::Section> table_;
};

}  // namespace
}  // namespace finch

extern "C" finch_status finch_index_open(const char* path, const finch_open_options* options, finch_index** out) {
  return finch::guarded([&]() -> finch_status {
    using finch::fail;
    if (path == nullptr || out == nullptr) return fail(FINCH_INVALID_ARGUMENT, "path and out must not be NULL.");
    finch_open_options read{};
    if (options != nullptr && !finch::read_sized(options, sizeof(finch_open_options), &read)) {
      return fail(FINCH_INVALID_ARGUMENT, "options.size is %zu; set it to sizeof(finch_open_options).", options->size);
    }
    if (read.map > 1 || read.unverified > 1) {
      return fail(FINCH_INVALID_ARGUMENT, "options.map is %u and options.unverified %u; each is 0 or 1.", read.map,
                  read.unverified);
    }
    if (read.unverified != 0 && read.map == 0) {
      return fail(
          FINCH_INVALID_ARGUMENT,
          "options.unverified (verify: false) needs options.map: without mapping every byte is read, and verified.");
    }
    finch::Reader reader(path, read);
    if (const finch_status status = reader.open()) return status;
    std::unique_ptr<finch_index> index;
    if (const finch_status status = reader.read_index(&index)) return status;
    *out = index.release();
    return FINCH_OK;
  });
}
