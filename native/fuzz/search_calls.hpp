// Searches: alone, in batches, by any number of threads, through the queue.
#pragma once

#include <cmath>
#include <condition_variable>
#include <mutex>

#include "world.hpp"

namespace finch_fuzz {

struct Found {
  finch_status status;
  std::vector<uint64_t> keys;
  std::vector<float> scores;
  std::vector<uint32_t> counts;
};

inline void check_row(const finch_snapshot* snapshot, const uint64_t* keys, const float* scores, uint32_t found,
                      uint32_t k, size_t allowed, const AllowNote* allow) {
  FUZZ_CHECK(found == std::min<size_t>(k, allowed), "%u found, k %u, %zu allowed", found, k, allowed);
  for (uint32_t i = 0; i < found; ++i) {
    FUZZ_CHECK(std::fabs(scores[i]) <= 1.0001f, "score %g", static_cast<double>(scores[i]));
    finch_string id{};
    FUZZ_CHECK(finch_snapshot_rows(snapshot, &keys[i], 1, &id, nullptr, nullptr) == FINCH_OK, "an unknown key");
    if (allow != nullptr) FUZZ_CHECK(allow->ids.count({id.data, id.size}) == 1, "an id that is not allowed");
    if (i == 0) continue;
    FUZZ_CHECK(scores[i - 1] > scores[i] || (scores[i - 1] == scores[i] && keys[i - 1] < keys[i]), "order at %u", i);
  }
}

struct Submitted {
  std::mutex mutex;
  std::condition_variable done;
  int calls = 0;
  size_t count = 0;
  uint32_t k = 0;
  Found found{};
};

inline void take_found(void* user, finch_status status, const char* message, const uint64_t* keys, const float* scores,
                       const uint32_t* counts) {
  auto* s = static_cast<Submitted*>(user);
  std::lock_guard lock(s->mutex);
  s->found.status = status;
  if (status == FINCH_OK) {
    s->found.counts.assign(counts, counts + s->count);
    for (size_t q = 0; q < s->count; ++q) {
      for (uint32_t i = 0; i < s->k; ++i) {
        const bool there = i < counts[q];
        s->found.keys.push_back(there ? keys[q * s->k + i] : 0);
        s->found.scores.push_back(there ? scores[q * s->k + i] : 0.0f);
      }
    }
  } else {
    FUZZ_CHECK(keys == nullptr && scores == nullptr && counts == nullptr && message != nullptr && *message != '\0');
  }
  ++s->calls;
  s->done.notify_all();
}

inline void search(Input& in, World* world) {
  const size_t at = world->snapshots.place(in);
  finch_snapshot* snapshot = world->snapshots.at(at);
  const SnapshotNote& note = world->snapshot_notes[at];
  const uint32_t d = snapshot == nullptr ? 2 : note.dimension;
  finch_search_options options{};
  options.k = in.one_in(32) ? in.word() : in.one_in(200) ? FINCH_MAX_K : in.below(14);
  options.mode = static_cast<int32_t>(in.below(in.one_in(16) ? 200 : 3)) - (in.one_in(64) ? 1 : 0);
  const size_t allow_at = in.below(6);
  if (allow_at < 3) options.allow = world->allows.at(allow_at);
  options.threads = in.one_in(4) ? in.word() : in.below(9);
  options.overfetch = in.one_in(8) ? in.word() : in.one_in(2) ? 0 : in.below(20);
  options.expansion = in.one_in(8) ? in.word() : in.one_in(2) ? 0 : in.below(40);
  finch_cancel* cancel = nullptr;
  if (in.one_in(16)) {
    FUZZ_CHECK(finch_cancel_create(&cancel) == FINCH_OK);
    if (in.one_in(2)) finch_cancel_signal(cancel);
    options.cancel = cancel;
  }
  Sized<finch_search_options> given(in, options);
  const size_t count = in.below(in.one_in(8) ? 40 : 5);
  Room<float> queries(count * d, shift(in));
  fill(in, &queries, count * d);
  const bool usual_k = options.k >= 1 && options.k <= FINCH_MAX_K;
  const size_t room = usual_k ? count * options.k : 4;
  Room<uint64_t> keys(room);
  Room<float> scores(room);
  Room<uint32_t> counts(count);
  const finch_status status =
      checked(finch_search(snapshot, in.one_in(32) ? nullptr : queries.get(), count,
                           in.one_in(64) ? nullptr : given.get(), in.one_in(64) ? nullptr : keys.get(),
                           in.one_in(64) ? nullptr : scores.get(), in.one_in(64) ? nullptr : counts.get()));
  if (status != FINCH_OK) {
    FUZZ_CHECK(keys.untouched() && scores.untouched() && counts.untouched(), "a failed search wrote");
  } else {
    FUZZ_CHECK(usual_k && !given.too_small());
  }
  for (size_t q = 0; q < count && status == FINCH_OK; ++q) {
    const AllowNote* allow = options.allow == nullptr ? nullptr : &world->allow_notes[allow_at];
    const size_t first = q * options.k;
    check_row(snapshot, keys.get() + first, scores.get() + first, counts.at(q), options.k,
              allow == nullptr ? note.keys.size() : allow->matched, allow);
    FUZZ_CHECK(keys.untouched_between(first + counts.at(q), first + options.k) &&
               scores.untouched_between(first + counts.at(q), first + options.k));
  }
  // The same bits one query at a time, by one thread, and through the queue.
  if (status == FINCH_OK && count > 0 && in.one_in(2)) {
    finch_search_options alone = options;
    alone.size = sizeof(alone);
    alone.threads = 1;
    const size_t q = in.byte() % count;
    std::vector<uint64_t> k1(options.k);
    std::vector<float> s1(options.k);
    uint32_t c1 = 0;
    const auto* query = reinterpret_cast<const float*>(reinterpret_cast<const char*>(queries.get()) + q * d * 4);
    FUZZ_CHECK(finch_search(snapshot, query, 1, &alone, k1.data(), s1.data(), &c1) == FINCH_OK);
    FUZZ_CHECK(c1 == counts.at(q) && std::memcmp(k1.data(), keys.get() + q * options.k, c1 * 8) == 0 &&
                   std::memcmp(s1.data(), scores.get() + q * options.k, c1 * 4) == 0,
               "query %zu of %zu alone gives other results", q, count);
  }
  if (snapshot != nullptr && in.one_in(3) && room < 4096) {
    Submitted submitted;
    submitted.count = count;
    submitted.k = options.k;
    const finch_status queued =
        checked(finch_search_submit(snapshot, queries.get(), count, given.get(), take_found, &submitted));
    if (queued == FINCH_OK) {
      std::unique_lock lock(submitted.mutex);
      submitted.done.wait(lock, [&] { return submitted.calls > 0; });
      FUZZ_CHECK(submitted.calls == 1);
      if (status == FINCH_OK && submitted.found.status == FINCH_OK) {
        for (size_t q = 0; q < count; ++q) {
          FUZZ_CHECK(submitted.found.counts[q] == counts.at(q) &&
                         std::memcmp(submitted.found.keys.data() + q * options.k, keys.get() + q * options.k,
                                     counts.at(q) * sizeof(uint64_t)) == 0 &&
                         std::memcmp(submitted.found.scores.data() + q * options.k, scores.get() + q * options.k,
                                     counts.at(q) * sizeof(float)) == 0,
                     "query %zu through the queue gives other results", q);
        }
      }
    }
  }
  finch_cancel_release(cancel);
}

inline void cosine(Input& in) {
  const uint32_t d = in.one_in(16) ? (in.one_in(2) ? 0 : in.word()) : 1 + in.below(kMostDimension);
  const size_t room_d = d <= kMostDimension ? d : 1;
  const size_t count = d <= kMostDimension ? in.below(6) : 1;
  // Too large a dimension is refused before a vector is looked at; one that is only long is not tried here.
  if (d > kMostDimension && d <= FINCH_MAX_DIMENSION) return;
  Room<float> a(count * room_d, shift(in));
  Room<float> b(count * room_d, shift(in));
  fill(in, &a, count * room_d);
  fill(in, &b, count * room_d);
  Room<float> out(count);
  if (checked(finch_cosine(in.one_in(32) ? nullptr : a.get(), in.one_in(32) ? nullptr : b.get(), count, d,
                           in.one_in(32) ? nullptr : out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  for (size_t i = 0; i < count; ++i) FUZZ_CHECK(std::fabs(out.at(i)) <= 1.0001f);
}

}  // namespace finch_fuzz
