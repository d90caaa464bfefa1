// Calls on bandits and their states.
#pragma once

#include <cmath>

#include "world.hpp"

namespace finch_fuzz {

inline void create_bandit(Input& in, World* world) {
  finch_bandit_options options{};
  options.dimension = in.one_in(32) ? in.word() : 1 + in.below(kMostDimension);
  options.form = static_cast<int32_t>(in.below(in.one_in(16) ? 200 : 3)) - (in.one_in(64) ? 1 : 0);
  if (in.one_in(3)) options.lambda = in.number();
  if (in.one_in(3)) options.gamma = in.share();
  if (in.one_in(3)) options.alpha = in.one_in(2) ? FINCH_ALPHA_ZERO : in.number();
  if (in.one_in(4)) options.availability_gamma = in.share();
  if (in.one_in(4)) options.availability_half_life = in.time();
  if (in.one_in(4)) options.availability_half_life_max = in.time();
  if (in.one_in(4)) options.trial_share = in.share();
  Sized<finch_bandit_options> given(in, options);
  Room<finch_bandit*> out(1);
  if (checked(finch_bandit_create(in.one_in(32) ? nullptr : given.get(), out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  const size_t at = world->bandits.place(in);
  world->bandits.put(at, out.at(0));
  world->bandit_dimensions[at] = options.dimension;
  world->bandit_options[at] = options;
  world->bandit_options[at].size = sizeof(options);
}

inline std::vector<unsigned char> state_of(const finch_bandit* bandit) {
  size_t size = 0;
  if (bandit == nullptr) return {};
  FUZZ_CHECK(finch_bandit_serialize(bandit, nullptr, 0, &size) == FINCH_OK);
  Room<unsigned char> bytes(size);
  FUZZ_CHECK(finch_bandit_serialize(bandit, bytes.get(), size, &size) == FINCH_OK);
  return {bytes.get(), bytes.get() + size};
}

// One call gives the bits that a call for each outcome gives.
inline void check_one_by_one(const finch_bandit_options& options, const std::vector<unsigned char>& before,
                             Room<finch_outcome>& outcomes, size_t count, const finch_bandit* bandit) {
  finch_bandit* other = nullptr;
  FUZZ_CHECK(finch_bandit_create(&options, &other) == FINCH_OK);
  FUZZ_CHECK(finch_bandit_deserialize(other, before.data(), before.size()) == FINCH_OK);
  for (size_t i = 0; i < count; ++i) FUZZ_CHECK(finch_bandit_update(other, outcomes.get() + i, 1) == FINCH_OK);
  FUZZ_CHECK(state_of(other) == state_of(bandit), "%zu outcomes at once and one by one differ", count);
  finch_bandit_release(other);
}

inline void update(Input& in, World* world) {
  const size_t at = world->bandits.place(in);
  finch_bandit* bandit = world->bandits.at(at);
  const uint32_t d = bandit == nullptr ? 2 : world->bandit_dimensions[at];
  if (d > 1000) return;
  const size_t count = in.below(6);
  Ids ids(in, count, false);
  Room<float> xs(count * d, shift(in));
  fill(in, &xs, count * d);
  const bool same_x = in.one_in(2);
  Room<finch_outcome> outcomes(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t row = same_x ? 0 : i;
    const auto* x = reinterpret_cast<const float*>(reinterpret_cast<const char*>(xs.get()) + row * d * sizeof(float));
    outcomes.set(i, {ids.room.at(i), in.one_in(64) ? nullptr : x, in.share(), in.share(), in.time()});
  }
  const bool drops = in.one_in(8);
  const bool look = in.one_in(3);
  const std::vector<unsigned char> before = look ? state_of(bandit) : std::vector<unsigned char>{};
  const finch_status status =
      checked(drops ? finch_bandit_drop(bandit, ids.room.get(), count)
                    : finch_bandit_update(bandit, in.one_in(32) ? nullptr : outcomes.get(), count));
  if (!look || bandit == nullptr) return;
  if (status != FINCH_OK) {
    FUZZ_CHECK(state_of(bandit) == before, "a failed update changed something");
  } else if (!drops) {
    check_one_by_one(world->bandit_options[at], before, outcomes, count, bandit);
  }
}

inline void score(Input& in, World* world) {
  const size_t at = world->bandits.place(in);
  const finch_bandit* bandit = world->bandits.at(at);
  const uint32_t d = bandit == nullptr ? 2 : world->bandit_dimensions[at];
  if (d > 1000) return;
  const size_t count = in.below(12);
  Ids ids(in, count, false);
  Room<float> x(d, shift(in));
  fill(in, &x, d);
  Room<float> priors(count);
  fill_shares(in, &priors, count);
  Room<finch_arm_score> out(count);
  if (checked(finch_bandit_score(bandit, in.one_in(32) ? nullptr : ids.room.get(),
                                 in.one_in(2) ? nullptr : priors.get(), count, in.one_in(32) ? nullptr : x.get(),
                                 in.time(), static_cast<int32_t>(in.below(3)) - 1,
                                 in.one_in(32) ? nullptr : out.get())) != FINCH_OK) {
    FUZZ_CHECK(out.untouched());
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const finch_arm_score s = out.at(i);
    FUZZ_CHECK(std::isfinite(s.mean) && std::isfinite(s.bonus) && s.bonus >= 0.0f, "%g + %g",
               static_cast<double>(s.mean), static_cast<double>(s.bonus));
    FUZZ_CHECK(s.availability >= 0.0f && s.availability <= 1.0f && std::isfinite(s.evidence) && s.evidence >= 0.0);
    FUZZ_CHECK((s.updates == 0) == std::isnan(s.last_outcome));
  }
}

inline void carry_state(Input& in, World* world) {
  const size_t from = world->bandits.place(in);
  const size_t to = world->bandits.place(in);
  const finch_bandit* source = world->bandits.at(from);
  std::vector<unsigned char> state = state_of(source);
  size_t size = 0;
  const size_t capacity = in.below(200);
  Room<unsigned char> small(capacity);
  const finch_status written = checked(finch_bandit_serialize(source, small.get(), capacity, &size));
  if (written != FINCH_OK) FUZZ_CHECK(small.untouched() && (source == nullptr || size == state.size()));
  const bool damaged = in.one_in(4) && !state.empty();
  if (damaged) state[in.word() % state.size()] ^= static_cast<unsigned char>(1u << in.below(8));
  state.resize(state.size() - (in.one_in(16) ? std::min<size_t>(state.size(), in.byte()) : 0));
  Room<unsigned char> exact(state.size());
  for (size_t i = 0; i < state.size(); ++i) exact.set(i, state[i]);
  const std::vector<unsigned char> before = state_of(world->bandits.at(to));
  const finch_status status = checked(finch_bandit_deserialize(world->bandits.at(to), exact.get(), state.size()));
  const std::vector<unsigned char> after = state_of(world->bandits.at(to));
  if (status != FINCH_OK) FUZZ_CHECK(before == after, "a refused state changed the bandit");
  if (status == FINCH_OK) FUZZ_CHECK(after == state, "state read and written differs");
}

}  // namespace finch_fuzz
