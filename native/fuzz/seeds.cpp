// Writes the first inputs of the fuzz targets: toolfinch_fuzz_seeds <folder>. libFuzzer finds the others.
#include <filesystem>
#include <fstream>
#include <random>

#include "input.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::vector<unsigned char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_index(const fs::path& path, uint32_t d, size_t rows, bool graph, bool churn, int32_t storage, bool blobs) {
  finch_index_options options{};
  options.size = sizeof(options);
  options.dimension = d;
  options.storage = storage;
  finch_index* index = nullptr;
  FUZZ_CHECK(finch_index_create(&options, &index) == FINCH_OK);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> vectors(rows * d);
  for (float& x : vectors) x = normal(random);
  std::vector<std::string> names;
  for (size_t i = 0; i < rows; ++i) names.push_back("t" + std::to_string(i));
  std::vector<finch_string> ids;
  for (const std::string& name : names) ids.push_back({name.data(), name.size()});
  FUZZ_CHECK(finch_index_upsert(index, ids.data(), vectors.data(), rows, nullptr, nullptr) == FINCH_OK);
  finch_ann_options ann{};
  ann.size = sizeof(ann);
  ann.connectivity = 3;
  if (graph) FUZZ_CHECK(finch_index_build_ann(index, &ann, nullptr) == FINCH_OK);
  if (churn) {  // stale entries and rows beside the graph
    FUZZ_CHECK(finch_index_upsert(index, ids.data(), vectors.data() + d, 2, nullptr, nullptr) == FINCH_OK);
    FUZZ_CHECK(finch_index_remove(index, ids.data() + 3, 1) == FINCH_OK);
  }
  const finch_blob blob[] = {{{"catalog", 7}, "{}", 2}, {{"b", 1}, "", 0}};
  FUZZ_CHECK(finch_index_save(index, path.c_str(), blob, blobs ? 2 : 0) == FINCH_OK);
  finch_index_release(index);
}

void write_bandit(const fs::path& path, uint32_t d, int32_t form, float gamma, size_t arms) {
  finch_bandit_options options{};
  options.size = sizeof(options);
  options.dimension = d;
  options.form = form;
  options.gamma = gamma;
  finch_bandit* bandit = nullptr;
  FUZZ_CHECK(finch_bandit_create(&options, &bandit) == FINCH_OK);
  std::vector<float> x(d, 1.0f);
  for (size_t i = 0; i < arms; ++i) {
    const std::string id = "arm" + std::to_string(i);
    for (size_t j = 0; j <= i; ++j) {
      x[j % d] += 0.5f;
      const finch_outcome outcome{
          {id.data(), id.size()}, x.data(), 0.25f, j % 2 == 0 ? 1.0f : 0.0f, 1e3 * static_cast<double>(j)};
      FUZZ_CHECK(finch_bandit_update(bandit, &outcome, 1) == FINCH_OK);
    }
  }
  size_t size = 0;
  FUZZ_CHECK(finch_bandit_serialize(bandit, nullptr, 0, &size) == FINCH_OK);
  std::vector<unsigned char> bytes(size);
  FUZZ_CHECK(finch_bandit_serialize(bandit, bytes.data(), size, &size) == FINCH_OK);
  write(path, bytes);
  finch_bandit_release(bandit);
}

void write_random(const fs::path& folder, unsigned seed, size_t size, unsigned most) {
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& b : bytes) b = static_cast<unsigned char>(random() % most);
  write(folder / ("random-" + std::to_string(seed)), bytes);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 1;
  }
  const fs::path root = arguments[1];
  for (const char* target : {"index_file", "c_abi", "truncate", "bandit_state"}) fs::create_directories(root / target);
  const fs::path files = root / "index_file";
  write_index(files / "empty", 3, 0, false, false, 0, false);
  write_index(files / "one", 1, 1, false, false, 0, true);
  write_index(files / "rows", 5, 9, false, false, 0, true);
  write_index(files / "graph", 4, 40, true, false, 0, false);
  write_index(files / "churned-graph", 4, 40, true, true, 0, true);
  for (int32_t storage = 1; storage <= 3; ++storage) {
    write_index(files / ("storage-" + std::to_string(storage)), 6, 7, false, false, storage, false);
  }
  const fs::path states = root / "bandit_state";
  write_bandit(states / "none", 3, FINCH_BANDIT_CALIBRATED, 0.95f, 0);
  write_bandit(states / "calibrated", 3, FINCH_BANDIT_CALIBRATED, 0.95f, 3);
  write_bandit(states / "literal", 2, FINCH_BANDIT_LITERAL, 1.0f, 2);
  write_bandit(states / "mean", 9, FINCH_BANDIT_MEAN, 0.5f, 4);
  for (unsigned seed = 0; seed < 6; ++seed) {
    write_random(root / "truncate", seed, 60 + 150 * seed, seed % 2 == 0 ? 256 : 0xC0);
    write_random(root / "c_abi", seed, 100 + 300 * seed, seed % 2 == 0 ? 256 : 0xC0);
  }
  return 0;
}
