#include "bandit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "error.hpp"
#include "kernels/kernels.hpp"
#include "sized.hpp"
#include "unit.hpp"

namespace finch {

uint64_t evidence_units(double evidence) noexcept {
  return static_cast<uint64_t>(std::min(evidence, 8796093022208.0 /* 2^43 */) * 1048576.0 + 0.5);
}

Arm fresh_arm(const BanditRule& rule, float prior) {
  Arm arm;
  arm.prior = prior;
  if (!rule.keeps_vectors()) return arm;
  const size_t stride = rule.stride();
  arm.vectors.reset(static_cast<float*>(::operator new[](2 * stride * sizeof(float), std::align_val_t{64})));
  std::fill_n(arm.vectors.get(), 2 * stride, 0.0f);
  std::fill_n(arm.vectors.get(), rule.dimension, 1.0f / rule.lambda);
  if (rule.form == FINCH_BANDIT_LITERAL) {
    const double x0 = 1.0 / std::sqrt(static_cast<double>(rule.dimension));
    std::fill_n(arm.vectors.get() + stride, rule.dimension, static_cast<float>(static_cast<double>(prior) * x0));
  }
  return arm;
}

namespace {

constexpr double kDefaultHalfLife = 30000.0;
constexpr double kDefaultHalfLifeMax = 3600000.0;
constexpr float kLambdaLow = 1e-6f;
constexpr float kLambdaHigh = 1e6f;
constexpr float kGammaLow = 1e-6f;

finch_status read_options(const finch_bandit_options* given, BanditRule* out) noexcept {
  if (given == nullptr) return fail(FINCH_INVALID_ARGUMENT, "options is NULL; dimension is required.");
  finch_bandit_options o;
  if (!read_sized(given, sizeof(finch_bandit_options), &o)) {
    return fail(FINCH_INVALID_ARGUMENT, "finch_bandit_options.size = %zu; expected sizeof(finch_bandit_options) = %zu.",
                given->size, sizeof(finch_bandit_options));
  }
  if (o.dimension == 0 || o.dimension > FINCH_MAX_DIMENSION) {
    return fail(FINCH_DIMENSION, "dimension = %u; expected 1 to %u.", o.dimension, FINCH_MAX_DIMENSION);
  }
  if (o.form < FINCH_BANDIT_CALIBRATED || o.form > FINCH_BANDIT_MEAN) {
    return fail(FINCH_INVALID_ARGUMENT, "form = %d; expected FINCH_BANDIT_CALIBRATED, _LITERAL or _MEAN.", o.form);
  }
  const float lambda = o.lambda == 0.0f ? 1.0f : o.lambda;
  if (!(lambda >= kLambdaLow && lambda <= kLambdaHigh)) {
    return fail(FINCH_INVALID_ARGUMENT, "lambda = %g; expected 1e-6 to 1e6 (0: the default, 1).",
                static_cast<double>(lambda));
  }
  const float gamma = o.gamma == 0.0f ? 0.95f : o.gamma;
  if (!(gamma >= kGammaLow && gamma <= 1.0f)) {
    return fail(FINCH_INVALID_ARGUMENT, "gamma = %g; expected 1e-6 to 1 (0: the default, 0.95).",
                static_cast<double>(gamma));
  }
  const float alpha = o.alpha == FINCH_ALPHA_ZERO ? 0.0f : o.alpha == 0.0f ? 0.1f : o.alpha;
  if (!(alpha >= 0.0f && alpha <= 1e6f)) {
    return fail(FINCH_INVALID_ARGUMENT, "alpha = %g; expected 0 to 1e6 (0: the default, 0.1; FINCH_ALPHA_ZERO: none).",
                static_cast<double>(alpha));
  }
  const float g = o.availability_gamma == 0.0f ? 0.5f : o.availability_gamma;
  if (!(g > 0.0f && g < 1.0f)) {
    return fail(FINCH_INVALID_ARGUMENT, "availability_gamma = %g; expected above 0 and below 1 (0: the default, 0.5).",
                static_cast<double>(g));
  }
  const double half_life = o.availability_half_life == 0.0 ? kDefaultHalfLife : o.availability_half_life;
  if (!(half_life > 0.0 && std::isfinite(half_life))) {
    return fail(FINCH_INVALID_ARGUMENT,
                "availability_half_life = %g; expected above 0 and finite (0: the default, 30000).", half_life);
  }
  const double half_life_max =
      o.availability_half_life_max == 0.0 ? std::max(kDefaultHalfLifeMax, half_life) : o.availability_half_life_max;
  if (!(half_life_max >= half_life && std::isfinite(half_life_max))) {
    return fail(FINCH_INVALID_ARGUMENT,
                "availability_half_life_max = %g; expected finite and at least availability_half_life = %g.",
                half_life_max, half_life);
  }
  *out = {o.dimension, o.form, lambda, gamma, alpha, {static_cast<double>(g), half_life, half_life_max}};
  return FINCH_OK;
}

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

finch_status to_context(const float* x, size_t dimension, size_t i, float* out) noexcept {
  if (x == nullptr) return fail(FINCH_INVALID_ARGUMENT, "context %zu is NULL; expected %zu numbers.", i, dimension);
  const finch_status status = to_unit(x, dimension, out);
  if (status == FINCH_NOT_FINITE) {
    return fail(status, "context %zu holds NaN or infinity; expected finite numbers. Encode the query again.", i);
  }
  if (status == FINCH_ZERO_VECTOR) {
    return fail(status, "context %zu is the zero vector, which has no direction; expected the query's embedding.", i);
  }
  return status;
}

// Room for one context: on the stack at ordinary dimensions.
class ContextBuffer {
 public:
  explicit ContextBuffer(size_t dimension) : heap_(dimension > kOnStack ? dimension : 0) {}
  float* data() noexcept { return heap_.empty() ? stack_ : heap_.data(); }

 private:
  static constexpr size_t kOnStack = 1536;
  alignas(64) float stack_[kOnStack];
  std::vector<float> heap_;
};

// Scores arms in one context. What does not depend on the arm is computed once.
class Scorer {
 public:
  Scorer(const BanditRule& rule, const float* unit, double total_evidence, bool explore) noexcept
      : rule_(rule), unit_(unit), root_(std::sqrt(static_cast<double>(rule.dimension))) {
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
    return score;
  }

  finch_arm_score of(const Arm& arm, double now) const noexcept {
    finch_arm_score score{};
    const double r = static_cast<double>(arm.prior);
    double mean = 0.0;
    double variance = 0.0;
    if (rule_.form == FINCH_BANDIT_MEAN) {
      mean = (lambda_ * r + arm.reward_sum) / (lambda_ + arm.evidence);
      variance = log_evidence_ / (lambda_ + arm.evidence);
    } else {
      float dot = 0.0f;
      float spread = 0.0f;
      const float* inverse_a = arm.vectors.get();
      kernels_.arm_score(inverse_a, inverse_a + rule_.stride(), unit_, rule_.dimension, &dot, &spread);
      // With x~ = sqrt(d) x: mean_i(b_i x~_i / A_i) = (sum b_i x_i / A_i) / sqrt(d), mean_i(x~_i^2 / A_i) = sum x_i^2 /
      // A_i.
      mean = rule_.form == FINCH_BANDIT_LITERAL ? static_cast<double>(dot) : r + static_cast<double>(dot) / root_;
      variance = static_cast<double>(spread);
    }
    score.mean = static_cast<float>(mean);
    score.bonus = static_cast<float>(alpha_ * std::sqrt(variance));
    score.availability = static_cast<float>(availability_at(arm.availability, rule_.availability, now));
    score.last_outcome = arm.last_outcome;
    score.evidence = arm.evidence;
    score.updates = arm.updates;
    return score;
  }

 private:
  const BanditRule& rule_;
  const float* unit_;
  const Kernels& kernels_ = kernels();
  double root_;
  double alpha_;
  double lambda_;
  double log_evidence_ = 0.0;
  double sum_ = 0.0;
};

// One outcome on one arm; `unit` is overwritten.
void apply(const BanditRule& rule, Arm* arm, const finch_outcome& outcome, float* unit, uint64_t* total) noexcept {
  const double gamma = static_cast<double>(rule.gamma);
  if (rule.keeps_vectors()) {
    float floor = 0.0f;
    float reward = outcome.y;
    if (rule.form == FINCH_BANDIT_CALIBRATED) {
      const float root = static_cast<float>(std::sqrt(static_cast<double>(rule.dimension)));
      for (size_t i = 0; i < rule.dimension; ++i) unit[i] *= root;
      floor = static_cast<float>((1.0 - gamma) * static_cast<double>(rule.lambda));
      reward = outcome.y - arm->prior;
    }
    float* inverse_a = arm->vectors.get();
    kernels().arm_update(inverse_a, inverse_a + rule.stride(), unit, rule.dimension, rule.gamma, floor, reward);
  }
  if (arm->updates > 0) *total -= evidence_units(arm->evidence);
  arm->evidence = gamma * arm->evidence + 1.0;
  arm->reward_sum = gamma * arm->reward_sum + static_cast<double>(outcome.y);
  *total += evidence_units(arm->evidence);
  observe(&arm->availability, rule.availability, static_cast<double>(outcome.y), outcome.now);
  arm->last_outcome = outcome.y;
  ++arm->updates;
}

// Arms for all outcomes, made where there is none yet; if that fails half-way, none is made.
class Targets {
 public:
  Targets(ArmTable* table, const BanditRule& rule, const finch_outcome* outcomes, size_t count) : table_(table) {
    arms_.reserve(count);
    made_.reserve(count);
    try {
      for (size_t i = 0; i < count; ++i) {
        auto found = table->arms.find(view(outcomes[i].id));
        if (found == table->arms.end()) {
          found = table->arms.emplace(std::string(view(outcomes[i].id)), fresh_arm(rule, outcomes[i].prior)).first;
          made_.push_back(&found->first);
        }
        arms_.push_back(&found->second);
      }
    } catch (...) {
      for (const std::string* id : made_) table->arms.erase(table->arms.find(*id));
      throw;
    }
  }
  Arm* operator[](size_t i) const noexcept { return arms_[i]; }

 private:
  ArmTable* table_;
  std::vector<Arm*> arms_;
  std::vector<const std::string*> made_;
};

finch_status check_outcomes(const BanditRule& rule, const finch_outcome* outcomes, size_t count, float* unit) noexcept {
  if (count > 0 && outcomes == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "outcomes is NULL; expected %zu outcomes.", count);
  }
  for (size_t i = 0; i < count; ++i) {
    const finch_outcome& outcome = outcomes[i];
    finch_status status = check_id(outcome.id, i);
    if (status == FINCH_OK) status = check_share("prior", i, outcome.prior);
    if (status == FINCH_OK) status = check_share("y", i, outcome.y);
    if (status == FINCH_OK) status = check_now(outcome.now);
    if (status == FINCH_OK) status = to_context(outcome.x, rule.dimension, i, unit);
    if (status != FINCH_OK) return status;
  }
  return FINCH_OK;
}

}  // namespace
}  // namespace finch

extern "C" {

finch_status finch_bandit_create(const finch_bandit_options* options, finch_bandit** out) {
  return finch::guarded([&]() -> finch_status {
    if (out == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "out is NULL; pass where to put the bandit handle.");
    finch::BanditRule rule;
    const finch_status status = finch::read_options(options, &rule);
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
    finch_status status = finch::check_bandit(bandit);
    if (status == FINCH_OK) status = finch::check_ids(ids, count);
    if (status == FINCH_OK) status = finch::check_now(now);
    if (status == FINCH_OK && count > 0 && out == nullptr) {
      status = finch::fail(FINCH_INVALID_ARGUMENT, "out is NULL; expected room for %zu scores.", count);
    }
    for (size_t i = 0; status == FINCH_OK && priors != nullptr && i < count; ++i) {
      status = finch::check_share("prior", i, priors[i]);
    }
    if (status != FINCH_OK) return status;
    const finch::BanditRule& rule = bandit->rule;
    finch::ContextBuffer unit(rule.dimension);
    status = finch::to_context(x, rule.dimension, 0, unit.data());
    if (status != FINCH_OK) return status;
    std::shared_lock lock(bandit->mutex);
    const finch::ArmTable& table = bandit->table;
    const finch::Scorer scorer(rule, unit.data(), static_cast<double>(table.evidence) / 1048576.0, explore != 0);
    for (size_t i = 0; i < count; ++i) {
      const auto found = table.arms.find(finch::view(ids[i]));
      out[i] = found != table.arms.end() ? scorer.of(found->second, now)
                                         : scorer.fresh(priors != nullptr ? priors[i] : 0.5f);
    }
    return FINCH_OK;
  });
}

finch_status finch_bandit_update(finch_bandit* bandit, const finch_outcome* outcomes, size_t count) {
  return finch::guarded([&]() -> finch_status {
    finch_status status = finch::check_bandit(bandit);
    if (status != FINCH_OK) return status;
    const finch::BanditRule& rule = bandit->rule;
    finch::ContextBuffer unit(rule.dimension);
    status = finch::check_outcomes(rule, outcomes, count, unit.data());
    if (status != FINCH_OK) return status;
    std::unique_lock lock(bandit->mutex);
    const finch::Targets targets(&bandit->table, rule, outcomes, count);
    for (size_t i = 0; i < count; ++i) {
      finch::to_unit(outcomes[i].x, rule.dimension, unit.data());
      finch::apply(rule, targets[i], outcomes[i], unit.data(), &bandit->table.evidence);
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
      const auto found = table.arms.find(finch::view(ids[i]));
      if (found == table.arms.end()) continue;
      table.evidence -= finch::evidence_units(found->second.evidence);
      table.arms.erase(found);
    }
    return FINCH_OK;
  });
}

finch_status finch_bandit_arms(const finch_bandit* bandit, uint64_t* count, uint64_t* bytes) {
  return finch::guarded([&]() -> finch_status {
    const finch_status status = finch::check_bandit(bandit);
    if (status != FINCH_OK) return status;
    std::shared_lock lock(bandit->mutex);
    const auto& arms = bandit->table.arms;
    if (count != nullptr) *count = arms.size();
    if (bytes != nullptr) {
      // A node: the arm, its id where that is not kept inside the string, a link and a hash.
      const uint64_t vectors = bandit->rule.keeps_vectors() ? 2 * bandit->rule.stride() * sizeof(float) : 0;
      uint64_t sum = arms.bucket_count() * sizeof(void*);
      for (const auto& [id, arm] : arms) {
        sum += sizeof(std::pair<const std::string, finch::Arm>) + 2 * sizeof(void*) + vectors;
        if (id.capacity() > std::string().capacity()) sum += id.capacity() + 1;
      }
      *bytes = sum;
    }
    return FINCH_OK;
  });
}

}  // extern "C"
