#include "truncate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "error.hpp"
#include "kernels/kernels.hpp"
#include "sized.hpp"
#include "small_buffer.hpp"

namespace finch {
namespace {

// Squared norms in this range make float32 sums safe: no product that matters overflows or falls among the subnormals.
constexpr float kSafeLow = 1e-30f;
constexpr float kSafeHigh = 1e30f;

bool is_safe(float squared_norm) noexcept { return squared_norm >= kSafeLow && squared_norm <= kSafeHigh; }

// v[i] of a vector of any alignment.
double element(const float* v, size_t i) noexcept {
  float x;
  std::memcpy(&x, reinterpret_cast<const char*>(v) + i * sizeof(float), sizeof(x));
  return static_cast<double>(x);
}

bool all_finite(const float* v, size_t d) noexcept {
  for (size_t i = 0; i < d; ++i) {
    if (!std::isfinite(element(v, i))) return false;
  }
  return true;
}

bool all_zero(const float* v, size_t d) noexcept {
  for (size_t i = 0; i < d; ++i) {
    if (element(v, i) != 0.0) return false;
  }
  return true;
}

// Cosine in double precision, in index order: for the rare rows whose float32 sums overflow or vanish. Squares of
// float32 values cannot do either in float64.
double wide_cosine(const float* a, const float* b, size_t d) noexcept {
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (size_t i = 0; i < d; ++i) {
    const double x = element(a, i);
    const double y = element(b, i);
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / (std::sqrt(aa) * std::sqrt(bb));
}

float to_similarity(double cosine) noexcept { return static_cast<float>(std::clamp(cosine, -1.0, 1.0)); }

// The first of the largest gaps seen so far.
struct LargestGap {
  double gap = -std::numeric_limits<double>::infinity();
  size_t at = 0;  // 1-based; 0: none seen

  void see(float here, float next, size_t i) noexcept {
    const double g = static_cast<double>(here) - static_cast<double>(next);
    if (g > gap) {
      gap = g;
      at = i;
    }
  }
  // Two finite scores may lie further apart than float32 reaches.
  float value() const noexcept {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return at == 0 ? 0.0f : static_cast<float>(std::min(gap, kLargest));
  }
};

struct Place {
  char text[48];
};

// " of list 3" for messages about a batch.
Place name_list(long long list) noexcept {
  Place place{};
  if (list >= 0) std::snprintf(place.text, sizeof(place.text), " of list %lld", list);
  return place;
}

finch_status check_scores(const float* scores, size_t n, long long list) noexcept {
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(scores[i])) {
      return fail(FINCH_NOT_FINITE,
                  "scores[%zu]%s is %g; expected a finite number. Drop that candidate before truncating.", i,
                  name_list(list).text, static_cast<double>(scores[i]));
    }
    if (i > 0 && scores[i] > scores[i - 1]) {
      return fail(FINCH_INVALID_ARGUMENT,
                  "scores[%zu] = %g%s is above scores[%zu] = %g; expected descending order. Sort scores and embeddings "
                  "together first.",
                  i, static_cast<double>(scores[i]), name_list(list).text, i - 1, static_cast<double>(scores[i - 1]));
    }
  }
  return FINCH_OK;
}

finch_status check_row(const float* row, size_t d, size_t i, long long list) noexcept {
  if (!all_finite(row, d)) {
    return fail(FINCH_NOT_FINITE,
                "embedding %zu%s holds NaN or infinity; expected finite numbers. Encode that tool again.", i,
                name_list(list).text);
  }
  if (all_zero(row, d)) {
    return fail(
        FINCH_ZERO_VECTOR,
        "embedding %zu%s is the zero vector, which has no direction; expected at least one component other than 0.", i,
        name_list(list).text);
  }
  return FINCH_OK;
}

// A row whose sums are not safe, or which is no vector: refused, or compared in double precision.
finch_status check_rows_of(const float* const* rows, const float* norms, size_t from, size_t count, size_t d,
                           size_t first, long long list) noexcept {
  for (size_t i = from; i < count; ++i) {
    if (is_safe(norms[i])) continue;
    const finch_status status = check_row(rows[i], d, first + i, list);
    if (status != FINCH_OK) return status;
  }
  return FINCH_OK;
}

finch_status see_similarities(const EmbeddingRows& embeddings, size_t n, long long list, LargestGap* largest,
                              float* similarities) noexcept {
  constexpr size_t kBlock = 64;
  const size_t d = embeddings.dimension;
  const Kernels& k = kernels();
  const float* rows[kBlock + 1];
  float dots[kBlock];
  float norms[kBlock + 1];
  float near[kBlock];
  float last = 0.0f;
  // Blocks share a row: the last of one is the first of the next.
  for (size_t first = 0; first == 0 || first + 1 < n; first += kBlock) {
    const size_t count = std::min(kBlock + 1, n - first);
    for (size_t i = 0; i < count; ++i) rows[i] = embeddings.at(first + i);
    k.gap_rows(rows, count, d, dots, norms);
    const finch_status status = check_rows_of(rows, norms, first == 0 ? 0 : 1, count, d, first, list);
    if (status != FINCH_OK) return status;
    k.cosines(dots, norms, count, near);
    for (size_t i = 1; i < count; ++i) {
      if (!is_safe(norms[i - 1]) || !is_safe(norms[i])) {
        near[i - 1] = to_similarity(wide_cosine(rows[i - 1], rows[i], d));
      }
      if (first + i > 1) largest->see(last, near[i - 1], first + i - 1);
      last = near[i - 1];
    }
    if (similarities != nullptr) std::copy_n(near, count - 1, similarities + first);
  }
  return FINCH_OK;
}

finch_cut cut_at(const LargestGap& score, const LargestGap& similarity, size_t n,
                 const finch_cut_options& options) noexcept {
  finch_cut cut{};
  cut.k_score = static_cast<uint32_t>(score.at);
  cut.k_similarity = static_cast<uint32_t>(similarity.at);
  cut.gap_score = score.value();
  cut.gap_similarity = similarity.value();
  size_t k = std::max(score.at, similarity.at);
  if (k == 0) {
    k = n;  // no gap to go by: nothing is cut
  } else {
    if (score.at == k) cut.signal |= FINCH_CUT_SCORE;
    if (similarity.at == k) cut.signal |= FINCH_CUT_SIMILARITY;
    if (options.after != 0) ++k;
  }
  size_t bounded = std::max<size_t>(k, options.min_k);
  if (options.max_k != 0) bounded = std::min<size_t>(bounded, options.max_k);
  bounded = std::min(bounded, n);
  if (bounded != k) cut.signal = 0;
  cut.k = static_cast<uint32_t>(bounded);
  cut.n = static_cast<uint32_t>(n);
  return cut;
}

bool wants_embeddings(const finch_cut_options& options, const float* similarities) noexcept {
  return (options.signals & FINCH_CUT_SIMILARITY) != 0 || similarities != nullptr;
}

finch_status check_rows(const float* scores, const float* embeddings, size_t n, uint32_t dimension,
                        bool wanted) noexcept {
  if (n == 0) return FINCH_OK;
  if (scores == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT, "scores is NULL; expected %zu numbers in descending order.", n);
  }
  if (n > std::numeric_limits<uint32_t>::max()) {
    return fail(FINCH_INVALID_ARGUMENT, "n = %zu; expected at most 4294967295.", n);
  }
  if (!wanted) return FINCH_OK;
  if (embeddings == nullptr) {
    return fail(FINCH_INVALID_ARGUMENT,
                "embeddings is NULL; expected n x dimension numbers. Ask for FINCH_CUT_SCORE alone to do without.");
  }
  if (dimension == 0 || dimension > FINCH_MAX_DIMENSION) {
    return fail(FINCH_DIMENSION, "dimension = %u; expected 1 to %u.", dimension, FINCH_MAX_DIMENSION);
  }
  return FINCH_OK;
}

finch_status check_out(const finch_cut* out) noexcept {
  if (out == nullptr) return fail(FINCH_INVALID_ARGUMENT, "out is NULL; expected a finch_cut.");
  if (out->size < sizeof(finch_cut)) {
    return fail(FINCH_INVALID_ARGUMENT, "finch_cut.size = %zu; expected sizeof(finch_cut) = %zu, set by the caller.",
                out->size, sizeof(finch_cut));
  }
  return FINCH_OK;
}

}  // namespace

finch_status read_cut_options(const finch_cut_options* given, finch_cut_options* out) noexcept {
  *out = finch_cut_options{};
  if (given != nullptr && !read_sized(given, sizeof(finch_cut_options), out)) {
    return fail(FINCH_INVALID_ARGUMENT, "finch_cut_options.size = %zu; expected sizeof(finch_cut_options) = %zu.",
                given->size, sizeof(finch_cut_options));
  }
  if (out->signals == 0) out->signals = FINCH_CUT_SCORE | FINCH_CUT_SIMILARITY;
  if ((out->signals & ~static_cast<uint32_t>(FINCH_CUT_SCORE | FINCH_CUT_SIMILARITY)) != 0) {
    return fail(FINCH_INVALID_ARGUMENT, "signals = %u; expected FINCH_CUT_SCORE, FINCH_CUT_SIMILARITY or both.",
                out->signals);
  }
  if (out->after > 1) {
    return fail(FINCH_INVALID_ARGUMENT, "after = %u; expected 0 (cut after t_i) or 1 (after t_(i+1)).", out->after);
  }
  if (out->max_k != 0 && out->max_k < out->min_k) {
    return fail(FINCH_INVALID_ARGUMENT, "max_k = %u is below min_k = %u; expected max_k of 0 (none) or at least min_k.",
                out->max_k, out->min_k);
  }
  return FINCH_OK;
}

finch_status truncate(const float* scores, const EmbeddingRows& embeddings, size_t n, const finch_cut_options& options,
                      long long list, finch_cut* out, float* similarities) noexcept {
  finch_status status = check_scores(scores, n, list);
  if (status != FINCH_OK) return status;
  LargestGap score;
  LargestGap similarity;
  if ((options.signals & FINCH_CUT_SCORE) != 0) {
    for (size_t i = 1; i < n; ++i) score.see(scores[i - 1], scores[i], i);
  }
  if (n > 0 && wants_embeddings(options, similarities)) {
    LargestGap seen;
    status = see_similarities(embeddings, n, list, &seen, similarities);
    if (status != FINCH_OK) return status;
    if ((options.signals & FINCH_CUT_SIMILARITY) != 0) similarity = seen;
  }
  const finch_cut cut = cut_at(score, similarity, n, options);
  write_sized(cut, out);
  return FINCH_OK;
}

}  // namespace finch

extern "C" {

finch_status finch_truncate(const float* scores, const float* embeddings, size_t n, uint32_t dimension,
                            const finch_cut_options* options, finch_cut* out, float* similarities) {
  return finch::guarded([&]() -> finch_status {
    finch_cut_options read;
    finch_status status = finch::read_cut_options(options, &read);
    if (status == FINCH_OK) status = finch::check_out(out);
    if (status == FINCH_OK) {
      status = finch::check_rows(scores, embeddings, n, dimension, finch::wants_embeddings(read, similarities));
    }
    if (status != FINCH_OK) return status;
    // Similarities go to the caller once all rows have proved good.
    const bool similar = similarities != nullptr && n > 1;
    finch::SmallBuffer<float, 256> computed(similar ? n - 1 : 0);
    const finch::EmbeddingRows rows{embeddings, nullptr, dimension};
    status = finch::truncate(scores, rows, n, read, -1, out, similarities == nullptr ? nullptr : computed.data());
    if (status == FINCH_OK && similar) std::copy(computed.begin(), computed.end(), similarities);
    return status;
  });
}

finch_status finch_truncate_batch(const float* scores, const float* embeddings, const uint64_t* offsets, size_t lists,
                                  uint32_t dimension, const finch_cut_options* options, finch_cut* out) {
  return finch::guarded([&]() -> finch_status {
    finch_cut_options read;
    finch_status status = finch::read_cut_options(options, &read);
    if (status != FINCH_OK || lists == 0) return status;
    status = finch::check_out(out);
    if (status != FINCH_OK) return status;
    if (offsets == nullptr || offsets[0] != 0) {
      return finch::fail(FINCH_INVALID_ARGUMENT, "offsets must hold lists + 1 entries and begin with 0.");
    }
    const bool wanted = finch::wants_embeddings(read, nullptr);
    for (size_t j = 0; j < lists; ++j) {
      if (offsets[j + 1] < offsets[j]) {
        return finch::fail(FINCH_INVALID_ARGUMENT, "offsets[%zu] is below offsets[%zu]; expected ascending offsets.",
                           j + 1, j);
      }
      const size_t n = static_cast<size_t>(offsets[j + 1] - offsets[j]);
      status = finch::check_rows(scores, embeddings, n, dimension, wanted);
      if (status != FINCH_OK) return status;
    }
    finch::SmallBuffer<finch_cut, 64> cuts(lists);
    for (size_t j = 0; j < lists; ++j) {
      const size_t first = static_cast<size_t>(offsets[j]);
      const size_t n = static_cast<size_t>(offsets[j + 1]) - first;
      const finch::EmbeddingRows rows{wanted && n > 0 ? embeddings + first * dimension : nullptr, nullptr, dimension};
      cuts[j] = finch_cut{};
      cuts[j].size = sizeof(finch_cut);
      status = finch::truncate(n > 0 ? scores + first : nullptr, rows, n, read, static_cast<long long>(j), &cuts[j],
                               nullptr);
      if (status != FINCH_OK) return status;
    }
    // The array's stride is the caller's idea of the struct's size.
    const size_t stride = out->size;
    for (size_t j = 0; j < lists; ++j) {
      finch_cut* target = reinterpret_cast<finch_cut*>(reinterpret_cast<char*>(out) + j * stride);
      target->size = stride;
      finch::write_sized(cuts[j], target);
    }
    return FINCH_OK;
  });
}

}  // extern "C"
