// Snapshots: one consistent state, its keys, ids, vectors and priors; allow sets.
#include <vector>

#include "entry.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

Napi::Value snapshot_close(const Arguments& arguments) {
  arguments.close<finch_snapshot>(0, "snapshot");
  return arguments.env().Undefined();
}

const finch_snapshot* snapshot_of(const Arguments& arguments) {
  return arguments.handle<finch_snapshot>(0, "snapshot").object.get();
}

Napi::Value snapshot_version(const Arguments& arguments) {
  return Napi::Number::New(arguments.env(), static_cast<double>(finch_snapshot_version(snapshot_of(arguments))));
}

Napi::Value snapshot_count(const Arguments& arguments) {
  return Napi::Number::New(arguments.env(), static_cast<double>(finch_snapshot_count(snapshot_of(arguments))));
}

Napi::Value snapshot_keys(const Arguments& arguments) {
  const finch_snapshot* snapshot = snapshot_of(arguments);
  std::vector<uint64_t> keys(finch_snapshot_count(snapshot));
  size_t count = 0;
  check(finch_snapshot_keys(snapshot, keys.data(), keys.size(), &count));
  return keys_array(arguments.env(), keys);
}

// Reading ids may run JavaScript, which may close the snapshot: functions below hold it themselves.
std::shared_ptr<finch_snapshot> hold_snapshot(const Arguments& arguments) {
  return arguments.handle<finch_snapshot>(0, "snapshot").object;
}

Napi::Value snapshot_find(const Arguments& arguments) {
  const std::shared_ptr<finch_snapshot> snapshot = hold_snapshot(arguments);
  const Strings ids = arguments.ids(1);
  std::vector<uint64_t> keys(ids.size());
  check(finch_snapshot_find(snapshot.get(), ids.data(), ids.size(), keys.data()));
  return keys_array(arguments.env(), keys);
}

Napi::Value snapshot_ids(const Arguments& arguments) {
  Napi::Env env = arguments.env();
  const std::vector<uint64_t> keys = arguments.keys(1);
  std::vector<finch_string> ids(keys.size());
  check(finch_snapshot_rows(snapshot_of(arguments), keys.data(), keys.size(), ids.data(), nullptr, nullptr));
  napi_value array = nullptr;
  must(env, napi_create_array_with_length(env, ids.size(), &array));
  for (size_t i = 0; i < ids.size(); ++i) {
    Napi::HandleScope scope(env);
    must(env, napi_set_element(env, array, static_cast<uint32_t>(i), utf8(env, ids[i].data, ids[i].size)));
  }
  return {env, array};
}

Napi::Value snapshot_vectors(const Arguments& arguments) {
  const Box<finch_snapshot>& box = arguments.handle<finch_snapshot>(0, "snapshot");
  const std::vector<uint64_t> keys = arguments.keys(1);
  const Array<float> vectors = make_array<float>(arguments.env(), keys.size() * box.dimension);
  check(finch_snapshot_rows(box.object.get(), keys.data(), keys.size(), nullptr, vectors.data.data(), nullptr));
  return {arguments.env(), vectors.value};
}

Napi::Value snapshot_priors(const Arguments& arguments) {
  const finch_snapshot* snapshot = snapshot_of(arguments);
  const std::vector<uint64_t> keys = arguments.keys(1);
  const Array<float> priors = make_array<float>(arguments.env(), keys.size());
  check(finch_snapshot_rows(snapshot, keys.data(), keys.size(), nullptr, nullptr, priors.data.data()));
  return {arguments.env(), priors.value};
}

Napi::Value allow_create(const Arguments& arguments) {
  Napi::Env env = arguments.env();
  const std::shared_ptr<finch_snapshot> snapshot = hold_snapshot(arguments);
  const Strings ids = arguments.ids(1);
  finch_allow* allow = nullptr;
  size_t matched = 0;
  check(finch_allow_create(snapshot.get(), ids.data(), ids.size(), &allow, &matched));
  std::shared_ptr<finch_allow> owned = own(allow);
  Napi::Object object = Napi::Object::New(env);
  set(env, object, "allow", make_handle(env, std::move(owned)));
  set_number(env, object, "matched", static_cast<double>(matched));
  return object;
}

constexpr Export kExports[] = {
    {"snapshotClose", sync_entry<snapshot_close>},     {"snapshotVersion", sync_entry<snapshot_version>},
    {"snapshotCount", sync_entry<snapshot_count>},     {"snapshotKeys", sync_entry<snapshot_keys>},
    {"snapshotFind", sync_entry<snapshot_find>},       {"snapshotIds", sync_entry<snapshot_ids>},
    {"snapshotVectors", sync_entry<snapshot_vectors>}, {"snapshotPriors", sync_entry<snapshot_priors>},
    {"allowCreate", sync_entry<allow_create>},
};

}  // namespace

std::span<const Export> snapshot_exports() { return kExports; }

}  // namespace finch::node
