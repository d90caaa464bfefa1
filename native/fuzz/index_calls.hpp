// Calls on indexes, snapshots and allow sets.
#pragma once

#include "world.hpp"

namespace finch_fuzz {

inline void note_snapshot(World* world, size_t at, finch_snapshot* snapshot, uint32_t d) {
  SnapshotNote& note = world->snapshot_notes[at];
  note.dimension = d;
  note.keys = snapshot == nullptr ? std::vector<uint64_t>{} : keys_of(snapshot);
  note.vectors = snapshot == nullptr ? std::vector<float>{} : vectors_of(snapshot, note.keys, d);
}

// What a snapshot held when it was taken it holds still.
inline void check_snapshot(const World& world, size_t at) {
  const finch_snapshot* snapshot = world.snapshots.at(at);
  if (snapshot == nullptr) return;
  const SnapshotNote& note = world.snapshot_notes[at];
  FUZZ_CHECK(keys_of(snapshot) == note.keys && finch_snapshot_count(snapshot) == note.keys.size());
  const std::vector<float> vectors = vectors_of(snapshot, note.keys, note.dimension);
  FUZZ_CHECK(
      vectors.size() == note.vectors.size() &&
      (vectors.empty() || std::memcmp(vectors.data(), note.vectors.data(), vectors.size() * sizeof(float)) == 0));
}

inline void create_index(Input& in, World* world) {
  finch_index_options options{};
  options.dimension = in.one_in(32) ? in.word() : 1 + in.below(kMostDimension);
  options.storage = static_cast<int32_t>(in.below(in.one_in(16) ? 256 : 4));
  Sized<finch_index_options> given(in, options);
  Room<finch_index*> out(1);
  const bool no_out = in.one_in(32);
  const finch_status status =
      checked(finch_index_create(in.one_in(32) ? nullptr : given.get(), no_out ? nullptr : out.get()));
  if (status != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  FUZZ_CHECK(!given.too_small() && options.dimension >= 1 && options.dimension <= FINCH_MAX_DIMENSION &&
             options.storage <= FINCH_STORAGE_I8);
  const size_t at = world->indexes.place(in);
  world->indexes.put(at, out.at(0));
  world->index_dimensions[at] = options.dimension;
}

inline uint64_t version_of(const finch_index* index) {
  finch_index_info info{};
  info.size = sizeof(info);
  return finch_index_inspect(index, &info) == FINCH_OK ? info.version : 0;
}

inline void upsert(Input& in, World* world) {
  const size_t at = world->indexes.place(in);
  finch_index* index = world->indexes.at(at);
  const uint32_t d = index == nullptr ? 3 : world->index_dimensions[at];
  const size_t count = in.below(d > 1000 ? 2 : 20);
  Ids ids(in, count, !in.one_in(8));
  Room<float> vectors(count * d, shift(in));
  fill(in, &vectors, count * d);
  Room<float> priors(count);
  fill_shares(in, &priors, count);
  Room<uint64_t> keys(count);
  const uint64_t before = version_of(index);
  const finch_status status = checked(
      finch_index_upsert(index, in.one_in(32) ? nullptr : ids.room.get(), in.one_in(32) ? nullptr : vectors.get(),
                         count, in.one_in(2) ? nullptr : priors.get(), in.one_in(4) ? nullptr : keys.get()));
  if (status == FINCH_OK) return;
  FUZZ_CHECK(keys.untouched() && version_of(index) == before, "a failed upsert changed something");
}

inline void remove_or_rate(Input& in, World* world) {
  finch_index* index = world->indexes.at(world->indexes.place(in));
  const size_t count = in.below(6);
  Ids ids(in, count, !in.one_in(8));
  Room<float> priors(count);
  fill_shares(in, &priors, count);
  const uint64_t before = version_of(index);
  const finch_string* given = in.one_in(32) ? nullptr : ids.room.get();
  const finch_status status =
      checked(in.one_in(2) ? finch_index_remove(index, given, count)
                           : finch_index_set_priors(index, given, in.one_in(32) ? nullptr : priors.get(), count));
  if (status != FINCH_OK) FUZZ_CHECK(version_of(index) == before, "a failed change changed something");
}

inline void inspect(Input& in, World* world) {
  Sized<finch_index_info> info(in, finch_index_info{}, in.one_in(3));
  // A larger struct is only written as far as this library knows it.
  const finch_status status =
      checked(finch_index_inspect(world->indexes.at(world->indexes.place(in)), in.one_in(16) ? nullptr : info.get()));
  if (status != FINCH_OK) FUZZ_CHECK(info.untouched());
  FUZZ_CHECK(info.kept_size());
}

inline void ann(Input& in, World* world) {
  finch_index* index = world->indexes.at(world->indexes.place(in));
  if (in.one_in(4)) {
    checked(finch_index_drop_ann(index));
    return;
  }
  finch_ann_options options{};
  options.connectivity = in.one_in(8) ? in.word() : in.below(20);
  options.expansion_add = in.one_in(8) ? in.word() : in.below(40);
  options.expansion_search = in.one_in(8) ? in.word() : in.below(40);
  Sized<finch_ann_options> given(in, options);
  finch_cancel* cancel = nullptr;
  if (in.one_in(8)) {
    FUZZ_CHECK(finch_cancel_create(&cancel) == FINCH_OK);
    if (in.one_in(2)) finch_cancel_signal(cancel);
  }
  checked(finch_index_build_ann(index, in.one_in(2) ? nullptr : given.get(), cancel));
  finch_cancel_release(cancel);
}

inline void save_and_open(Input& in, World* world) {
  const size_t from = world->indexes.place(in);
  const finch_index* index = world->indexes.at(from);
  const std::string path = scratch() + (in.one_in(16) ? "/none/x" : "/abi.finch");
  const std::string name(in.below(66), 'n');
  const finch_blob blobs[2] = {{{in.one_in(16) ? nullptr : name.data(), name.size()}, "data", in.below(5)},
                               {{"n", in.one_in(2) ? size_t{1} : size_t{0}}, in.one_in(8) ? nullptr : "x", 1}};
  const size_t count = in.below(3);
  const finch_status saved =
      checked(finch_index_save(index, in.one_in(16) ? nullptr : path.c_str(), in.one_in(16) ? nullptr : blobs, count));
  Room<finch_index*> out(1);
  // Unverified as well: these files were just written.
  Sized<finch_open_options> how(in, {0, in.below(in.one_in(8) ? 4 : 2), in.one_in(16) ? in.below(4) : 0});
  const finch_status opened =
      checked(finch_index_open(in.one_in(16) ? nullptr : path.c_str(), in.one_in(2) ? nullptr : how.get(), out.get()));
  if (opened != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  if (saved == FINCH_OK) {
    finch_snapshot* a = nullptr;
    finch_snapshot* b = nullptr;
    FUZZ_CHECK(finch_index_snapshot(index, &a) == FINCH_OK && finch_index_snapshot(out.at(0), &b) == FINCH_OK);
    const std::vector<uint64_t> keys = keys_of(a);
    FUZZ_CHECK(keys == keys_of(b));
    const uint32_t d = world->index_dimensions[from];
    FUZZ_CHECK(vectors_of(a, keys, d) == vectors_of(b, keys, d));
    finch_snapshot_release(a);
    finch_snapshot_release(b);
    const void* data = nullptr;
    size_t size = 0;
    checked(finch_index_blob(out.at(0), {name.data(), name.size()}, &data, &size));
    const size_t at = world->indexes.place(in);
    world->index_dimensions[at] = d;
    world->indexes.put(at, out.at(0));
  } else {
    finch_index_release(out.at(0));  // of an earlier input
  }
}

inline void take_snapshot(Input& in, World* world) {
  const size_t from = world->indexes.place(in);
  const size_t at = world->snapshots.place(in);
  check_snapshot(*world, at);
  Room<finch_snapshot*> out(1);
  if (checked(finch_index_snapshot(world->indexes.at(from), in.one_in(32) ? nullptr : out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  if (in.one_in(4)) {
    finch_snapshot_retain(out.at(0));
    finch_snapshot_release(out.at(0));
  }
  world->snapshots.put(at, out.at(0));
  note_snapshot(world, at, out.at(0), world->index_dimensions[from]);
}

inline void read_snapshot(Input& in, World* world) {
  const size_t at = world->snapshots.place(in);
  const finch_snapshot* snapshot = world->snapshots.at(at);
  const SnapshotNote& note = world->snapshot_notes[at];
  const size_t capacity = in.below(24);
  Room<uint64_t> keys(capacity);
  size_t count = 77;
  if (checked(finch_snapshot_keys(snapshot, in.one_in(4) ? nullptr : keys.get(), capacity, &count)) == FINCH_OK) {
    FUZZ_CHECK(count == note.keys.size());
  }
  const size_t n = in.below(8);
  Ids ids(in, n, false);
  Room<uint64_t> found(n);
  if (checked(finch_snapshot_find(snapshot, in.one_in(16) ? nullptr : ids.room.get(), n,
                                  in.one_in(16) ? nullptr : found.get())) != FINCH_OK) {
    FUZZ_CHECK(found.untouched());
  }
  Room<uint64_t> asked(n);
  for (size_t i = 0; i < n; ++i) {
    asked.set(i, note.keys.empty() || in.one_in(16) ? in.wide() : note.keys[in.byte() % note.keys.size()]);
  }
  const uint32_t d = snapshot == nullptr ? 1 : note.dimension;
  Room<finch_string> names(n);
  Room<float> vectors(n * d, shift(in));
  Room<float> priors(n);
  if (checked(finch_snapshot_rows(snapshot, in.one_in(16) ? nullptr : asked.get(), n, names.get(), vectors.get(),
                                  priors.get())) != FINCH_OK) {
    FUZZ_CHECK(names.untouched() && vectors.untouched() && priors.untouched());
  }
}

inline void make_allow(Input& in, World* world) {
  const finch_snapshot* snapshot = world->snapshots.at(world->snapshots.place(in));
  const size_t count = in.below(12);
  Ids ids(in, count, false);
  Room<finch_allow*> out(1);
  size_t matched = 99;
  if (checked(finch_allow_create(snapshot, in.one_in(16) ? nullptr : ids.room.get(), count, out.get(),
                                 in.one_in(4) ? nullptr : &matched)) != FINCH_OK) {
    FUZZ_CHECK(out.untouched() && matched == 99);
    return;
  }
  const size_t at = world->allows.place(in);
  world->allows.put(at, out.at(0));
  AllowNote& note = world->allow_notes[at];
  note = {};
  for (size_t i = 0; i < count; ++i) {
    const finch_string id = ids.room.at(i);
    if (id.data != nullptr && id.size > 0) note.ids.insert({id.data, id.size});
  }
  for (const std::string& id : note.ids) {
    if (id.size() > FINCH_MAX_ID_BYTES) continue;
    const finch_string name{id.data(), id.size()};
    uint64_t key = 0;
    FUZZ_CHECK(finch_snapshot_find(snapshot, &name, 1, &key) == FINCH_OK);
    note.matched += key != FINCH_NO_KEY;
  }
  if (matched != 99) FUZZ_CHECK(matched == note.matched, "%zu matched, %zu are there", matched, note.matched);
}

}  // namespace finch_fuzz
