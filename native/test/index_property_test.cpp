// Random sequences of everything an index can do, against a brute-force model in float64, for every storage.
// TOOLFINCH_STEPS is how many steps in all (default 1,500), TOOLFINCH_SEED where they start.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <set>
#include <thread>

#include "catalogue.hpp"

namespace finch_test {
namespace {

using Ranking = std::vector<std::pair<double, uint64_t>>;

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : std::strtoull(value, nullptr, 10);
}

// How far a code's score may be from the vector's, when query and row are both rounded. Each is a unit vector, so the
// products of the absolute values sum up to 1 at most.
double code_error(finch_storage storage, uint32_t d) {
  switch (storage) {
    case FINCH_STORAGE_BF16:
      return 2.1 / 256;
    case FINCH_STORAGE_F16:
      return 2.1 / 2048;
    case FINCH_STORAGE_I8:
      return 1.1 * std::sqrt(static_cast<double>(d)) / 127;
    default:
      return 0;
  }
}

class Sequence {
 public:
  Sequence(uint32_t dimension, finch_storage storage, uint64_t seed)
      : d_(dimension), storage_(storage), random_(static_cast<Random::result_type>(seed)), index_(dimension, storage) {
    path_ = testing::TempDir() + "finch-property-" + std::to_string(getpid()) + "-" + std::to_string(seed) + ".finch";
  }
  ~Sequence() { std::filesystem::remove(path_); }

  void run(size_t steps) {
    for (size_t step = 0; step < steps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      act();
      ASSERT_EQ(index_.info().count, model_.rows.size());
      if (step % 64 == 63) expect_same_rows();
      if (testing::Test::HasFailure()) return;
    }
    expect_same_rows();
    if (ann_wanted_ > 0) {
      EXPECT_GE(static_cast<double>(ann_found_), 0.9 * static_cast<double>(ann_wanted_)) << "recall of the graph";
    }
  }

 private:
  struct Held {
    std::unique_ptr<Snapshot> snapshot;
    Model model;
  };

  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::string name() { return "tool " + std::to_string(pick(400)); }
  std::vector<std::string> names(size_t most) {
    std::set<std::string> chosen;
    for (size_t i = 0, count = 1 + pick(most); i < count; ++i) chosen.insert(name());
    std::vector<std::string> out(chosen.begin(), chosen.end());
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }
  std::vector<std::string> present(size_t most) {
    std::set<std::string> chosen;
    for (size_t i = 0, count = 1 + pick(most); i < count; ++i) {
      chosen.insert(std::next(model_.rows.begin(), static_cast<long>(pick(model_.rows.size())))->first);
    }
    return {chosen.begin(), chosen.end()};
  }
  std::vector<float> priors(size_t count) {
    std::vector<float> out(count);
    for (float& prior : out) prior = static_cast<float>(pick(1001)) / 1000;
    return out;
  }
  std::vector<float> vectors(size_t count) {
    std::vector<float> out = gaussian(random_, count * d_);
    // Any length, and sometimes the same direction as another row: ties.
    const float length = std::ldexp(1.0f, static_cast<int>(pick(40)) - 20);
    for (float& x : out) x *= length;
    if (count > 1 && pick(4) == 0) std::copy_n(out.begin(), d_, out.begin() + d_);
    for (size_t i = 0; i < count; ++i) {
      if (std::all_of(out.begin() + static_cast<long>(i * d_), out.begin() + static_cast<long>((i + 1) * d_),
                      [](float x) { return x == 0; })) {
        out[i * d_] = 1;
      }
    }
    return out;
  }

  void act() {
    const size_t action = pick(100);
    if (action < 22) return upsert(names(pick(12) == 0 ? 200 : 5), index_);
    if (action < 34) return remove();
    if (action < 40) return set_priors();
    if (action < 46) return refuse();
    if (action < 70) return search(Snapshot(index_), model_);
    if (action < 76) return search_graph();
    if (action < 82) return hold();
    if (action < 88) return share();
    if (action < 92) return graph();
    save_and_open();
  }

  void upsert(const std::vector<std::string>& ids, Index& index) {
    const auto rows = vectors(ids.size());
    const auto given = priors(ids.size());
    const bool with_priors = pick(2) == 0;
    std::vector<uint64_t> keys(ids.size());
    ASSERT_EQ(index.upsert(ids, rows, with_priors ? given.data() : nullptr, keys.data()), FINCH_OK)
        << finch_last_error();
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto old = model_.rows.find(ids[i]);
      const float unchanged = old == model_.rows.end() ? 0.5f : old->second.prior;
      model_.upsert(ids[i], rows.data() + i * d_, d_, with_priors ? given[i] : unchanged);
      ASSERT_EQ(keys[i], model_.rows[ids[i]].key);
    }
  }

  void remove() {
    if (model_.rows.empty()) return;
    const auto ids = present(pick(10) == 0 ? model_.rows.size() * 2 : 4);
    ASSERT_EQ(index_.remove(ids), FINCH_OK) << finch_last_error();
    for (const auto& id : ids) model_.rows.erase(id);
  }

  void set_priors() {
    if (model_.rows.empty()) return;
    const auto ids = present(20);
    const auto given = priors(ids.size());
    const auto list = texts(ids);
    ASSERT_EQ(finch_index_set_priors(index_.get(), list.data(), given.data(), list.size()), FINCH_OK);
    for (size_t i = 0; i < ids.size(); ++i) model_.rows[ids[i]].prior = given[i];
  }

  // Calls that must fail, and change nothing.
  void refuse() {
    const uint64_t before = index_.info().version;
    auto ids = names(5);
    auto rows = vectors(ids.size() + 1);
    const size_t at = pick(ids.size());
    switch (pick(5)) {
      case 0:
        rows[at * d_ + pick(d_)] = pick(2) == 0 ? std::nanf("") : INFINITY;
        ASSERT_EQ(index_.upsert(ids, rows), FINCH_NOT_FINITE);
        break;
      case 1:
        std::fill_n(rows.begin() + static_cast<long>(at * d_), d_, 0.0f);
        ASSERT_EQ(index_.upsert(ids, rows), FINCH_ZERO_VECTOR);
        break;
      case 2:
        ids.push_back(ids[at]);
        ASSERT_EQ(index_.upsert(ids, rows), FINCH_DUPLICATE_ID);
        break;
      case 3:
        ids.push_back("nobody");
        ASSERT_EQ(index_.remove(ids), FINCH_UNKNOWN_ID);
        break;
      default:
        if (model_.rows.empty()) return;
        ids = present(5);
        ids.push_back(ids.front());
        ASSERT_EQ(index_.remove(ids), FINCH_DUPLICATE_ID);
    }
    ASSERT_EQ(index_.info().version, before);
  }

  // What may be found: all rows, or those of a random allow set.
  struct Mask {
    finch_allow* allow = nullptr;
    std::set<uint64_t> keys;
    bool allows(uint64_t key) const { return allow == nullptr || keys.count(key) > 0; }
    ~Mask() { finch_allow_release(allow); }
  };
  void mask(const Snapshot& snapshot, const Model& model, Mask* out) {
    if (pick(2) == 0) return;
    std::vector<std::string> ids = pick(8) == 0 ? std::vector<std::string>{} : names(pick(3) == 0 ? 400 : 30);
    if (pick(4) == 0) ids.push_back("nobody");
    for (const auto& id : ids) {
      const auto row = model.rows.find(id);
      if (row != model.rows.end()) out->keys.insert(row->second.key);
    }
    const auto list = texts(ids);
    size_t matched = 0;
    ASSERT_EQ(finch_allow_create(snapshot.get(), list.data(), list.size(), &out->allow, &matched), FINCH_OK);
    ASSERT_EQ(matched, out->keys.size());
  }

  std::vector<std::vector<Hit>> find(const Snapshot& snapshot, const std::vector<float>& queries,
                                     const finch_search_options& options) {
    const size_t count = queries.size() / d_;
    std::vector<uint64_t> keys(count * options.k);
    std::vector<float> scores(count * options.k);
    std::vector<uint32_t> counts(count);
    EXPECT_EQ(finch_search(snapshot.get(), queries.data(), count, &options, keys.data(), scores.data(), counts.data()),
              FINCH_OK)
        << finch_last_error();
    std::vector<std::vector<Hit>> out(count);
    for (size_t q = 0; q < count; ++q) {
      for (size_t i = 0; i < counts[q]; ++i) out[q].push_back({keys[q * options.k + i], scores[q * options.k + i]});
    }
    return out;
  }

  finch_search_options search_options(const Mask& mask, finch_search_mode mode) {
    finch_search_options options{};
    options.size = sizeof(options);
    options.k = static_cast<uint32_t>(1 + pick(pick(4) == 0 ? 500 : 20));
    options.mode = mode;
    options.allow = mask.allow;
    options.threads = static_cast<uint32_t>(pick(4));
    return options;
  }

  Ranking ranking(const Model& model, const float* query, const Mask& mask) {
    Ranking all = model.ranking(query, d_);
    std::erase_if(all, [&](const auto& entry) { return !mask.allows(entry.second); });
    return all;
  }

  void search(const Snapshot& snapshot, const Model& model) {
    Mask allowed;
    mask(snapshot, model, &allowed);
    finch_search_options options = search_options(allowed, FINCH_SEARCH_EXACT);
    const size_t count = 1 + pick(pick(6) == 0 ? 40 : 4);
    const auto queries = vectors(count);
    // With every row rescored any storage is exact.
    const bool all = storage_ == FINCH_STORAGE_F32 || pick(2) == 0;
    if (all) options.overfetch = static_cast<uint32_t>(std::max<size_t>(options.k, model.rows.size()));
    const auto hits = find(snapshot, queries, options);
    for (size_t q = 0; q < count; ++q) {
      const Ranking truth = ranking(model, queries.data() + q * d_, allowed);
      if (all) {
        expect_ranking(hits[q], truth, options.k, d_);
      } else {
        expect_sound(hits[q], truth, options.k);
        expect_none_missed(hits[q], truth, options.k);
      }
    }
    const size_t one = pick(count);
    const std::vector<float> alone(queries.begin() + static_cast<long>(one * d_),
                                   queries.begin() + static_cast<long>((one + 1) * d_));
    EXPECT_EQ(find(snapshot, alone, options)[0], hits[one]) << "alone or in a batch: the same bits";
  }

  // Hits are rows of `truth`, once each, with their scores, in order, and as many as there must be.
  void expect_sound(const std::vector<Hit>& hits, const Ranking& truth, size_t k) {
    ASSERT_EQ(hits.size(), std::min(k, truth.size()));
    std::map<uint64_t, double> left;
    for (const auto& [score, key] : truth) left[key] = score;
    for (size_t i = 0; i < hits.size(); ++i) {
      ASSERT_TRUE(left.count(hits[i].key)) << "not allowed, not there, or twice";
      EXPECT_NEAR(hits[i].score, left[hits[i].key], tolerance(d_));
      left.erase(hits[i].key);
      if (i == 0) continue;
      EXPECT_TRUE(hits[i - 1].score > hits[i].score ||
                  (hits[i - 1].score == hits[i].score && hits[i - 1].key < hits[i].key));
    }
  }

  // A row that belongs to the k best may be missed only when codes cannot tell it from the last of the 4 k + 32 rows
  // that were rescored.
  void expect_none_missed(const std::vector<Hit>& hits, const Ranking& truth, size_t k) {
    const size_t rescored = 4 * k + 32;
    std::set<uint64_t> found;
    for (const Hit& hit : hits) found.insert(hit.key);
    const double bar = rescored < truth.size() ? truth[rescored].first + 2 * code_error(storage_, d_) : -2;
    const double last = hits.empty() ? 2 : hits.back().score;
    for (size_t i = 0; i < std::min(k, truth.size()); ++i) {
      const bool tied = truth[i].first <= last + tolerance(d_);
      EXPECT_TRUE(tied || truth[i].first <= bar || found.count(truth[i].second)) << "missed the row at " << i;
    }
  }

  void search_graph() {
    const Snapshot snapshot(index_);
    Mask allowed;
    mask(snapshot, model_, &allowed);
    finch_search_options options =
        search_options(allowed, graph_ && pick(2) == 0 ? FINCH_SEARCH_ANN : FINCH_SEARCH_AUTO);
    options.k = std::min(options.k, 10u);
    const auto queries = vectors(2);
    const auto hits = find(snapshot, queries, options);
    for (size_t q = 0; q < 2; ++q) {
      const Ranking truth = ranking(model_, queries.data() + q * d_, allowed);
      ASSERT_LE(hits[q].size(), std::min<size_t>(options.k, truth.size()));
      Ranking some = truth;
      std::set<uint64_t> found;
      for (const Hit& hit : hits[q]) found.insert(hit.key);
      std::erase_if(some, [&](const auto& entry) { return found.count(entry.second) == 0; });
      expect_sound(hits[q], some, options.k);
      const size_t wanted = std::min<size_t>(options.k, truth.size());
      // By score: of rows that tie, any will do.
      const double bar = wanted == 0 ? 2 : truth[wanted - 1].first - tolerance(d_);
      size_t good = 0;
      for (const Hit& hit : hits[q]) good += hit.score >= bar;
      ann_wanted_ += wanted;
      ann_found_ += std::min(good, wanted);
    }
  }

  // A snapshot stays what it was, whatever happens to the index, its file and its handle.
  void hold() {
    if (held_.size() == 3 || (!held_.empty() && pick(2) == 0)) {
      search(*held_.front().snapshot, held_.front().model);
      if (pick(2) == 0) held_.pop_front();
      return;
    }
    held_.push_back({std::make_unique<Snapshot>(index_), model_});
  }

  // Another reference, used on another thread.
  void share() {
    finch_index_retain(index_.get());
    std::thread other([&] {
      Index shared(index_.get());
      upsert(names(5), shared);
      if (pick(2) == 0) search(Snapshot(shared), model_);
    });
    other.join();
    search(Snapshot(index_), model_);
  }

  void graph() {
    graph_ = pick(3) > 0;
    ASSERT_EQ(graph_ ? finch_index_build_ann(index_.get(), nullptr, nullptr) : finch_index_drop_ann(index_.get()),
              FINCH_OK)
        << finch_last_error();
  }

  void save_and_open() {
    ASSERT_EQ(finch_index_save(index_.get(), path_.c_str(), nullptr, 0), FINCH_OK) << finch_last_error();
    finch_open_options options{};
    options.size = sizeof(options);
    options.map = static_cast<uint32_t>(pick(2));
    options.unverified = options.map == 0 ? 0 : static_cast<uint32_t>(pick(2));
    finch_index* opened = nullptr;
    ASSERT_EQ(finch_index_open(path_.c_str(), pick(3) == 0 ? nullptr : &options, &opened), FINCH_OK)
        << finch_last_error();
    index_.adopt(opened);
    ASSERT_EQ(index_.info().storage, storage_);
    expect_same_rows();
  }

  void expect_same_rows() {
    const Snapshot snapshot(index_);
    std::map<uint64_t, std::pair<std::string, const Model::Row*>> by_key;
    for (const auto& [id, row] : model_.rows) {
      by_key[row.key] = {id, &row};
      ASSERT_EQ(snapshot.find(id), row.key);
    }
    const auto keys = snapshot.keys();
    ASSERT_EQ(keys.size(), by_key.size());
    std::vector<finch_string> ids(keys.size());
    std::vector<float> rows(keys.size() * d_), priors(keys.size());
    ASSERT_EQ(finch_snapshot_rows(snapshot.get(), keys.data(), keys.size(), ids.data(), rows.data(), priors.data()),
              FINCH_OK);
    size_t i = 0;
    for (const auto& [key, expected] : by_key) {
      ASSERT_EQ(keys[i], key) << "in insertion order";
      ASSERT_EQ(std::string(ids[i].data, ids[i].size), expected.first);
      ASSERT_EQ(priors[i], expected.second->prior);
      for (size_t j = 0; j < d_; ++j) ASSERT_NEAR(rows[i * d_ + j], expected.second->unit[j], 2e-7);
      ++i;
    }
  }

  const uint32_t d_;
  const finch_storage storage_;
  Random random_;
  Index index_;
  Model model_;
  std::deque<Held> held_;
  std::string path_;
  bool graph_ = false;
  size_t ann_wanted_ = 0;
  size_t ann_found_ = 0;
};

class Property : public testing::TestWithParam<std::tuple<finch_storage, uint32_t>> {};

constexpr finch_storage kStorages[] = {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8};
constexpr uint32_t kDimensions[] = {1, 5, 33, 64, 200};
INSTANTIATE_TEST_SUITE_P(All, Property, testing::Combine(testing::ValuesIn(kStorages), testing::ValuesIn(kDimensions)));

TEST_P(Property, AgreesWithTheModel) {
  const auto [storage, dimension] = GetParam();
  constexpr size_t kSequences = std::size(kStorages) * std::size(kDimensions);
  const size_t steps = (from_environment("TOOLFINCH_STEPS", 1500) + kSequences - 1) / kSequences;
  const uint64_t seed = from_environment("TOOLFINCH_SEED", 1) * 1000 + dimension * 4 + static_cast<uint64_t>(storage);
  SCOPED_TRACE("TOOLFINCH_SEED " + std::to_string(seed / 1000));
  // Sequences of bounded length: each begins empty, where much goes on.
  constexpr size_t kLongest = 400;
  for (size_t done = 0, part = 0; done < steps && !HasFailure(); done += kLongest, ++part) {
    SCOPED_TRACE("part " + std::to_string(part));
    Sequence(dimension, storage, seed + part * 1000003).run(std::min(kLongest, steps - done));
  }
}

}  // namespace
}  // namespace finch_test
