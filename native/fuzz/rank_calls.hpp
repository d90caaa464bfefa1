// Fuse, truncate, rank and select; the last two against the calls they are made of.
#pragma once

#include <cmath>

#include "world.hpp"

namespace finch_fuzz {

inline finch_cut_options cut_options(Input& in) {
  finch_cut_options options{};
  options.signals = in.below(in.one_in(16) ? 256 : 4);
  options.min_k = in.one_in(4) ? in.below(12) : 0;
  options.max_k = in.one_in(4) ? in.below(12) : 0;
  options.after = in.below(in.one_in(16) ? 4 : 2);
  return options;
}

inline finch_weights weights(Input& in) {
  finch_weights w{};
  if (in.one_in(4)) {
    w.semantic = in.share();
    w.bandit = (1.0f - w.semantic) * in.share();
    w.prior = in.one_in(8) ? in.number() : 1.0f - w.semantic - w.bandit;
  }
  w.outage = in.one_in(2) ? 0.0f : in.share();
  w.clamp = in.below(in.one_in(16) ? 4 : 2);
  return w;
}

inline void fuse(Input& in) {
  const size_t count = in.below(20);
  Room<float> semantic(count), p(count), prior(count), availability(count), out(count);
  for (size_t i = 0; i < count; ++i) {
    semantic.set(i, in.number());
    p.set(i, in.number());
  }
  fill_shares(in, &prior, count);
  fill_shares(in, &availability, count);
  Sized<finch_weights> w(in, weights(in));
  if (checked(finch_fuse(in.one_in(32) ? nullptr : semantic.get(), in.one_in(3) ? nullptr : p.get(),
                         in.one_in(3) ? nullptr : prior.get(), in.one_in(3) ? nullptr : availability.get(), count,
                         in.one_in(3) ? nullptr : w.get(), in.one_in(32) ? nullptr : out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  for (size_t i = 0; i < count; ++i) FUZZ_CHECK(std::isfinite(out.at(i)));
}

inline void truncate(Input& in) {
  const size_t lists = in.below(5);
  Room<uint64_t> offsets(lists + 1);
  uint64_t total = 0;
  offsets.set(0, in.one_in(32) ? 1 : 0);
  for (size_t j = 0; j < lists; ++j) offsets.set(j + 1, total += in.below(8));
  if (lists > 0 && in.one_in(16)) offsets.set(in.below(static_cast<uint32_t>(lists)), total);  // out of order, inside
  const uint32_t d =
      in.one_in(32) ? (in.one_in(2) ? 0 : FINCH_MAX_DIMENSION + in.byte()) : 1 + in.below(kMostDimension);
  const size_t room_d = d > kMostDimension ? 1 : d;
  if (d == FINCH_MAX_DIMENSION) return;
  Room<float> scores(total);
  std::vector<float> sorted;
  for (uint64_t i = 0; i < total; ++i) sorted.push_back(in.number());
  if (!in.one_in(8)) std::sort(sorted.begin(), sorted.end(), [](float a, float b) { return a > b; });
  for (uint64_t i = 0; i < total; ++i) scores.set(i, sorted[i]);
  Room<float> rows(total * room_d, shift(in));
  fill(in, &rows, total * room_d);
  Sized<finch_cut_options> options(in, cut_options(in));
  Room<finch_cut> cuts(lists + 1);
  const size_t cut_size = in.one_in(16) ? in.below(sizeof(finch_cut)) : sizeof(finch_cut);
  for (size_t j = 0; j <= lists; ++j) cuts.set(j, {cut_size, 7, 7, 7, 7, 7.0f, 7.0f, 7});
  cuts.keep();
  const finch_status batch =
      checked(finch_truncate_batch(in.one_in(32) ? nullptr : scores.get(), in.one_in(16) ? nullptr : rows.get(),
                                   in.one_in(32) ? nullptr : offsets.get(), lists, d,
                                   in.one_in(3) ? nullptr : options.get(), in.one_in(32) ? nullptr : cuts.get()));
  if (batch != FINCH_OK) FUZZ_CHECK(cuts.untouched());
  FUZZ_CHECK(cuts.untouched_from(lists), "the batch wrote behind its lists");
  cuts.keep();
  Room<float> similarities(total > 1 ? total - 1 : 0);
  const finch_status one = checked(finch_truncate(scores.get(), rows.get(), total, d, options.get(), cuts.get(),
                                                  in.one_in(2) ? nullptr : similarities.get()));
  if (one != FINCH_OK) FUZZ_CHECK(cuts.untouched() && similarities.untouched());
}

// The candidates as the separate calls give them.
inline void check_ranked(const finch_snapshot* snapshot, const finch_bandit* bandit, const float* x, uint32_t d,
                         const finch_rank_options& options, Room<finch_candidate>& candidates, size_t count,
                         const finch_cut& cut, const float* similarities) {
  std::vector<finch_string> ids(count);
  std::vector<float> semantic(count), priors(count), p(count), availability(count, 1.0f), fused(count), shown(count);
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) {
    keys[i] = candidates.at(i).key;
    semantic[i] = candidates.at(i).semantic;
    shown[i] = candidates.at(i).score;
  }
  std::vector<float> rows(count * d);
  FUZZ_CHECK(finch_snapshot_rows(snapshot, keys.data(), count, ids.data(), rows.data(), priors.data()) == FINCH_OK);
  p = priors;
  if (bandit != nullptr) {
    std::vector<finch_arm_score> arms(count);
    FUZZ_CHECK(finch_bandit_score(bandit, ids.data(), priors.data(), count, x, options.now, options.explore,
                                  arms.data()) == FINCH_OK);
    for (size_t i = 0; i < count; ++i) {
      p[i] = arms[i].mean + arms[i].bonus;
      availability[i] = arms[i].availability;
    }
  }
  FUZZ_CHECK(finch_fuse(semantic.data(), p.data(), priors.data(), availability.data(), count, options.weights,
                        fused.data()) == FINCH_OK);
  FUZZ_CHECK(count == 0 || std::memcmp(fused.data(), shown.data(), count * sizeof(float)) == 0, "fused scores differ");
  size_t healthy = 0;
  while (healthy < count && availability[healthy] >= options.min_availability) ++healthy;
  for (size_t i = healthy; i < count; ++i) FUZZ_CHECK(availability[i] < options.min_availability);
  if (healthy == 0) healthy = count;
  for (size_t i = 1; i < count; ++i) {
    if (i == healthy) continue;
    FUZZ_CHECK(shown[i - 1] > shown[i] || (shown[i - 1] == shown[i] && keys[i - 1] < keys[i]), "order at %zu", i);
  }
  finch_cut expected{};
  expected.size = sizeof(expected);
  std::vector<float> expected_similarities(healthy > 1 ? healthy - 1 : 0);
  FUZZ_CHECK(finch_truncate(shown.data(), rows.data(), healthy, d, options.cut, &expected,
                            expected_similarities.data()) == FINCH_OK);
  FUZZ_CHECK(std::memcmp(&expected, &cut, sizeof(cut)) == 0, "the cut differs: k %u, expected %u", cut.k, expected.k);
  if (similarities != nullptr && !expected_similarities.empty()) {
    FUZZ_CHECK(std::memcmp(similarities, expected_similarities.data(), expected_similarities.size() * 4) == 0);
  }
}

inline void rank(Input& in, World* world) {
  const size_t at = world->snapshots.place(in);
  const finch_snapshot* snapshot = world->snapshots.at(at);
  const SnapshotNote& note = world->snapshot_notes[at];
  const size_t bandit_at = in.below(5);
  const finch_bandit* bandit = bandit_at < 3 ? world->bandits.at(bandit_at) : nullptr;
  const uint32_t d = snapshot == nullptr ? 2 : note.dimension;
  const bool selects = in.one_in(2);
  Sized<finch_cut_options> cut_given(in, cut_options(in));
  Sized<finch_weights> weights_given(in, weights(in));
  finch_rank_options options{};
  options.now = in.time();
  options.explore = static_cast<int32_t>(in.below(3)) - 1;
  options.weights = in.one_in(2) ? nullptr : weights_given.get();
  options.cut = in.one_in(2) ? nullptr : cut_given.get();
  options.min_availability = in.one_in(2) ? 0.0f : in.share();
  Sized<finch_rank_options> rank_given(in, options);
  const bool defaults = in.one_in(8);
  if (defaults) {
    options = {};
    options.size = sizeof(options);
  }
  Room<float> x(d, shift(in));
  fill(in, &x, d);
  finch_cut start{};
  start.size = in.one_in(16) ? in.below(sizeof(finch_cut)) : sizeof(finch_cut);
  Room<finch_cut> cut(1);
  cut.set(0, start);
  cut.keep();

  const uint32_t k = selects ? in.below(12) : in.below(16);
  Room<finch_candidate> candidates(k);
  Room<float> similarities(k > 1 ? k - 1 : 0);
  const bool with_similarities = in.one_in(2);
  size_t count = 4242;
  finch_status status = FINCH_OK;
  if (selects) {
    finch_search_options how{};
    how.k = k;
    how.mode = static_cast<int32_t>(in.below(3));
    how.overfetch = in.one_in(2) ? 0 : in.below(20);
    const size_t allow_at = in.below(6);
    if (allow_at < 3) how.allow = world->allows.at(allow_at);
    Sized<finch_search_options> search_given(in, how);
    status = checked(finch_select(snapshot, bandit, in.one_in(32) ? nullptr : x.get(),
                                  in.one_in(32) ? nullptr : search_given.get(), defaults ? nullptr : rank_given.get(),
                                  candidates.get(), &count, in.one_in(32) ? nullptr : cut.get(),
                                  with_similarities ? similarities.get() : nullptr));
    if (status != FINCH_OK) FUZZ_CHECK(count == 4242, "a failed select wrote count");
  } else {
    count = k;
    Room<uint64_t> keys(count);
    Room<float> semantic(count);
    std::vector<uint64_t> pool = note.keys;
    for (size_t i = 0; i < count; ++i) {
      size_t from = pool.empty() ? 0 : in.byte() % pool.size();
      keys.set(i, pool.empty() || in.one_in(64) ? in.wide() : pool[from]);
      if (!pool.empty() && !in.one_in(64)) pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(from));
      semantic.set(i, in.number());
    }
    status =
        checked(finch_rank(snapshot, bandit, in.one_in(32) ? nullptr : keys.get(), semantic.get(), count,
                           in.one_in(32) ? nullptr : x.get(), defaults ? nullptr : rank_given.get(), candidates.get(),
                           in.one_in(32) ? nullptr : cut.get(), with_similarities ? similarities.get() : nullptr));
  }
  if (status != FINCH_OK) {
    FUZZ_CHECK(candidates.untouched() && cut.untouched() && similarities.untouched(), "a failed call wrote");
    return;
  }
  FUZZ_CHECK(count <= k && candidates.untouched_from(count));
  check_ranked(snapshot, bandit, x.get(), d, options, candidates, count, cut.at(0),
               with_similarities ? similarities.get() : nullptr);
}

}  // namespace finch_fuzz
