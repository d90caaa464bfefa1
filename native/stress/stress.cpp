// Everything at once, for the thread and address sanitizers:
//   toolfinch_stress [--seconds 10] [--threads 8] [--rows 600] [--seed 1]   all calls on shared handles, from many
//   threads toolfinch_stress --exit-after MILLISECONDS                              exit() amid all that
//   toolfinch_stress --levels                                               the instruction sets this machine runs
// Ends with 0 when every answer was consistent; the sanitizer has its own word.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "rerank_calls.hpp"
#include "shared.hpp"
#include "toolfinch.h"

namespace {

using namespace finch_stress;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kDimension = 48;
constexpr size_t kTogether = 8;  // rows that are always written in one call
constexpr uint32_t kStorages = 4;

struct Settings {
  double seconds = 10;
  uint32_t threads = 8;
  uint32_t rows = 600;
  uint32_t seed = 1;
  long exit_after = -1;
};

using Index = Shared<finch_index, finch_index_retain, finch_index_release>;
using Snapshot = Shared<finch_snapshot, finch_snapshot_retain, finch_snapshot_release>;
using Bandit = Shared<finch_bandit, finch_bandit_retain, finch_bandit_release>;

struct World {
  Settings settings;
  std::array<Index, kStorages> indexes;
  std::array<Snapshot, kStorages> kept;  // old states that go from thread to thread
  Bandit bandit;
  Cancel cancel;
  RerankCalls reranks;
  std::string folder;
  std::atomic<bool> stop{false};
  std::atomic<bool> leaving{false};  // exit() has been or is about to be called: work is refused
  std::atomic<uint64_t> queued{0};
  std::atomic<uint64_t> answered{0};
  std::array<std::atomic<uint64_t>, 16> calls{};
};

std::vector<float> vectors(Random& random, size_t count) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> out(count * kDimension);
  for (float& x : out) x = uniform(random);
  return out;
}

std::vector<std::string> names(Random& random, const World& world, size_t count) {
  const uint32_t first = below(random, world.settings.rows);
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back("tool " + std::to_string((first + i) % world.settings.rows));
  return out;
}

std::vector<finch_string> texts(const std::vector<std::string>& strings) {
  std::vector<finch_string> out;
  for (const std::string& s : strings) out.push_back(text(s));
  return out;
}

std::unique_ptr<finch_snapshot, void (*)(finch_snapshot*)> snapshot_of(const finch_index* index) {
  finch_snapshot* snapshot = nullptr;
  MUST(finch_index_snapshot(index, &snapshot) == FINCH_OK);
  return {snapshot, finch_snapshot_release};
}

void write_together(finch_index* index, Random& random) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < kTogether; ++i) ids.push_back("together " + std::to_string(i));
  const std::vector<float> one = vectors(random, 1);
  std::vector<float> all;
  for (size_t i = 0; i < kTogether; ++i) all.insert(all.end(), one.begin(), one.end());
  const std::vector<finch_string> given = texts(ids);
  MUST(finch_index_upsert(index, given.data(), all.data(), kTogether, nullptr, nullptr) == FINCH_OK);
}

finch_index* new_index(World& world, int32_t storage, Random& random) {
  finch_index_options options{};
  options.size = sizeof(options);
  options.dimension = kDimension;
  options.storage = storage;
  finch_index* index = nullptr;
  MUST(finch_index_create(&options, &index) == FINCH_OK);
  std::vector<std::string> ids;
  for (uint32_t i = 0; i < world.settings.rows; i += 2) ids.push_back("tool " + std::to_string(i));
  const std::vector<float> rows = vectors(random, ids.size());
  const std::vector<finch_string> given = texts(ids);
  MUST(finch_index_upsert(index, given.data(), rows.data(), ids.size(), nullptr, nullptr) == FINCH_OK);
  write_together(index, random);
  return index;
}

// Rows that are written together are seen together.
void check_together(const finch_snapshot* snapshot) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < kTogether; ++i) ids.push_back("together " + std::to_string(i));
  const std::vector<finch_string> given = texts(ids);
  uint64_t keys[kTogether];
  MUST(finch_snapshot_find(snapshot, given.data(), kTogether, keys) == FINCH_OK);
  std::vector<float> rows(kTogether * kDimension);
  MUST(finch_snapshot_rows(snapshot, keys, kTogether, nullptr, rows.data(), nullptr) == FINCH_OK);
  for (size_t i = 1; i < kTogether; ++i) {
    MUST(std::memcmp(rows.data(), rows.data() + i * kDimension, kDimension * sizeof(float)) == 0,
         "a half-done upsert was seen");
  }
}

void check_found(const uint64_t* keys, const float* scores, uint32_t found, uint32_t k) {
  MUST(found <= k);
  for (uint32_t i = 0; i < found; ++i) {
    MUST(std::fabs(scores[i]) < 1.001f);
    MUST(i == 0 || scores[i - 1] > scores[i] || (scores[i - 1] == scores[i] && keys[i - 1] < keys[i]));
  }
}

finch_search_options search_options(Random& random) {
  constexpr uint32_t kKs[] = {1, 5, 10, 64, 300};
  constexpr uint32_t kThreads[] = {0, 1, 2, 7};
  finch_search_options options{};
  options.size = sizeof(options);
  options.k = kKs[below(random, 5)];
  options.mode = below(random, 2) == 0 ? FINCH_SEARCH_AUTO : FINCH_SEARCH_EXACT;
  options.threads = kThreads[below(random, 4)];
  return options;
}

// --- What a thread does, one call after another ----------------------------------------------------------------------

void search(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  const auto old = world.kept[storage].get();
  auto snapshot = below(random, 4) == 0 && old != nullptr
                      ? std::unique_ptr<finch_snapshot, void (*)(finch_snapshot*)>(
                            (finch_snapshot_retain(old.get()), old.get()), finch_snapshot_release)
                      : snapshot_of(index.get());
  check_together(snapshot.get());
  finch_search_options options = search_options(random);
  finch_allow* allow = nullptr;
  if (below(random, 3) == 0) {
    const std::vector<std::string> ids = names(random, world, 1 + below(random, 200));
    const std::vector<finch_string> given = texts(ids);
    MUST(finch_allow_create(snapshot.get(), given.data(), given.size(), &allow, nullptr) == FINCH_OK);
    options.allow = allow;
  }
  const auto cancel = world.cancel.get();
  if (below(random, 3) == 0) options.cancel = cancel.get();
  const size_t count = 1 + below(random, 20);
  const std::vector<float> queries = vectors(random, count);
  std::vector<uint64_t> keys(count * options.k);
  std::vector<float> scores(count * options.k);
  std::vector<uint32_t> counts(count);
  const finch_status status =
      finch_search(snapshot.get(), queries.data(), count, &options, keys.data(), scores.data(), counts.data());
  MUST(status == FINCH_OK || (status == FINCH_ABORTED && options.cancel != nullptr), "status %d", status);
  for (size_t q = 0; q < count && status == FINCH_OK; ++q) {
    check_found(keys.data() + q * options.k, scores.data() + q * options.k, counts[q], options.k);
  }
  finch_allow_release(allow);
}

struct Request {
  World* world;
  size_t count;
  uint32_t k;
  bool cancellable;
  std::atomic<int> calls{0};
};

void answered(void* user, finch_status status, const char* message, const uint64_t* keys, const float* scores,
              const uint32_t* counts) {
  auto* request = static_cast<Request*>(user);
  MUST(request->calls.fetch_add(1) == 0, "answered twice");
  if (status == FINCH_OK) {
    for (size_t q = 0; q < request->count; ++q) {
      check_found(keys + q * request->k, scores + q * request->k, counts[q], request->k);
    }
  } else {
    MUST(status == FINCH_ABORTED && request->cancellable, "status %d: %s", status, message);
  }
  World* world = request->world;
  delete request;
  world->answered.fetch_add(1);
}

void submit(World& world, uint32_t storage, Random& random) {
  if (world.queued.load() - world.answered.load() > 200) {
    std::this_thread::yield();
    return;
  }
  const auto index = world.indexes[storage].get();
  const auto snapshot = snapshot_of(index.get());
  finch_search_options options = search_options(random);
  const auto cancel = world.cancel.get();
  if (below(random, 4) == 0) options.cancel = cancel.get();
  const size_t count = 1 + below(random, 3);
  const std::vector<float> queries = vectors(random, count);
  if (below(random, 50) == 0) MUST(finch_search_set_wait(below(random, 3) * 200) == FINCH_OK);
  auto request = std::make_unique<Request>();
  request->world = &world;
  request->count = count;
  request->k = options.k;
  request->cancellable = options.cancel != nullptr;
  world.queued.fetch_add(1);
  const finch_status status =
      finch_search_submit(snapshot.get(), queries.data(), count, &options, answered, request.get());
  if (status != FINCH_OK && world.leaving.load()) return;
  MUST(status == FINCH_OK, "status %d", status);
  request.release();
}

void write(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  const std::vector<std::string> ids = names(random, world, 1 + below(random, 40));
  const std::vector<finch_string> given = texts(ids);
  std::vector<float> priors(ids.size());
  for (float& prior : priors) prior = static_cast<float>(below(random, 101)) / 100.0f;
  switch (below(random, 4)) {
    case 0: {
      const finch_status status = finch_index_remove(index.get(), given.data(), given.size());
      MUST(status == FINCH_OK || status == FINCH_UNKNOWN_ID, "status %d", status);
      break;
    }
    case 1: {
      const finch_status status = finch_index_set_priors(index.get(), given.data(), priors.data(), given.size());
      MUST(status == FINCH_OK || status == FINCH_UNKNOWN_ID, "status %d", status);
      break;
    }
    case 2:
      write_together(index.get(), random);
      break;
    default: {
      const std::vector<float> rows = vectors(random, ids.size());
      MUST(finch_index_upsert(index.get(), given.data(), rows.data(), ids.size(), priors.data(), nullptr) == FINCH_OK);
    }
  }
}

void keep_snapshot(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  auto snapshot = snapshot_of(index.get());
  finch_index_info info{};
  info.size = sizeof(info);
  MUST(finch_index_inspect(index.get(), &info) == FINCH_OK && info.dimension == kDimension);
  if (below(random, 2) == 0) world.kept[storage].put(snapshot.release());
}

void save_and_open(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  // Some threads save to the same file: whole files only are seen.
  const std::string path = world.folder + "/" + std::to_string(below(random, 3)) + ".finch";
  const finch_blob blob{{"note", 4}, "stress", 6};
  MUST(finch_index_save(index.get(), path.c_str(), &blob, 1) == FINCH_OK);
  const finch_open_options mapped{sizeof(mapped), 1, 0};
  finch_index* opened = nullptr;
  MUST(finch_index_open(path.c_str(), below(random, 2) == 0 ? nullptr : &mapped, &opened) == FINCH_OK);
  const std::unique_ptr<finch_index, void (*)(finch_index*)> owner(opened, finch_index_release);
  check_together(snapshot_of(opened).get());
  const void* data = nullptr;
  size_t size = 0;
  MUST(finch_index_blob(opened, {"note", 4}, &data, &size) == FINCH_OK && size == 6);
  write_together(opened, random);
}

void build_graph(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  if (below(random, 4) == 0) {
    MUST(finch_index_drop_ann(index.get()) == FINCH_OK);
    return;
  }
  finch_ann_options options{};
  options.size = sizeof(options);
  options.connectivity = 6;
  options.expansion_add = 16;
  options.expansion_search = 16;
  const auto cancel = world.cancel.get();
  const finch_status status =
      finch_index_build_ann(index.get(), &options, below(random, 2) == 0 ? cancel.get() : nullptr);
  MUST(status == FINCH_OK || status == FINCH_ABORTED, "status %d", status);
}

void cancel_some(World& world, uint32_t, Random&) {
  finch_cancel* next = nullptr;
  MUST(finch_cancel_create(&next) == FINCH_OK);
  finch_cancel_signal(world.cancel.get().get());
  world.cancel.put(next);
}

void close_index(World& world, uint32_t storage, Random& random) {
  world.indexes[storage].put(new_index(world, static_cast<int32_t>(storage), random));
}

finch_bandit* new_bandit() {
  finch_bandit_options options{};
  options.size = sizeof(options);
  options.dimension = kDimension;
  finch_bandit* bandit = nullptr;
  MUST(finch_bandit_create(&options, &bandit) == FINCH_OK);
  return bandit;
}

void learn(World& world, uint32_t, Random& random) {
  const auto bandit = world.bandit.get();
  const std::vector<std::string> ids = names(random, world, 1 + below(random, 12));
  const std::vector<float> x = vectors(random, ids.size());
  std::vector<finch_outcome> outcomes;
  for (size_t i = 0; i < ids.size(); ++i) {
    outcomes.push_back({text(ids[i]), x.data() + i * kDimension, 0.5f, static_cast<float>(below(random, 2)),
                        static_cast<double>(below(random, 1000000))});
  }
  switch (below(random, 8)) {
    case 0: {
      const std::vector<finch_string> given = texts(ids);
      MUST(finch_bandit_drop(bandit.get(), given.data(), given.size()) == FINCH_OK);
      break;
    }
    case 1: {
      std::vector<char> state(1 << 20);
      size_t size = 0;
      MUST(finch_bandit_serialize(bandit.get(), state.data(), state.size(), &size) == FINCH_OK);
      finch_bandit* copy = new_bandit();
      MUST(finch_bandit_deserialize(copy, state.data(), size) == FINCH_OK);
      if (below(random, 2) == 0) MUST(finch_bandit_deserialize(bandit.get(), state.data(), size) == FINCH_OK);
      finch_bandit_release(copy);
      break;
    }
    case 2: {
      uint64_t count = 0;
      uint64_t bytes = 0;
      MUST(finch_bandit_arms(bandit.get(), &count, &bytes) == FINCH_OK && count <= world.settings.rows);
      break;
    }
    default:
      MUST(finch_bandit_update(bandit.get(), outcomes.data(), outcomes.size()) == FINCH_OK);
  }
}

void select(World& world, uint32_t storage, Random& random) {
  const auto index = world.indexes[storage].get();
  const auto snapshot = snapshot_of(index.get());
  const auto bandit = world.bandit.get();
  finch_search_options how = search_options(random);
  finch_rank_options rank{};
  rank.size = sizeof(rank);
  rank.now = static_cast<double>(below(random, 1000000));
  rank.explore = 1;
  std::vector<finch_candidate> candidates(how.k);
  std::vector<float> similarities(how.k);
  finch_cut cut{};
  cut.size = sizeof(cut);
  size_t count = 0;
  const std::vector<float> query = vectors(random, 1);
  MUST(finch_select(snapshot.get(), bandit.get(), query.data(), &how, &rank, candidates.data(), &count, &cut,
                    similarities.data()) == FINCH_OK);
  MUST(count <= how.k && cut.k <= count);
  for (size_t i = 1; i < count; ++i) MUST(candidates[i - 1].score >= candidates[i].score);
}

void rerank(World& world, uint32_t, Random& random) { world.reranks.score(random, world.cancel); }
void submit_rerank(World& world, uint32_t, Random& random) { world.reranks.submit(random, world.cancel); }
void close_reranker(World& world, uint32_t, Random&) { world.reranks.close(); }

struct Role {
  const char* name;
  void (*act)(World&, uint32_t, Random&);
  uint32_t weight;
};
constexpr Role kRoles[] = {{"search", search, 30},
                           {"submit", submit, 30},
                           {"write", write, 15},
                           {"snapshot", keep_snapshot, 8},
                           {"save+open", save_and_open, 2},
                           {"build_ann", build_graph, 2},
                           {"cancel", cancel_some, 3},
                           {"close", close_index, 1},
                           {"learn", learn, 15},
                           {"select", select, 15},
                           {"rerank", rerank, 5},
                           {"submit rerank", submit_rerank, 10},
                           {"close reranker", close_reranker, 1}};

void work(World& world, uint32_t number) {
  Random random(world.settings.seed * 1000 + number);
  uint32_t all = 0;
  for (const Role& role : kRoles) all += role.weight;
  while (!world.stop.load()) {
    uint32_t drawn = below(random, all);
    size_t r = 0;
    while (drawn >= kRoles[r].weight) drawn -= kRoles[r++].weight;
    kRoles[r].act(world, below(random, kStorages), random);
    world.calls[r].fetch_add(1, std::memory_order_relaxed);
  }
}

void begin(World& world) {
  Random random(world.settings.seed);
  for (uint32_t s = 0; s < kStorages; ++s) {
    world.indexes[s].put(new_index(world, static_cast<int32_t>(s), random));
    finch_snapshot* snapshot = nullptr;
    MUST(finch_index_snapshot(world.indexes[s].get().get(), &snapshot) == FINCH_OK);
    world.kept[s].put(snapshot);
  }
  world.bandit.put(new_bandit());
  finch_cancel* cancel = nullptr;
  MUST(finch_cancel_create(&cancel) == FINCH_OK);
  world.cancel.put(cancel);
  world.reranks.begin(world.leaving);
  const char* base = std::getenv("TMPDIR");
  world.folder = std::string(base != nullptr ? base : "/tmp") + "/finch-stress-XXXXXX";
  MUST(mkdtemp(world.folder.data()) != nullptr);
}

void clean(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

int run(World& world) {
  begin(world);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < world.settings.threads; ++i) threads.emplace_back(work, std::ref(world), i);
  const auto end = Clock::now() + std::chrono::duration<double>(world.settings.seconds);
  auto next = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (Clock::now() < next) continue;
    next += std::chrono::seconds(5);
    std::printf("%.0f s left, %llu searches, %llu writes\n", std::chrono::duration<double>(end - Clock::now()).count(),
                static_cast<unsigned long long>(world.calls[0].load()),
                static_cast<unsigned long long>(world.calls[2].load()));
    std::fflush(stdout);
  }
  world.stop.store(true);
  for (std::thread& thread : threads) thread.join();
  while (world.answered.load() < world.queued.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  world.reranks.finish();
  clean(world.folder);
  std::printf("level %s, pool of %u:", finch_isa(), finch_pool_threads());
  for (size_t r = 0; r < std::size(kRoles); ++r) {
    std::printf(" %s %llu", kRoles[r].name, static_cast<unsigned long long>(world.calls[r].load()));
  }
  std::printf("; %llu queued searches, each answered once; %s\n", static_cast<unsigned long long>(world.queued.load()),
              world.reranks.summary().c_str());
  return 0;
}

// The world is never destroyed: threads use it while the process ends.
int leave_amid(World* world) {
  begin(*world);
  for (uint32_t i = 0; i < world->settings.threads; ++i) std::thread(work, std::ref(*world), i).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(world->settings.exit_after));
  world->leaving.store(true);
  std::exit(0);  // the folder stays for who started it: savers are at work
}

}  // namespace

int main(int count, char** arguments) {
  auto* world = new World;
  Settings& settings = world->settings;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--levels") {
      for (const finch::Kernels* level : finch::available_kernels()) std::printf("%s\n", level->name);
      delete world;
      return 0;
    }
    if (i + 1 == count) {
      std::fprintf(stderr, "unknown argument, or no value for %s\n", name.c_str());
      return 2;
    }
    const char* value = arguments[++i];
    if (name == "--seconds") {
      settings.seconds = std::atof(value);
    } else if (name == "--threads") {
      settings.threads = static_cast<uint32_t>(std::atoi(value));
    } else if (name == "--rows") {
      settings.rows = std::max(10u, static_cast<uint32_t>(std::atoi(value)));
    } else if (name == "--seed") {
      settings.seed = static_cast<uint32_t>(std::atoi(value));
    } else if (name == "--exit-after") {
      settings.exit_after = std::atol(value);
    } else {
      std::fprintf(stderr, "unknown argument %s\n", name.c_str());
      return 2;
    }
  }
  if (settings.exit_after >= 0) return leave_amid(world);
  const int status = run(*world);
  delete world;
  return status;
}
