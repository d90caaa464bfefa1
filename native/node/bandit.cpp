// Reliability: arms, their scores, updates and state.
#include <vector>

#include "arm_scores.hpp"
#include "entry.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {
namespace {

Napi::Value bandit_create(const Arguments& arguments) {
  const finch_bandit_options options = read_bandit_options(arguments.env(), arguments[0], "options");
  finch_bandit* bandit = nullptr;
  check(finch_bandit_create(&options, &bandit));
  return make_handle(arguments.env(), own(bandit), options.dimension);
}

Napi::Value bandit_close(const Arguments& arguments) {
  arguments.close<finch_bandit>(0, "bandit");
  return arguments.env().Undefined();
}

// Reading ids may run JavaScript, which may close the bandit: hold it.
struct Held {
  std::shared_ptr<finch_bandit> bandit;
  uint32_t dimension;
};

Held hold(const Arguments& arguments) {
  const Box<finch_bandit>& box = arguments.handle<finch_bandit>(0, "bandit");
  return {box.object, box.dimension};
}

Napi::Value scores_object(Napi::Env env, const std::vector<finch_arm_score>& scores) {
  Napi::Object object = Napi::Object::New(env);
  SharedBuffer buffer(env, arm_scores_bytes(scores.size()));
  set_arm_scores(env, object, buffer, scores.size(), [&](size_t i) -> const finch_arm_score& { return scores[i]; });
  return object;
}

Napi::Value bandit_score(const Arguments& arguments) {
  const Held held = hold(arguments);
  const Strings ids = arguments.ids(1);
  const double now = arguments.number(4, "now");
  const bool explore = arguments.boolean(5, "explore");
  const std::span<const float> priors = arguments.floats(2, "priors");
  const std::span<const float> x = arguments.floats(3, "x");
  require_length("priors", priors.size(), ids.size(), "id");
  require_vectors("x", x.size(), 1, held.dimension);
  std::vector<finch_arm_score> scores(ids.size());
  check(finch_bandit_score(held.bandit.get(), ids.data(), priors.data(), ids.size(), x.data(), now, explore ? 1 : 0,
                           scores.data()));
  return scores_object(arguments.env(), scores);
}

Napi::Value bandit_score_batch(const Arguments& arguments) {
  const Held held = hold(arguments);
  const Strings ids = arguments.ids(1);
  const std::vector<uint64_t> offsets = read_wholes(arguments.env(), arguments[3], "offsets");
  const double now = arguments.number(5, "now");
  const bool explore = arguments.boolean(6, "explore");
  const std::span<const float> priors = arguments.floats(2, "priors");
  const std::span<const float> contexts = arguments.floats(4, "contexts");
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != ids.size()) {
    refuse_argument("Expected offsets to start at 0 and to end at the number of ids, " + std::to_string(ids.size()) +
                    ": one entry more than there are lists.");
  }
  require_length("priors", priors.size(), ids.size(), "id");
  require_vectors("contexts", contexts.size(), offsets.size() - 1, held.dimension);
  std::vector<finch_arm_score> scores(ids.size());
  check(finch_bandit_score_batch(held.bandit.get(), ids.data(), priors.data(), offsets.data(), offsets.size() - 1,
                                 contexts.data(), now, explore ? 1 : 0, scores.data()));
  return scores_object(arguments.env(), scores);
}

Napi::Value bandit_update(const Arguments& arguments) {
  const Held held = hold(arguments);
  const Strings ids = arguments.ids(1);
  const bool in_context = !Napi::Value(arguments.env(), arguments[2]).IsNull();
  const std::span<const float> xs = in_context ? arguments.floats(2, "xs") : std::span<const float>();
  const std::span<const float> priors = arguments.floats(3, "priors");
  const std::span<const float> outcomes = arguments.floats(4, "outcomes");
  const std::span<const double> times = arguments.doubles(5, "times");
  if (in_context) require_vectors("xs", xs.size(), ids.size(), held.dimension);
  require_length("priors", priors.size(), ids.size(), "id");
  require_length("outcomes", outcomes.size(), ids.size(), "id");
  require_length("times", times.size(), ids.size(), "id");
  std::vector<finch_outcome> rows(ids.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = {ids[i], in_context ? xs.data() + i * held.dimension : nullptr, priors[i], outcomes[i], times[i]};
  }
  check(finch_bandit_update(held.bandit.get(), rows.data(), rows.size()));
  return arguments.env().Undefined();
}

Napi::Value bandit_drop(const Arguments& arguments) {
  const Held held = hold(arguments);
  const Strings ids = arguments.ids(1);
  check(finch_bandit_drop(held.bandit.get(), ids.data(), ids.size()));
  return arguments.env().Undefined();
}

Napi::Value bandit_arms(const Arguments& arguments) {
  uint64_t count = 0;
  uint64_t bytes = 0;
  check(finch_bandit_arms(hold(arguments).bandit.get(), &count, &bytes));
  Napi::Object object = Napi::Object::New(arguments.env());
  set_number(arguments.env(), object, "count", static_cast<double>(count));
  set_number(arguments.env(), object, "bytes", static_cast<double>(bytes));
  return object;
}

Napi::Value bandit_serialize(const Arguments& arguments) {
  const Held held = hold(arguments);
  // Another thread may add arms between asking for the size and writing: ask again with what it then said.
  std::vector<uint8_t> state;
  size_t size = 0;
  check(finch_bandit_serialize(held.bandit.get(), nullptr, 0, &size));
  for (;;) {
    state.resize(size);
    const finch_status status = finch_bandit_serialize(held.bandit.get(), state.data(), state.size(), &size);
    if (status == FINCH_OK) break;
    if (size <= state.size()) check(status);
  }
  return {arguments.env(), copy_array<uint8_t>(arguments.env(), {state.data(), size})};
}

Napi::Value bandit_deserialize(const Arguments& arguments) {
  const Held held = hold(arguments);
  const std::span<const uint8_t> state = read_bytes(arguments.env(), arguments[1], "state");
  check(finch_bandit_deserialize(held.bandit.get(), state.data(), state.size()));
  return arguments.env().Undefined();
}

constexpr Export kExports[] = {
    {"banditCreate", sync_entry<bandit_create>},
    {"banditClose", sync_entry<bandit_close>},
    {"banditScore", sync_entry<bandit_score>},
    {"banditUpdate", sync_entry<bandit_update>},
    {"banditDrop", sync_entry<bandit_drop>},
    {"banditArms", sync_entry<bandit_arms>},
    {"banditScoreBatch", sync_entry<bandit_score_batch>},
    {"banditSerialize", sync_entry<bandit_serialize>},
    {"banditDeserialize", sync_entry<bandit_deserialize>},
};

}  // namespace

std::span<const Export> bandit_exports() { return kExports; }

}  // namespace finch::node
