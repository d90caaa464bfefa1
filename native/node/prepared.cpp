// The hot path without anything made per call: ids and options that are read once, results into the caller's arrays.
// The same functions of the C ABI as the calls that take plain values, and so the same bits.
#include "prepared.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "entry.hpp"
#include "output.hpp"
#include "results.hpp"

namespace finch::node {

namespace {

Napi::Value id_list_create(const Arguments& arguments) {
  auto list = std::make_unique<IdList>();
  list->ids = arguments.ids(0);
  if (!arguments.absent(1)) {
    const std::span<const float> priors = arguments.floats(1, "priors");
    require_length("priors", priors.size(), list->ids.size(), "id");
    list->priors.assign(priors.begin(), priors.end());
  }
  list->scores.resize(list->ids.size());
  return make_handle(arguments.env(), own(list.release()));
}

Napi::Value cut_rule_create(const Arguments& arguments) {
  auto rule = std::make_unique<CutRule>(CutRule{read_cut_options(arguments.env(), arguments[0], "options")});
  return make_handle(arguments.env(), own(rule.release()));
}

Napi::Value select_rule_create(const Arguments& arguments) {
  auto rule = std::make_unique<SelectRule>();
  rule->search = read_search_options(arguments.env(), arguments[0], "search");
  rule->rank = read_rank_options(arguments.env(), arguments[1], "rank");
  rule->candidates.resize(rule->search.k);
  return make_handle(arguments.env(), own(rule.release()));
}

Napi::Value create_output(const Arguments& arguments, Output::Kind kind) {
  const uint32_t capacity = arguments.whole(0, "capacity", 1, FINCH_MAX_K);
  auto output = std::make_unique<Output>(arguments.env(), kind, capacity);
  Napi::Object object = Napi::Object::New(arguments.env());
  output->set_columns(arguments.env(), object);
  set(arguments.env(), object, "handle", make_handle(arguments.env(), own(output.release())));
  return object;
}

Napi::Value arm_scores_create(const Arguments& arguments) { return create_output(arguments, Output::Kind::arm_scores); }

Napi::Value ranking_create(const Arguments& arguments) { return create_output(arguments, Output::Kind::ranking); }

Output& output_for(const Arguments& arguments, size_t i, Output::Kind kind, size_t count) {
  Output& output = *arguments.handle<Output>(i, "out").object;
  if (output.kind() != kind) {
    refuse_argument(kind == Output::Kind::ranking
                        ? "Expected out to be the handle of what rankingCreate() returned."
                        : "Expected out to be the handle of what armScoresCreate() returned.");
  }
  if (output.capacity() < count) {
    refuse_argument("Expected out to have room for " + std::to_string(count) + " results but its capacity is " +
                    std::to_string(output.capacity()) + ". Create a larger one.");
  }
  output.require_memory();
  return output;
}

Napi::Value number(napi_env env, double value) {
  napi_value result = nullptr;
  must(env, napi_create_double(env, value, &result));
  return {env, result};
}

// In all that follows no JavaScript runs: nothing is closed or detached between a check and its use.

Napi::Value bandit_score_into(const Arguments& arguments) {
  const Box<finch_bandit>& bandit = arguments.handle<finch_bandit>(0, "bandit");
  IdList& list = *arguments.handle<IdList>(1, "ids").object;
  const std::span<const float> x = arguments.floats(2, "x");
  const double now = arguments.number(3, "now");
  const bool explore = arguments.boolean(4, "explore");
  const size_t count = list.ids.size();
  Output& output = output_for(arguments, 5, Output::Kind::arm_scores, count);
  require_vectors("x", x.size(), 1, bandit.dimension);
  check(finch_bandit_score(bandit.object.get(), list.ids.data(), list.priors.empty() ? nullptr : list.priors.data(),
                           count, x.data(), now, explore ? 1 : 0, list.scores.data()));
  for (size_t i = 0; i < count; ++i) output.write(i, list.scores[i]);
  return number(arguments.env(), static_cast<double>(count));
}

Napi::Value truncate_into(const Arguments& arguments) {
  const CutRule& rule = *arguments.handle<CutRule>(2, "rule").object;
  const std::span<const float> scores = arguments.floats(0, "scores");
  const std::span<double> cut = arguments.writable_doubles(3, "cut");
  if (cut.size() < Output::kCutNumbers) {
    refuse_argument("Expected cut to have room for " + std::to_string(Output::kCutNumbers) + " numbers but it holds " +
                    std::to_string(cut.size()) + ".");
  }
  const size_t count = scores.size();
  const float* embeddings = nullptr;
  uint32_t dimension = 0;
  if (!arguments.absent(1)) {
    const std::span<const float> rows = arguments.floats(1, "embeddings");
    if (count == 0 ? !rows.empty()
                   : rows.size() % count != 0 || rows.empty() || rows.size() / count > FINCH_MAX_DIMENSION) {
      refuse(FINCH_DIMENSION, "Expected embeddings to hold one vector for each of the " + std::to_string(count) +
                                  " scores, all of one dimension from 1 to " + std::to_string(FINCH_MAX_DIMENSION) +
                                  ", but it holds " + std::to_string(rows.size()) + " numbers.");
    }
    embeddings = rows.data();
    dimension = count == 0 ? 1 : static_cast<uint32_t>(rows.size() / count);
  }
  finch_cut result = {};
  result.size = sizeof(result);
  check(finch_truncate(scores.data(), embeddings, count, dimension, &rule.options, &result, nullptr));
  const double numbers[Output::kCutNumbers] = {static_cast<double>(result.k),
                                               static_cast<double>(result.k_score),
                                               static_cast<double>(result.k_similarity),
                                               static_cast<double>(result.signal),
                                               static_cast<double>(result.gap_score),
                                               static_cast<double>(result.gap_similarity),
                                               static_cast<double>(result.n)};
  std::copy(std::begin(numbers), std::end(numbers), cut.begin());
  return number(arguments.env(), result.k);
}

struct Rows {
  const Box<finch_snapshot>& snapshot;
  const finch_bandit* bandit;
};

Rows rows_of(const Arguments& arguments) {
  const Box<finch_snapshot>& snapshot = arguments.handle<finch_snapshot>(0, "snapshot");
  const Box<finch_bandit>* bandit = arguments.optional_handle<finch_bandit>(1, "bandit");
  if (bandit != nullptr && bandit->dimension != snapshot.dimension) {
    refuse(FINCH_DIMENSION, "Expected a bandit of the snapshot's dimension " + std::to_string(snapshot.dimension) +
                                " but this one has " + std::to_string(bandit->dimension) +
                                ". Create it with the index's dimension.");
  }
  return {snapshot, bandit == nullptr ? nullptr : bandit->object.get()};
}

finch_cut empty_cut() {
  finch_cut cut = {};
  cut.size = sizeof(cut);
  return cut;
}

Napi::Value written(const Arguments& arguments, Output& output, std::span<const finch_candidate> candidates,
                    const finch_cut& cut) {
  for (size_t i = 0; i < candidates.size(); ++i) output.write(i, candidates[i]);
  output.write(cut);
  return number(arguments.env(), static_cast<double>(candidates.size()));
}

Napi::Value select_into(const Arguments& arguments) {
  const Rows rows = rows_of(arguments);
  const std::span<const float> query = arguments.floats(2, "query");
  SelectRule& rule = *arguments.handle<SelectRule>(3, "rule").object;
  const double now = arguments.number(4, "now");
  Output& output = output_for(arguments, 5, Output::Kind::ranking, rule.search.k);
  require_vectors("query", query.size(), 1, rows.snapshot.dimension);
  finch_search_options search = rule.search.view(nullptr);
  finch_rank_options rank = rule.rank.view();
  rank.now = now;
  finch_cut cut = empty_cut();
  size_t count = 0;
  check(finch_select(rows.snapshot.object.get(), rows.bandit, query.data(), &search, &rank, rule.candidates.data(),
                     &count, &cut, output.similarities().data()));
  return written(arguments, output, {rule.candidates.data(), count}, cut);
}

Napi::Value rank_into(const Arguments& arguments) {
  const Rows rows = rows_of(arguments);
  SelectRule& rule = *arguments.handle<SelectRule>(5, "rule").object;
  const std::span<const double> numbers = arguments.doubles(2, "keys");
  const std::span<const float> semantic = arguments.floats(3, "semantic");
  const std::span<const float> x = arguments.floats(4, "x");
  const double now = arguments.number(6, "now");
  const size_t count = numbers.size();
  Output& output = output_for(arguments, 7, Output::Kind::ranking, count);
  require_length("semantic", semantic.size(), count, "key");
  require_vectors("x", x.size(), 1, rows.snapshot.dimension);
  uint64_t few[64];
  std::vector<uint64_t> many;
  uint64_t* keys = few;
  if (count > std::size(few)) {
    many.resize(count);
    keys = many.data();
  }
  // What is no key (not whole, negative, too large) is not in the snapshot either.
  constexpr double kMost = 9007199254740991.0;
  for (size_t i = 0; i < count; ++i) {
    const bool whole = numbers[i] >= 1.0 && numbers[i] <= kMost;
    keys[i] = whole ? static_cast<uint64_t>(numbers[i]) : FINCH_NO_KEY;
    if (whole && static_cast<double>(keys[i]) == numbers[i]) continue;
    refuse_argument("Expected keys[" + std::to_string(i) + "] to be a whole number from 1 to 2^53 - 1.");
  }
  if (rule.candidates.size() < count) rule.candidates.resize(count);
  finch_rank_options rank = rule.rank.view();
  rank.now = now;
  finch_cut cut = empty_cut();
  check(finch_rank(rows.snapshot.object.get(), rows.bandit, keys, semantic.data(), count, x.data(), &rank,
                   rule.candidates.data(), &cut, output.similarities().data()));
  return written(arguments, output, {rule.candidates.data(), count}, cut);
}

constexpr Export kExports[] = {
    {"idListCreate", sync_entry<id_list_create>},
    {"cutRuleCreate", sync_entry<cut_rule_create>},
    {"selectRuleCreate", sync_entry<select_rule_create>},
    {"armScoresCreate", sync_entry<arm_scores_create>},
    {"rankingCreate", sync_entry<ranking_create>},
    {"banditScoreInto", sync_entry<bandit_score_into>},
    {"truncateInto", sync_entry<truncate_into>},
    {"rankInto", sync_entry<rank_into>},
    {"selectInto", sync_entry<select_into>},
};

}  // namespace

std::span<const Export> prepared_exports() { return kExports; }

}  // namespace finch::node
