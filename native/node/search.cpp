// Search and cosine.
#include <algorithm>
#include <vector>

#include "async_call.hpp"
#include "entry.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

// Outputs of finch_search: `count` rows of `k`, zero where a row has fewer.
struct Found {
  Found(size_t count, uint32_t k) : counts(count), keys(count * k), scores(count * k) {}
  std::vector<uint32_t> counts;
  std::vector<uint64_t> keys;
  std::vector<float> scores;
};

Napi::Value found_object(Napi::Env env, const Found& found) {
  Napi::Object object = Napi::Object::New(env);
  set(env, object, "counts", copy_array<uint32_t>(env, found.counts));
  set(env, object, "keys", keys_array(env, found.keys));
  set(env, object, "scores", copy_array<float>(env, found.scores));
  return object;
}

// The checked arguments of a search; queries are a view.
struct Search {
  std::shared_ptr<finch_snapshot> snapshot;
  SearchOptions options;
  std::span<const float> queries;
  size_t count;
};

Search read_search(const Arguments& arguments) {
  const Box<finch_snapshot>& box = arguments.handle<finch_snapshot>(0, "snapshot");
  const uint32_t dimension = box.dimension;
  Search search;
  search.snapshot = box.object;
  search.options = read_search_options(arguments.env(), arguments[2], "options");
  search.queries = arguments.floats(1, "queries");
  search.count = count_vectors("queries", search.queries.size(), dimension);
  constexpr size_t kMostResults = size_t{1} << 27;
  if (search.count > kMostResults / search.options.k) {
    refuse_argument("Expected queries x options.k to be at most 2^27 results but it is " +
                    std::to_string(search.count) + " x " + std::to_string(search.options.k) +
                    ". Search fewer queries at a time or lower k.");
  }
  return search;
}

Napi::Value search_sync(const Arguments& arguments) {
  const Search search = read_search(arguments);
  Found found(search.count, search.options.k);
  const finch_search_options options = search.options.view(nullptr);
  check(finch_search(search.snapshot.get(), search.queries.data(), search.count, &options, found.keys.data(),
                     found.scores.data(), found.counts.data()));
  return found_object(arguments.env(), found);
}

// Queued by the core, which takes waiting searches together.
class SearchCall final : public AsyncCall {
 public:
  SearchCall(Search search, std::shared_ptr<finch_cancel> cancel)
      : AsyncCall(std::move(cancel)),
        snapshot_(std::move(search.snapshot)),
        options_(std::move(search.options)),
        queries_(search.queries.begin(), search.queries.end()),
        found_(search.count, options_.k) {}

 private:
  finch_status submit() override {
    const finch_search_options options = options_.view(cancel());
    return finch_search_submit(snapshot_.get(), queries_.data(), found_.counts.size(), &options, on_done, this);
  }
  finch_status execute() override { return FINCH_INTERNAL; }  // never queued by the base

  static void on_done(void* user, finch_status status, const char* message, const uint64_t* keys, const float* scores,
                      const uint32_t* counts) {
    auto* call = static_cast<SearchCall*>(user);
    Found& found = call->found_;
    const size_t k = call->options_.k;
    for (size_t q = 0; status == FINCH_OK && q < found.counts.size(); ++q) {
      found.counts[q] = counts[q];
      std::copy_n(keys + q * k, counts[q], found.keys.data() + q * k);
      std::copy_n(scores + q * k, counts[q], found.scores.data() + q * k);
    }
    call->finish(status, message);
  }
  Napi::Value result(Napi::Env env) override { return found_object(env, found_); }

  std::shared_ptr<finch_snapshot> snapshot_;
  SearchOptions options_;
  std::vector<float> queries_;
  Found found_;
};

Napi::Value search(const Arguments& arguments) {
  std::shared_ptr<finch_cancel> cancel = arguments.cancel(3);
  return AsyncCall::start(arguments.env(), std::make_unique<SearchCall>(read_search(arguments), std::move(cancel)));
}

Napi::Value search_set_wait(const Arguments& arguments) {
  check(finch_search_set_wait(arguments.whole(0, "microseconds", 0, 100000)));
  return arguments.env().Undefined();
}

Napi::Value cosine(const Arguments& arguments) {
  const uint32_t dimension = arguments.whole(2, "dimension", 1, FINCH_MAX_DIMENSION);
  const size_t count = count_vectors("a", arguments.floats(0, "a").size(), dimension);
  const Array<float> cosines = make_array<float>(arguments.env(), count);
  const std::span<const float> a = arguments.floats(0, "a");
  const std::span<const float> b = arguments.floats(1, "b");
  require_vectors("b", b.size(), count, dimension);
  check(finch_cosine(a.data(), b.data(), count, dimension, cosines.data.data()));
  return {arguments.env(), cosines.value};
}

constexpr Export kExports[] = {
    {"search", async_entry<search>},
    {"searchSync", sync_entry<search_sync>},
    {"searchSetWait", sync_entry<search_set_wait>},
    {"cosine", sync_entry<cosine>},
};

}  // namespace

std::span<const Export> search_exports() { return kExports; }

}  // namespace finch::node
