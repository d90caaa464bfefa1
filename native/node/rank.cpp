// Fusion, and the hot path: rank what was found, or search and rank in one call.
#include <algorithm>
#include <memory>
#include <vector>

#include "arm_scores.hpp"
#include "async_call.hpp"
#include "cut.hpp"
#include "entry.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

Napi::Value fuse(const Arguments& arguments) {
  const std::optional<finch_weights> weights = read_weights(arguments.env(), arguments[4], "weights");
  const std::span<const float> semantic = arguments.floats(0, "semantic");
  const auto optional = [&](size_t i, const char* name) -> const float* {
    const std::optional<std::span<const float>> values = arguments.optional_floats(i, name);
    if (!values.has_value()) return nullptr;
    require_length(name, values->size(), semantic.size(), "semantic score");
    return values->data();
  };
  const float* p = optional(1, "p");
  const float* prior = optional(2, "prior");
  const float* availability = optional(3, "availability");
  const Array<float> fused = make_array<float>(arguments.env(), semantic.size());
  check(finch_fuse(semantic.data(), p, prior, availability, semantic.size(), weights.has_value() ? &*weights : nullptr,
                   fused.data.data()));
  return {arguments.env(), fused.value};
}

// Outputs of finch_rank and finch_select, with room for `capacity` candidates.
struct Ranked {
  explicit Ranked(size_t capacity)
      : candidates(std::make_unique_for_overwrite<finch_candidate[]>(capacity)), similarities(capacity) {
    cut.size = sizeof(cut);
  }
  std::unique_ptr<finch_candidate[]> candidates;
  size_t count = 0;
  finch_cut cut = {};
  std::vector<float> similarities;
};

// Candidates' ids point into the snapshot, which the caller holds.
Napi::Value ranked_object(Napi::Env env, const Ranked& ranked) {
  const std::span<const finch_candidate> candidates(ranked.candidates.get(), ranked.count);
  const size_t count = candidates.size();
  const size_t neighbours = ranked.cut.n == 0 ? 0 : ranked.cut.n - 1;
  SharedBuffer buffer(env, SharedBuffer::bytes<double>(count) + 4 * SharedBuffer::bytes<float>(count) +
                               SharedBuffer::bytes<float>(neighbours) + arm_scores_bytes(count));
  const Array<double> keys = buffer.take<double>(count);
  const Array<float> semantic = buffer.take<float>(count);
  const Array<float> prior = buffer.take<float>(count);
  const Array<float> score = buffer.take<float>(count);
  const Array<uint32_t> semantic_rank = buffer.take<uint32_t>(count);
  const Array<float> similarities = buffer.take<float>(neighbours);
  std::copy_n(ranked.similarities.begin(), neighbours, similarities.data.begin());
  napi_value ids = nullptr;
  must(env, napi_create_array_with_length(env, candidates.size(), &ids));
  for (size_t i = 0; i < candidates.size(); ++i) {
    const finch_candidate& candidate = candidates[i];
    keys.data[i] = static_cast<double>(candidate.key);
    semantic.data[i] = candidate.semantic;
    prior.data[i] = candidate.prior;
    score.data[i] = candidate.score;
    semantic_rank.data[i] = candidate.semantic_rank;
    Napi::HandleScope scope(env);
    must(env, napi_set_element(env, ids, static_cast<uint32_t>(i), utf8(env, candidate.id.data, candidate.id.size)));
  }
  Napi::Object object = Napi::Object::New(env);
  set(env, object, "keys", keys.value);
  set(env, object, "ids", ids);
  set(env, object, "semantic", semantic.value);
  set(env, object, "prior", prior.value);
  set(env, object, "score", score.value);
  set(env, object, "semanticRank", semantic_rank.value);
  set_arm_scores(env, object, buffer, count, [&](size_t i) -> const finch_arm_score& { return candidates[i].arm; });
  set(env, object, "similarities", similarities.value);
  set(env, object, "cut", cut_object(env, ranked.cut));
  return object;
}

// The handles both need; they are held, because reading options may run JavaScript that closes them.
struct Held {
  std::shared_ptr<finch_snapshot> snapshot;
  std::shared_ptr<finch_bandit> bandit;
  uint32_t dimension;
};

Held hold(const Arguments& arguments) {
  const Box<finch_snapshot>& snapshot = arguments.handle<finch_snapshot>(0, "snapshot");
  const Box<finch_bandit>* bandit = arguments.optional_handle<finch_bandit>(1, "bandit");
  if (bandit != nullptr && bandit->dimension != snapshot.dimension) {
    refuse(FINCH_DIMENSION, "Expected a bandit of the snapshot's dimension " + std::to_string(snapshot.dimension) +
                                " but this one has " + std::to_string(bandit->dimension) +
                                ". Create it with the index's dimension.");
  }
  return {snapshot.object, bandit == nullptr ? nullptr : bandit->object, snapshot.dimension};
}

Napi::Value rank(const Arguments& arguments) {
  const Held held = hold(arguments);
  const RankOptions rank = read_rank_options(arguments.env(), arguments[5], "options");
  const std::vector<uint64_t> keys = arguments.keys(2);
  const std::span<const float> semantic = arguments.floats(3, "semantic");
  const std::span<const float> x = arguments.floats(4, "x");
  require_length("semantic", semantic.size(), keys.size(), "key");
  require_vectors("x", x.size(), 1, held.dimension);
  Ranked ranked(keys.size());
  const finch_rank_options options = rank.view();
  check(finch_rank(held.snapshot.get(), held.bandit.get(), keys.data(), semantic.data(), keys.size(), x.data(),
                   &options, ranked.candidates.get(), &ranked.cut, ranked.similarities.data()));
  ranked.count = keys.size();
  return ranked_object(arguments.env(), ranked);
}

// The checked arguments of a select; the query is a view.
struct Select {
  Held held;
  SearchOptions search;
  RankOptions rank;
  std::span<const float> query;
};

Select read_select(const Arguments& arguments) {
  Select select;
  select.held = hold(arguments);
  select.search = read_search_options(arguments.env(), arguments[3], "search");
  select.rank = read_rank_options(arguments.env(), arguments[4], "rank");
  select.query = arguments.floats(2, "query");
  require_vectors("query", select.query.size(), 1, select.held.dimension);
  return select;
}

finch_status run_select(const Select& select, const float* query, const finch_cancel* cancel, Ranked& ranked) {
  const finch_search_options search = select.search.view(cancel);
  const finch_rank_options rank = select.rank.view();
  return finch_select(select.held.snapshot.get(), select.held.bandit.get(), query, &search, &rank,
                      ranked.candidates.get(), &ranked.count, &ranked.cut, ranked.similarities.data());
}

Napi::Value select_sync(const Arguments& arguments) {
  const Select select = read_select(arguments);
  Ranked ranked(select.search.k);
  check(run_select(select, select.query.data(), nullptr, ranked));
  return ranked_object(arguments.env(), ranked);
}

class SelectCall final : public AsyncCall {
 public:
  SelectCall(Select select, std::shared_ptr<finch_cancel> cancel)
      : AsyncCall(std::move(cancel)),
        select_(std::move(select)),
        query_(select_.query.begin(), select_.query.end()),
        ranked_(select_.search.k) {}

 private:
  finch_status execute() override { return run_select(select_, query_.data(), cancel(), ranked_); }
  Napi::Value result(Napi::Env env) override { return ranked_object(env, ranked_); }

  Select select_;
  std::vector<float> query_;
  Ranked ranked_;
};

Napi::Value select(const Arguments& arguments) {
  std::shared_ptr<finch_cancel> cancel = arguments.cancel(5);
  return AsyncCall::start(arguments.env(), std::make_unique<SelectCall>(read_select(arguments), std::move(cancel)));
}

constexpr Export kExports[] = {
    {"fuse", sync_entry<fuse>},
    {"rank", sync_entry<rank>},
    {"select", async_entry<select>},
    {"selectSync", sync_entry<select_sync>},
};

}  // namespace

std::span<const Export> rank_exports() { return kExports; }

}  // namespace finch::node
