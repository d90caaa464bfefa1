// Index: rows, priors, the ANN graph, files.
#include <vector>

#include "async_call.hpp"
#include "entry.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

Napi::Value make_index_handle(Napi::Env env, std::shared_ptr<finch_index> index) {
  finch_index_info info = {};
  info.size = sizeof(info);
  check(finch_index_inspect(index.get(), &info));
  return make_handle(env, std::move(index), info.dimension);
}

constexpr const char* kStorages[] = {"f32", "bf16", "f16", "i8"};

Napi::Value index_create(const Arguments& arguments) {
  finch_index_options options = {};
  options.size = sizeof(options);
  options.dimension = arguments.whole(0, "dimension", 1, FINCH_MAX_DIMENSION);
  options.storage = Options(arguments.env(), arguments[1], "options", true)
                        .choice("storage",
                                {{kStorages[FINCH_STORAGE_F32], FINCH_STORAGE_F32},
                                 {kStorages[FINCH_STORAGE_BF16], FINCH_STORAGE_BF16},
                                 {kStorages[FINCH_STORAGE_F16], FINCH_STORAGE_F16},
                                 {kStorages[FINCH_STORAGE_I8], FINCH_STORAGE_I8}},
                                true);
  finch_index* index = nullptr;
  check(finch_index_create(&options, &index));
  return make_handle(arguments.env(), own(index), options.dimension);
}

class OpenCall final : public AsyncCall {
 public:
  OpenCall(std::string path, const finch_open_options& options) : path_(std::move(path)), options_(options) {}

 private:
  finch_status execute() override {
    finch_index* index = nullptr;
    const finch_status status = finch_index_open(path_.c_str(), &options_, &index);
    if (status == FINCH_OK) index_ = own(index);
    return status;
  }
  Napi::Value result(Napi::Env env) override { return make_index_handle(env, std::move(index_)); }

  std::string path_;
  finch_open_options options_;
  std::shared_ptr<finch_index> index_;
};

Napi::Value index_open(const Arguments& arguments) {
  std::string path = arguments.path(0, "path");
  const Options given(arguments.env(), arguments[1], "options", true);
  finch_open_options options = {};
  options.size = sizeof(options);
  options.map = given.boolean_or("map", false) ? 1 : 0;
  options.unverified = given.boolean_or("verify", true) ? 0 : 1;
  return AsyncCall::start(arguments.env(), std::make_unique<OpenCall>(std::move(path), options));
}

Napi::Value index_close(const Arguments& arguments) {
  arguments.close<finch_index>(0, "index");
  return arguments.env().Undefined();
}

// The checked arguments of an upsert; vectors and priors are views.
struct Upsert {
  std::shared_ptr<finch_index> index;
  Strings ids;
  std::span<const float> vectors;
  std::optional<std::span<const float>> priors;
};

Upsert read_upsert(const Arguments& arguments) {
  const Box<finch_index>& box = arguments.handle<finch_index>(0, "index");
  Upsert upsert;
  upsert.index = box.object;
  const uint32_t dimension = box.dimension;
  upsert.ids = arguments.ids(1);
  upsert.vectors = arguments.floats(2, "vectors");
  upsert.priors = arguments.optional_floats(3, "priors");
  require_vectors("vectors", upsert.vectors.size(), upsert.ids.size(), dimension);
  if (upsert.priors.has_value()) require_length("priors", upsert.priors->size(), upsert.ids.size(), "id");
  return upsert;
}

Napi::Value index_upsert_sync(const Arguments& arguments) {
  const Upsert upsert = read_upsert(arguments);
  std::vector<uint64_t> keys(upsert.ids.size());
  check(finch_index_upsert(upsert.index.get(), upsert.ids.data(), upsert.vectors.data(), upsert.ids.size(),
                           upsert.priors.has_value() ? upsert.priors->data() : nullptr, keys.data()));
  return keys_array(arguments.env(), keys);
}

class UpsertCall final : public AsyncCall {
 public:
  explicit UpsertCall(Upsert upsert)
      : index_(std::move(upsert.index)),
        ids_(std::move(upsert.ids)),
        vectors_(upsert.vectors.begin(), upsert.vectors.end()),
        has_priors_(upsert.priors.has_value()),
        keys_(ids_.size()) {
    if (has_priors_) priors_.assign(upsert.priors->begin(), upsert.priors->end());
  }

 private:
  finch_status execute() override {
    return finch_index_upsert(index_.get(), ids_.data(), vectors_.data(), ids_.size(),
                              has_priors_ ? priors_.data() : nullptr, keys_.data());
  }
  Napi::Value result(Napi::Env env) override { return keys_array(env, keys_); }

  std::shared_ptr<finch_index> index_;
  Strings ids_;
  std::vector<float> vectors_;
  bool has_priors_;
  std::vector<float> priors_;
  std::vector<uint64_t> keys_;
};

Napi::Value index_upsert(const Arguments& arguments) {
  return AsyncCall::start(arguments.env(), std::make_unique<UpsertCall>(read_upsert(arguments)));
}

class SetPriorsCall final : public AsyncCall {
 public:
  SetPriorsCall(std::shared_ptr<finch_index> index, Strings ids, std::span<const float> priors)
      : index_(std::move(index)), ids_(std::move(ids)), priors_(priors.begin(), priors.end()) {}

 private:
  finch_status execute() override {
    return finch_index_set_priors(index_.get(), ids_.data(), priors_.data(), ids_.size());
  }
  Napi::Value result(Napi::Env env) override { return env.Undefined(); }

  std::shared_ptr<finch_index> index_;
  Strings ids_;
  std::vector<float> priors_;
};

Napi::Value index_set_priors(const Arguments& arguments) {
  std::shared_ptr<finch_index> index = arguments.handle<finch_index>(0, "index").object;
  Strings ids = arguments.ids(1);
  const std::span<const float> priors = arguments.floats(2, "priors");
  require_length("priors", priors.size(), ids.size(), "id");
  return AsyncCall::start(arguments.env(), std::make_unique<SetPriorsCall>(std::move(index), std::move(ids), priors));
}

class RemoveCall final : public AsyncCall {
 public:
  RemoveCall(std::shared_ptr<finch_index> index, Strings ids) : index_(std::move(index)), ids_(std::move(ids)) {}

 private:
  finch_status execute() override { return finch_index_remove(index_.get(), ids_.data(), ids_.size()); }
  Napi::Value result(Napi::Env env) override { return env.Undefined(); }

  std::shared_ptr<finch_index> index_;
  Strings ids_;
};

Napi::Value index_remove(const Arguments& arguments) {
  std::shared_ptr<finch_index> index = arguments.handle<finch_index>(0, "index").object;
  return AsyncCall::start(arguments.env(), std::make_unique<RemoveCall>(std::move(index), arguments.ids(1)));
}

Napi::Value index_inspect(const Arguments& arguments) {
  finch_index_info info = {};
  info.size = sizeof(info);
  check(finch_index_inspect(arguments.handle<finch_index>(0, "index").object.get(), &info));
  Napi::Object object = Napi::Object::New(arguments.env());
  set_number(arguments.env(), object, "count", static_cast<double>(info.count));
  set_number(arguments.env(), object, "slots", static_cast<double>(info.slots));
  set_number(arguments.env(), object, "version", static_cast<double>(info.version));
  set_number(arguments.env(), object, "vectorBytes", static_cast<double>(info.vector_bytes));
  set_number(arguments.env(), object, "annBytes", static_cast<double>(info.ann_bytes));
  set_number(arguments.env(), object, "annCount", static_cast<double>(info.ann_count));
  set_number(arguments.env(), object, "dimension", info.dimension);
  set_number(arguments.env(), object, "codeBytes", static_cast<double>(info.code_bytes));
  set_number(arguments.env(), object, "mappedBytes", static_cast<double>(info.mapped_bytes));
  object.Set("storage", Napi::String::New(arguments.env(), kStorages[info.storage]));
  return object;
}

class BuildAnnCall final : public AsyncCall {
 public:
  BuildAnnCall(std::shared_ptr<finch_index> index, const finch_ann_options& options,
               std::shared_ptr<finch_cancel> cancel)
      : AsyncCall(std::move(cancel)), index_(std::move(index)), options_(options) {}

 private:
  finch_status execute() override { return finch_index_build_ann(index_.get(), &options_, cancel()); }
  Napi::Value result(Napi::Env env) override { return env.Undefined(); }

  std::shared_ptr<finch_index> index_;
  finch_ann_options options_;
};

Napi::Value index_build_ann(const Arguments& arguments) {
  std::shared_ptr<finch_index> index = arguments.handle<finch_index>(0, "index").object;
  const finch_ann_options options = read_ann_options(arguments.env(), arguments[1], "options");
  return AsyncCall::start(arguments.env(),
                          std::make_unique<BuildAnnCall>(std::move(index), options, arguments.cancel(2)));
}

Napi::Value index_drop_ann(const Arguments& arguments) {
  check(finch_index_drop_ann(arguments.handle<finch_index>(0, "index").object.get()));
  return arguments.env().Undefined();
}

struct Blob {
  std::string name;
  std::vector<uint8_t> data;
};

class SaveCall final : public AsyncCall {
 public:
  SaveCall(std::shared_ptr<finch_index> index, std::string path, std::vector<Blob> blobs)
      : index_(std::move(index)), path_(std::move(path)), blobs_(std::move(blobs)) {}

 private:
  finch_status execute() override {
    std::vector<finch_blob> views;
    views.reserve(blobs_.size());
    for (const Blob& blob : blobs_) {
      views.push_back({{blob.name.data(), blob.name.size()}, blob.data.data(), blob.data.size()});
    }
    return finch_index_save(index_.get(), path_.c_str(), views.data(), views.size());
  }
  Napi::Value result(Napi::Env env) override { return env.Undefined(); }

  std::shared_ptr<finch_index> index_;
  std::string path_;
  std::vector<Blob> blobs_;
};

std::vector<Blob> read_blobs(napi_env env, napi_value value) {
  bool is = false;
  must(env, napi_is_array(env, value, &is));
  if (!is) refuse_argument("Expected blobs to be an array but received " + describe(env, value) + ".");
  uint32_t count = 0;
  must(env, napi_get_array_length(env, value, &count));
  std::vector<Blob> blobs;
  for (uint32_t i = 0; i < count; ++i) {
    napi_value element = nullptr;
    must(env, napi_get_element(env, value, i, &element));
    const Options options(env, element, "blobs[" + std::to_string(i) + "]", false);
    Blob blob;
    blob.name = read_string(env, options.get("name"), options.name_of("name"), Surrogates::refuse);
    const std::span<const uint8_t> data = read_bytes(env, options.get("data"), options.name_of("data"));
    blob.data.assign(data.begin(), data.end());
    blobs.push_back(std::move(blob));
  }
  return blobs;
}

Napi::Value index_save(const Arguments& arguments) {
  std::shared_ptr<finch_index> index = arguments.handle<finch_index>(0, "index").object;
  std::string path = arguments.path(1, "path");
  return AsyncCall::start(arguments.env(), std::make_unique<SaveCall>(std::move(index), std::move(path),
                                                                      read_blobs(arguments.env(), arguments[2])));
}

Napi::Value index_blob(const Arguments& arguments) {
  const std::shared_ptr<finch_index> index = arguments.handle<finch_index>(0, "index").object;
  const std::string name = read_string(arguments.env(), arguments[1], "name", Surrogates::refuse);
  const void* data = nullptr;
  size_t size = 0;
  const finch_status status = finch_index_blob(index.get(), {name.data(), name.size()}, &data, &size);
  if (status == FINCH_UNKNOWN_ID) return arguments.env().Undefined();
  check(status);
  return {arguments.env(), copy_array<uint8_t>(arguments.env(), {static_cast<const uint8_t*>(data), size})};
}

Napi::Value index_snapshot(const Arguments& arguments) {
  const Box<finch_index>& box = arguments.handle<finch_index>(0, "index");
  finch_snapshot* snapshot = nullptr;
  check(finch_index_snapshot(box.object.get(), &snapshot));
  return make_handle(arguments.env(), own(snapshot), box.dimension);
}

constexpr Export kExports[] = {
    {"indexCreate", sync_entry<index_create>},
    {"indexOpen", async_entry<index_open>},
    {"indexClose", sync_entry<index_close>},
    {"indexUpsert", async_entry<index_upsert>},
    {"indexUpsertSync", sync_entry<index_upsert_sync>},
    {"indexSetPriors", async_entry<index_set_priors>},
    {"indexRemove", async_entry<index_remove>},
    {"indexInspect", sync_entry<index_inspect>},
    {"indexBuildAnn", async_entry<index_build_ann>},
    {"indexDropAnn", sync_entry<index_drop_ann>},
    {"indexSave", async_entry<index_save>},
    {"indexBlob", sync_entry<index_blob>},
    {"indexSnapshot", sync_entry<index_snapshot>},
};

}  // namespace

std::span<const Export> index_exports() { return kExports; }

}  // namespace finch::node
