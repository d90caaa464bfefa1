#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bandit.hpp"
#include "error.hpp"
#include "sized.hpp"

namespace finch {
namespace {

constexpr double kDefaultHalfLife = 30000.0;
constexpr double kDefaultHalfLifeMax = 3600000.0;
constexpr float kDefaultTrialShare = 0.0025f;
constexpr float kLambdaLow = 1e-6f;
constexpr float kLambdaHigh = 1e6f;
constexpr float kGammaLow = 1e-6f;

}  // namespace

finch_status read_bandit_rule(const finch_bandit_options* given, BanditRule* out) noexcept {
  if (given == nullptr) return fail(FINCH_INVALID_ARGUMENT, "options is NULL; dimension is required.");
  finch_bandit_options o;
  if (!read_sized(given, offsetof(finch_bandit_options, trial_share), &o)) {
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
  const float share = o.trial_share == 0.0f ? kDefaultTrialShare : o.trial_share;
  if (!(share > 0.0f && (share <= 1.0f || std::isinf(share)))) {
    return fail(FINCH_INVALID_ARGUMENT,
                "trial_share = %g; expected above 0 and at most 1, or infinity (0: the default, 0.0025).",
                static_cast<double>(share));
  }
  *out = {o.dimension, o.form, lambda,
          gamma,       alpha,  {static_cast<double>(g), half_life, half_life_max, static_cast<double>(share)}};
  return FINCH_OK;
}

}  // namespace finch
