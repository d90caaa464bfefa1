#include "bandit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "error.hpp"
#include "kernels/bandit/bandit.hpp"
#include "kernels/kernels.hpp"
#include "small_buffer.hpp"
#include "unit.hpp"

namespace finch {
namespace {

// Arms that are looked up before any is scored.
constexpr size_t kGroup = 16;
constexpr size_t kLine = 64;

finch_status check_bandit(const finch_bandit* bandit) noexcept {
  return bandit != nullptr ? FINCH_OK : fail(FINCH_INVALID_ARGUMENT, "bandit is NULL; expected a handle.");
}

finch_status check_id(const finch_string& id, size_t i) noexcept {
  if (id.data != nullptr && id.size >= 1 && id.size <= FINCH_MAX_ID_BYTES) return FINCH_OK;
  return fail(FINCH_INVALID_ARGUMENT, "id %zu has %zu bytes; expected 1 to %u.", i, id.data == nullptr ? 0 : id.size,
              FINCH_MAX_ID_BYTES);
}

finch_status check_ids(const finch_string* ids, size_t count) noexcept {
  if (count > 0 && ids == nullptr) return fail(FINCH_INVALID_ARGUMENT, "ids is NULL; expected %zu ids.", count);
  for (size_t i = 0; i < count; ++i) {
    const finch_status status = check_id(ids[i], i);
    if (status != FINCH_OK) return status;
  }
  return FINCH_OK;
}

// A number in [0, 1].
finch_status check_share(const char* name, size_t i, float value) noexcept {
  if (value >= 0.0f && value <= 1.0f) return FINCH_OK;
  if (!std::isfinite(value)) {
    return fail(FINCH_NOT_FINITE, "%s %zu is %g; expected a number from 0 to 1.", name, i, static_cast<double>(value));
  }
  return fail(FINCH_INVALID_ARGUMENT, "%s %zu = %g; expected 0 to 1.", name, i, static_cast<double>(value));
}

finch_status check_now(double now) noexcept {
  return std::isfinite(now) ? FINCH_OK : fail(FINCH_NOT_FINITE, "now is %g; expected a finite time.", now);
}

// What context i is multiplied by to be a unit vector.
finch_status check_context(const float* x, size_t dimension, size_t i, double* factor) noexcept {
  if (x == nullptr) return fail(FINCH_INVALID_ARGUMENT, "context %zu is NULL; expected %zu numbers.", i, dimension);
  const finch_status status = unit_factor(x, dimension, factor);
  if (status == FINCH_NOT_FINITE) {
    return fail(status, "context %zu holds NaN or infinity; expected finite numbers. Encode the query again.", i);
  }
  if (status == FINCH_ZERO_VECTOR) {
    return fail(status, "context %zu is the zero vector, which has no direction; expected the query's embedding.", i);
  }
  return status;
}

using Context = SmallBuffer<float, kContextOnStack>;

// The unit context: `room`, or x itself. A factor this near to 1 gives every float back as it was, and most contexts
// come as unit vectors; only one that lies across cache lines is copied.
const float* unit_context(const float* x, double factor, size_t dimension, float* room) noexcept {
  constexpr double kHalfUlp = 0x1p-25;
  if (!(std::fabs(factor - 1.0) < kHalfUlp)) {
    kernels().scale(x, factor, dimension, room);
    return room;
  }
  if (reinterpret_cast<uintptr_t>(x) % kLine == 0) return x;
  std::memcpy(room, x, dimension * sizeof(float));
  return room;
}

// The arm's 1 / A, made now if updates have left it behind. Readers share the lock, so one makes it and others wait the
// fraction of a microsecond it takes.
void ensure_inverse(const BanditRule& rule, const Arm& arm) noexcept {
  for (;;) {
    Inverse seen = arm.inverse.load(std::memory_order_acquire);
    if (seen == Inverse::ready) return;
    if (seen == Inverse::stale &&
        arm.inverse.compare_exchange_strong(seen, Inverse::being_made, std::memory_order_relaxed)) {
      kernels().arm_invert(arm.vectors(), rule.stride(), rule.dimension);
      arm.inverse.store(Inverse::ready, std::memory_order_release);
      return;
    }
    std::this_thread::yield();
  }
}

TrialEvidence evidence_of(const BanditRule& rule, const Arm& arm) noexcept {
  return {static_cast<double>(rule.gamma), arm.evidence, arm.reward_sum};
}

// Scores arms in one context. What does not depend on the arm is computed once.
class Scorer {
 public:
  Scorer(const BanditRule& rule, const TrialBudget& budget, const float* unit, double total_evidence,
         bool explore) noexcept
      : rule_(rule), budget_(budget), root_(std::sqrt(static_cast<double>(rule.dimension))) {
    alpha_ = explore ? static_cast<double>(rule.alpha) : 0.0;
    lambda_ = static_cast<double>(rule.lambda);
    if (rule.form == FINCH_BANDIT_MEAN) log_evidence_ = std::log1p(total_evidence);
    if (rule.form == FINCH_BANDIT_LITERAL) {
      for (size_t i = 0; i < rule.dimension; ++i) sum_ += static_cast<double>(unit[i]);
    }
  }

  // Without feedback: the closed form of A = lambda and b as fresh_arm has it, for |x| = 1.
  finch_arm_score fresh(float prior) const noexcept {
    const double r = static_cast<double>(prior);
    finch_arm_score score{};
    const double mean = rule_.form == FINCH_BANDIT_LITERAL ? r * sum_ / (root_ * lambda_) : r;
    score.mean = static_cast<float>(mean);
    score.bonus =
        static_cast<float>(alpha_ * std::sqrt((rule_.form == FINCH_BANDIT_MEAN ? log_evidence_ : 1.0) / lambda_));
    score.availability = 1.0f;
    score.last_outcome = std::numeric_limits<float>::quiet_NaN();
    score.contrast = std::numeric_limits<float>::quiet_NaN();
    return score;
  }

  // `dot` = sum b_i x_i / A_i and `spread` = sum x_i^2 / A_i; not read in the mean form. `seen`: what the arm's
  // contrast says of x, NaN when nothing.
  finch_arm_score of(const Arm& arm, float dot, float spread, float seen, double now) const noexcept {
    finch_arm_score score{};
    const double r = static_cast<double>(arm.prior);
    double mean = 0.0;
    double variance = 0.0;
    if (rule_.form == FINCH_BANDIT_MEAN) {
      mean = (lambda_ * r + arm.reward_sum) / (lambda_ + arm.evidence);
      variance = log_evidence_ / (lambda_ + arm.evidence);
    } else {
      // With x~ = sqrt(d) x: mean_i(b_i x~_i / A_i) = (sum b_i x_i / A_i) / sqrt(d), mean_i(x~_i^2 / A_i) = sum x_i^2 /
      // A_i.
      mean = rule_.form == FINCH_BANDIT_LITERAL ? static_cast<double>(dot) : r + static_cast<double>(dot) / root_;
      variance = static_cast<double>(spread);
    }
    score.mean = static_cast<float>(mean);
    score.bonus = static_cast<float>(alpha_ * std::sqrt(variance));
    score.availability = static_cast<float>(
        offered_availability(arm.availability, rule_.availability, evidence_of(rule_, arm), budget_, now));
    score.contrast = seen;
    score.last_outcome = arm.last_outcome;
    score.evidence = arm.evidence;
    score.updates = arm.updates;
    return score;
  }

  // Whether a tool waits in a context that its contrast says `seen` of.
  bool waits(const Contrast& contrast, float seen, double now) const noexcept {
    return Contrast::foresees(seen) && contrast.is_believed() && contrast.waits(rule_.availability, budget_, now);
  }

 private:
  const BanditRule& rule_;
  const TrialBudget& budget_;
  double root_;
  double alpha_;
  double lambda_;
  double log_evidence_ = 0.0;
  double sum_ = 0.0;
};

// Asks memory for all arms of a group: scattered ones miss the caches at every step, and the misses of one step
// overlap. `vectors`: the first of the two that will be used, 0 (A) or 1 (b).
void fetch_group(const BanditRule& rule, const ArmTable& table, const ScoredId* ids, size_t count,
                 size_t vectors) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const Arm* arm = table.guess(ids[i].hash);
    if (arm == nullptr) continue;
    prefetch(arm);
    prefetch(&arm->updates);
    if (!rule.keeps_vectors()) continue;
    const float* first = arm->vectors() + vectors * rule.stride();
    prefetch(first);
    prefetch(first + rule.stride());
  }
}

// What the contrasts of a group say of a unit context; NaN where there is none or it does not rule.
void contrast_group(const Contrast* const* contrasts, size_t count, const float* unit, size_t dimension,
                    float* seen) noexcept {
  const float* sums[2 * kGroup];
  float products[2 * kGroup];
  size_t ruling = 0;
  for (size_t i = 0; i < count; ++i) {
    if (contrasts[i] == nullptr || !contrasts[i]->rules()) continue;
    sums[2 * ruling] = contrasts[i]->worked();
    sums[2 * ruling + 1] = contrasts[i]->failed();
    ++ruling;
  }
  kernels().context_dots(sums, 2 * ruling, unit, dimension, products);
  const float* next = products;
  for (size_t i = 0; i < count; ++i) {
    const bool rules = contrasts[i] != nullptr && contrasts[i]->rules();
    seen[i] = rules ? contrasts[i]->of(next, 1.0) : std::numeric_limits<float>::quiet_NaN();
    if (rules) next += 2;
  }
}

// A group of a list: first every arm is looked up, then all of them are scored.
void score_group(const BanditRule& rule, const ArmTable& table, const Scorer& scorer, const ScoredId* ids, size_t count,
                 const float* unit, double now, finch_arm_score* out) noexcept {
  const Arm* arms[kGroup];
  const float* vectors[kGroup];
  const Contrast* contrasts[kGroup];
  float dots[kGroup];
  float spreads[kGroup];
  float seen[kGroup];
  size_t known = 0;
  fetch_group(rule, table, ids, count, 1);
  for (size_t i = 0; i < count; ++i) {
    arms[i] = table.find(ids[i].id, ids[i].hash);
    contrasts[i] = nullptr;
    if (arms[i] == nullptr || !rule.keeps_vectors()) continue;
    vectors[known++] = arms[i]->vectors();
    contrasts[i] = table.contrast(*arms[i]);
    prefetch(contrasts[i]);
    ensure_inverse(rule, *arms[i]);
  }
  kernels().arm_scores(vectors, rule.stride(), known, unit, rule.dimension, dots, spreads);
  contrast_group(contrasts, count, unit, rule.dimension, seen);
  known = 0;
  for (size_t i = 0; i < count; ++i) {
    if (arms[i] == nullptr) {
      out[i] = scorer.fresh(ids[i].prior);
    } else if (rule.keeps_vectors()) {
      out[i] = scorer.of(*arms[i], dots[known], spreads[known], seen[i], now);
      if (contrasts[i] != nullptr && scorer.waits(*contrasts[i], seen[i], now)) {
        out[i].availability = std::min(out[i].availability, static_cast<float>(kWaiting));
      }
      ++known;
    } else {
      out[i] = scorer.of(*arms[i], 0.0f, 0.0f, seen[i], now);
    }
  }
}

// Under the bandit's lock. `ids_of(first, count, group)` gives a group of the list's ids.
template <typename IdsOf>
void score_list(const finch_bandit& bandit, IdsOf&& ids_of, size_t count, const float* unit, double now, bool explore,
                finch_arm_score* out) noexcept {
  const Scorer scorer(bandit.rule, bandit.table.budget, unit, static_cast<double>(bandit.table.evidence) / 1048576.0,
                      explore);
  ScoredId group[kGroup];
  for (size_t first = 0; first < count; first += kGroup) {
    const size_t some = std::min(kGroup, count - first);
    ids_of(first, some, group);
    score_group(bandit.rule, bandit.table, scorer, group, some, unit, now, out + first);
  }
}

finch_status check_score(const finch_bandit* bandit, const finch_string* ids, const float* priors, size_t count,
                         double now, const finch_arm_score* out) noexcept {
  finch_status status = check_bandit(bandit);
  if (status == FINCH_OK) status = check_ids(ids, count);
  if (status == FINCH_OK) status = check_now(now);
  if (status == FINCH_OK && count > 0 && out == nullptr) {
    status = fail(FINCH_INVALID_ARGUMENT, "out is NULL; expected room for %zu scores.", count);
  }
  for (size_t i = 0; status == FINCH_OK && priors != nullptr && i < count; ++i) {
    status = check_share("prior", i, priors[i]);
  }
  return status;
}

// Ids and priors of one list as the C ABI gives them.
auto ids_from(const finch_string* ids, const float* priors) noexcept {
  return [=](size_t first, size_t count, ScoredId* group) {
    for (size_t i = 0; i < count; ++i) prefetch(ids[first + i].data);
    for (size_t i = 0; i < count; ++i) {
      const std::string_view id = view(ids[first + i]);
      group[i] = {id, hash_id(id), priors != nullptr ? priors[first + i] : 0.5f};
    }
  };
}

// What every update of a call shares.
struct UpdateRule {
  UpdateRule(const BanditRule& r, TrialBudget* trials) noexcept
      : rule(r), budget(trials), gamma(static_cast<double>(r.gamma)) {
    const bool calibrated = r.form == FINCH_BANDIT_CALIBRATED;
    root = calibrated ? std::sqrt(static_cast<double>(r.dimension)) : 1.0;
    floor = calibrated ? static_cast<float>((1.0 - gamma) * static_cast<double>(r.lambda)) : 0.0f;
    floor = std::max(floor, kSmallestA);
  }
  const BanditRule& rule;
  TrialBudget* budget;
  double gamma;
  double root;  // the context is this long: x~ = sqrt(d) x (calibrated) or x
  float floor;
};

// What one outcome changes on its arm besides the vectors. `in_context`: its context was foreseen to fail.
void record(const UpdateRule& update, Arm* arm, const finch_outcome& outcome, bool in_context,
            uint64_t* total) noexcept {
  settle(update.budget, update.rule.availability, arm->availability, evidence_of(update.rule, *arm),
         static_cast<double>(outcome.y), outcome.now, in_context);
  if (arm->updates > 0) *total -= evidence_units(arm->evidence);
  arm->evidence = update.gamma * arm->evidence + 1.0;
  arm->reward_sum = update.gamma * arm->reward_sum + static_cast<double>(outcome.y);
  *total += evidence_units(arm->evidence);
  if (!in_context || outcome.y >= 0.5f) {
    observe(&arm->availability, update.rule.availability, static_cast<double>(outcome.y), outcome.now);
  }
  arm->last_outcome = outcome.y;
  if (arm->updates < kMostUpdates) ++arm->updates;
}

// An outcome with the context x, `root` long.
void record_in_context(const UpdateRule& update, Arm* arm, Contrast* contrast, const finch_outcome& outcome,
                       const float* x, uint64_t* total) noexcept {
  if (contrast == nullptr) return record(update, arm, outcome, false, total);
  const float seen = contrast->at(x, update.root);
  record(update, arm, outcome, Contrast::foresees(seen) && contrast->is_believed(), total);
  contrast->learn(x, seen, static_cast<double>(outcome.y), outcome.now);
}

// The vectors' part, in the context x, `root` long.
void learn(const UpdateRule& update, Arm* arm, const finch_outcome& outcome, const float* x) noexcept {
  const BanditRule& rule = update.rule;
  const float reward = rule.form == FINCH_BANDIT_CALIBRATED ? outcome.y - arm->prior : outcome.y;
  kernels().arm_update(arm->vectors(), rule.stride(), x, rule.dimension, rule.gamma, update.floor, reward);
  arm->inverse.store(Inverse::stale, std::memory_order_relaxed);
}

// Arms for all outcomes, made where there is none yet; if that fails half-way, none is made.
class Targets {
 public:
  Targets(ArmTable* table, const BanditRule& rule, const finch_outcome* outcomes, size_t count) : arms_(count) {
    size_t i = 0;
    try {
      ScoredId group[kGroup];
      while (i < count) {
        const size_t first = i;
        const size_t some = std::min(kGroup, count - first);
        for (size_t j = 0; j < some; ++j) prefetch(outcomes[first + j].id.data);
        for (size_t j = 0; j < some; ++j) {
          const finch_outcome& outcome = outcomes[first + j];
          group[j] = {view(outcome.id), hash_id(view(outcome.id)), outcome.prior};
        }
        fetch_group(rule, *table, group, some, 0);
        for (; i < first + some; ++i) {
          const ScoredId& wanted = group[i - first];
          arms_[i] = table->find(wanted.id, wanted.hash);
          if (arms_[i] == nullptr) arms_[i] = table->make(wanted.id, wanted.hash, rule, wanted.prior);
          // An empty one that a later failure leaves behind says nothing.
          const finch_outcome& outcome = outcomes[i];
          if (rule.form == FINCH_BANDIT_CALIBRATED && outcome.x != nullptr && outcome.y < 0.5f) {
            table->make_contrast(arms_[i], rule.dimension);
          }
        }
      }
    } catch (...) {
      // An arm made here has no update yet. It may be there more than once: its first place erases it. The one at which
      // it failed may lack its contrast alone.
      if (i < count && arms_[i] != nullptr) ++i;
      while (i-- > 0) {
        if (arms_[i]->updates == 0 && std::find(arms_.data(), arms_.data() + i, arms_[i]) == arms_.data() + i) {
          table->erase(arms_[i]);
        }
      }
      throw;
    }
  }
  Arm* operator[](size_t i) const noexcept { return arms_[i]; }

 private:
  SmallBuffer<Arm*, 64> arms_;
};

finch_status check_outcomes(const BanditRule& rule, const finch_outcome* outcomes, size_t count,
                            double* factors) noexcept {
  if (count > 0 && outcomes == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "outcomes is NULL; expected %zu outcomes.", count);
  }
  for (size_t i = 0; i < count; ++i) {
    const finch_outcome& outcome = outcomes[i];
    finch_status status = check_id(outcome.id, i);
    if (status == FINCH_OK) status = check_share("prior", i, outcome.prior);
    if (status == FINCH_OK) status = check_share("y", i, outcome.y);
    if (status == FINCH_OK) status = check_now(outcome.now);
    if (outcome.x == nullptr) {
      factors[i] = 0.0;
    } else if (status == FINCH_OK && i > 0 && outcome.x == outcomes[i - 1].x) {
      factors[i] = factors[i - 1];
    } else if (status == FINCH_OK) {
      status = check_context(outcome.x, rule.dimension, i, &factors[i]);
    }
    if (status != FINCH_OK) return status;
  }
  return FINCH_OK;
}

}  // namespace

finch_status score_ids(const finch_bandit& bandit, const ScoredId* ids, size_t count, const float* x, double now,
                       bool explore, finch_arm_score* out) {
  finch_status status = check_now(now);
  double factor = 0.0;
  if (status == FINCH_OK) status = check_context(x, bandit.rule.dimension, 0, &factor);
  if (status != FINCH_OK) return status;
  Context room(bandit.rule.dimension);
  const float* unit = unit_context(x, factor, bandit.rule.dimension, room.data());
  std::shared_lock lock(bandit.mutex);
  const auto ids_of = [&](size_t first, size_t some, ScoredId* group) { std::copy_n(ids + first, some, group); };
  score_list(bandit, ids_of, count, unit, now, explore, out);
  return FINCH_OK;
}

}  // namespace finch

extern "C" {

finch_status finch_bandit_create(const finch_bandit_options* options, finch_bandit** out) {
  return finch::guarded([&]() -> finch_status {
    if (out == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "out is NULL; pass where to put the bandit handle.");
    finch::BanditRule rule;
    const finch_status status = finch::read_bandit_rule(options, &rule);
    if (status != FINCH_OK) return status;
    *out = new finch_bandit(rule);
    return FINCH_OK;
  });
}

void finch_bandit_retain(finch_bandit* bandit) {
  if (bandit != nullptr) bandit->references.fetch_add(1, std::memory_order_relaxed);
}

void finch_bandit_release(finch_bandit* bandit) {
  if (bandit != nullptr && bandit->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete bandit;
}

finch_status finch_bandit_score(const finch_bandit* bandit, const finch_string* ids, const float* priors, size_t count,
                                const float* x, double now, int32_t explore, finch_arm_score* out) {
  return finch::guarded([&]() -> finch_status {
    finch_status status = finch::check_score(bandit, ids, priors, count, now, out);
    if (status != FINCH_OK) return status;
    const size_t dimension = bandit->rule.dimension;
    double factor = 0.0;
    status = finch::check_context(x, dimension, 0, &factor);
    if (status != FINCH_OK) return status;
    finch::Context room(dimension);
    const float* unit = finch::unit_context(x, factor, dimension, room.data());
    std::shared_lock lock(bandit->mutex);
    finch::score_list(*bandit, finch::ids_from(ids, priors), count, unit, now, explore != 0, out);
    return FINCH_OK;
  });
}

finch_status finch_bandit_score_batch(const finch_bandit* bandit, const finch_string* ids, const float* priors,
                                      const uint64_t* offsets, size_t lists, const float* contexts, double now,
                                      int32_t explore, finch_arm_score* out) {
  return finch::guarded([&]() -> finch_status {
    finch_status status = finch::check_bandit(bandit);
    if (status != FINCH_OK || lists == 0) return status;
    if (offsets == nullptr || offsets[0] != 0) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "offsets must hold lists + 1 entries and begin with 0.");
    }
    for (size_t j = 0; j < lists; ++j) {
      if (offsets[j + 1] >= offsets[j]) continue;
      return finch::fail(FINCH_INVALID_ARGUMENT, "offsets[%zu] is below offsets[%zu]; expected ascending offsets.",
                         j + 1, j);
    }
    status = finch::check_score(bandit, ids, priors, static_cast<size_t>(offsets[lists]), now, out);
    if (status != FINCH_OK) return status;
    const size_t dimension = bandit->rule.dimension;
    const auto context = [&](size_t j) {
      return reinterpret_cast<const float*>(reinterpret_cast<const char*>(contexts) + j * dimension * sizeof(float));
    };
    finch::SmallBuffer<double, 64> factors(lists);
    for (size_t j = 0; j < lists; ++j) {
      status = finch::check_context(contexts == nullptr ? nullptr : context(j), dimension, j, &factors[j]);
      if (status != FINCH_OK) return status;
    }
    finch::Context room(dimension);
    std::shared_lock lock(bandit->mutex);
    for (size_t j = 0; j < lists; ++j) {
      const size_t first = static_cast<size_t>(offsets[j]);
      const size_t count = static_cast<size_t>(offsets[j + 1]) - first;
      const float* unit = finch::unit_context(context(j), factors[j], dimension, room.data());
      finch::score_list(*bandit, finch::ids_from(ids + first, priors == nullptr ? nullptr : priors + first), count,
                        unit, now, explore != 0, out + first);
    }
    return FINCH_OK;
  });
}

finch_status finch_bandit_update(finch_bandit* bandit, const finch_outcome* outcomes, size_t count) {
  return finch::guarded([&]() -> finch_status {
    finch_status status = finch::check_bandit(bandit);
    if (status != FINCH_OK) return status;
    const finch::UpdateRule update(bandit->rule, &bandit->table.budget);
    const size_t dimension = bandit->rule.dimension;
    finch::SmallBuffer<double, 64> factors(count);
    status = finch::check_outcomes(bandit->rule, outcomes, count, factors.data());
    if (status != FINCH_OK) return status;
    finch::Context x(dimension);
    std::unique_lock lock(bandit->mutex);
    const finch::Targets targets(&bandit->table, bandit->rule, outcomes, count);
    for (size_t i = 0; i < count; ++i) {
      if (!bandit->rule.keeps_vectors() || outcomes[i].x == nullptr) {
        finch::record(update, targets[i], outcomes[i], false, &bandit->table.evidence);
        continue;
      }
      // Outcomes of one decision share its context.
      if (i == 0 || outcomes[i].x != outcomes[i - 1].x) {
        finch::kernels().scale(outcomes[i].x, factors[i] * update.root, dimension, x.data());
      }
      finch::record_in_context(update, targets[i], bandit->table.contrast(*targets[i]), outcomes[i], x.data(),
                               &bandit->table.evidence);
      finch::learn(update, targets[i], outcomes[i], x.data());
    }
    return FINCH_OK;
  });
}

finch_status finch_bandit_drop(finch_bandit* bandit, const finch_string* ids, size_t count) {
  return finch::guarded([&]() -> finch_status {
    finch_status status = finch::check_bandit(bandit);
    if (status == FINCH_OK) status = finch::check_ids(ids, count);
    if (status != FINCH_OK) return status;
    std::unique_lock lock(bandit->mutex);
    finch::ArmTable& table = bandit->table;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view id = finch::view(ids[i]);
      finch::Arm* arm = table.find(id, finch::hash_id(id));
      if (arm == nullptr) continue;
      table.evidence -= finch::evidence_units(arm->evidence);
      table.erase(arm);
    }
    return FINCH_OK;
  });
}

finch_status finch_bandit_arms(const finch_bandit* bandit, uint64_t* count, uint64_t* bytes) {
  return finch::guarded([&]() -> finch_status {
    const finch_status status = finch::check_bandit(bandit);
    if (status != FINCH_OK) return status;
    std::shared_lock lock(bandit->mutex);
    if (count != nullptr) *count = bandit->table.size();
    if (bytes != nullptr) *bytes = bandit->table.bytes();
    return FINCH_OK;
  });
}

}  // extern "C"
