#include "fuse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "error.hpp"
#include "sized.hpp"

namespace finch {
namespace {

constexpr double kSumTolerance = 1e-4;

bool is_share(float v) noexcept { return v >= 0.0f && v <= 1.0f; }

finch_status check_inputs(const float* semantic, const float* p, const float* prior, const float* availability,
                          size_t count) noexcept {
  struct Column {
    const char* name;
    const float* values;
    bool share;
  };
  const Column columns[] = {
      {"semantic", semantic, false}, {"p", p, false}, {"prior", prior, true}, {"availability", availability, true}};
  for (const Column& column : columns) {
    for (size_t i = 0; column.values != nullptr && i < count; ++i) {
      const float v = column.values[i];
      if (!std::isfinite(v)) {
        return fail(FINCH_NOT_FINITE, "%s[%zu] is %g; expected a finite number.", column.name, i,
                    static_cast<double>(v));
      }
      if (column.share && !is_share(v)) {
        return fail(FINCH_INVALID_ARGUMENT, "%s[%zu] = %g; expected 0 to 1.", column.name, i, static_cast<double>(v));
      }
    }
  }
  return FINCH_OK;
}

}  // namespace

finch_status read_weights(const finch_weights* given, finch_weights* out) noexcept {
  *out = finch_weights{};
  if (given != nullptr && !read_sized(given, sizeof(finch_weights), out)) {
    return fail(FINCH_INVALID_ARGUMENT, "finch_weights.size = %zu; expected sizeof(finch_weights) = %zu.", given->size,
                sizeof(finch_weights));
  }
  if (out->semantic == 0.0f && out->bandit == 0.0f && out->prior == 0.0f) {
    out->semantic = 0.75f;
    out->bandit = 0.15f;
    out->prior = 0.10f;
  }
  const double sum =
      static_cast<double>(out->semantic) + static_cast<double>(out->bandit) + static_cast<double>(out->prior);
  if (!is_share(out->semantic) || !is_share(out->bandit) || !is_share(out->prior) ||
      !(std::fabs(sum - 1.0) <= kSumTolerance)) {
    return fail(FINCH_INVALID_ARGUMENT,
                "weights semantic %g, bandit %g, prior %g; expected numbers from 0 to 1 that sum to 1 (within 1e-4).",
                static_cast<double>(out->semantic), static_cast<double>(out->bandit), static_cast<double>(out->prior));
  }
  if (!is_share(out->outage)) {
    return fail(FINCH_INVALID_ARGUMENT, "outage = %g; expected 0 to 1.", static_cast<double>(out->outage));
  }
  if (out->clamp > 1) return fail(FINCH_INVALID_ARGUMENT, "clamp = %u; expected 0 or 1.", out->clamp);
  return FINCH_OK;
}

float fuse_one(float semantic, float p, float prior, float availability, const finch_weights& weights) noexcept {
  const double weighed = weights.clamp != 0 ? static_cast<double>(std::clamp(p, 0.0f, 1.0f)) : static_cast<double>(p);
  const double sum = static_cast<double>(weights.semantic) * static_cast<double>(semantic) +
                     static_cast<double>(weights.bandit) * weighed +
                     static_cast<double>(weights.prior) * static_cast<double>(prior) -
                     static_cast<double>(weights.outage) * (1.0 - static_cast<double>(availability));
  // Only the tolerance of the weights' sum can carry the result past float32's range.
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(sum, -kMost, kMost));
}

}  // namespace finch

extern "C" {

finch_status finch_fuse(const float* semantic, const float* p, const float* prior, const float* availability,
                        size_t count, const finch_weights* weights, float* out) {
  return finch::guarded([&]() -> finch_status {
    finch_weights read;
    finch_status status = finch::read_weights(weights, &read);
    if (status != FINCH_OK || count == 0) return status;
    if (semantic == nullptr || out == nullptr) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "%s is NULL; expected room for %zu numbers.",
                         semantic == nullptr ? "semantic" : "out", count);
    }
    status = finch::check_inputs(semantic, p, prior, availability, count);
    if (status != FINCH_OK) return status;
    for (size_t i = 0; i < count; ++i) {
      const float r = prior != nullptr ? prior[i] : 0.5f;
      out[i] = finch::fuse_one(semantic[i], p != nullptr ? p[i] : r, r,
                               availability != nullptr ? availability[i] : 1.0f, read);
    }
    return FINCH_OK;
  });
}

}  // extern "C"
