// finch_truncate and finch_truncate_batch against the rule in float64, on lists of any length with numbers of any size.
#include <algorithm>
#include <cmath>
#include <limits>

#include "input.hpp"

using finch_fuzz::checked;
using finch_fuzz::Input;
using finch_fuzz::Room;

namespace {

struct List {
  size_t n;
  std::vector<float> scores;
  std::vector<float> rows;
};

// Ready made for both calls: one list of scores in order, mostly, and rows of which some repeat (similarity 1, ties).
List draw(Input& in, uint32_t d) {
  List list;
  list.n = in.below(in.one_in(8) ? 200 : 24);
  for (size_t i = 0; i < list.n; ++i) list.scores.push_back(in.number());
  if (!in.one_in(16)) {
    std::sort(list.scores.begin(), list.scores.end(), [](float a, float b) { return a > b; });
  }
  for (size_t i = 0; i < list.n; ++i) {
    const uint8_t what = in.byte();
    if (i > 0 && what >= 0xD0) {  // the row before, as it is, turned round, or of another length
      const float by = what >= 0xF0 ? -1.0f : what >= 0xE0 ? 1e-12f : 1.0f;
      for (uint32_t j = 0; j < d; ++j) list.rows.push_back(list.rows[list.rows.size() - d] * by);
      continue;
    }
    const float scale = what >= 0xC8 ? 1e-38f : what >= 0xC0 ? 1e37f : 1.0f;
    uint32_t state = in.word() | 1;
    for (uint32_t j = 0; j < d; ++j) {
      if (j < 4) {
        list.rows.push_back(in.number() * scale);
        continue;
      }
      state = state * 1664525u + 1013904223u;
      list.rows.push_back((static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * scale);
    }
  }
  return list;
}

bool finite(const std::vector<float>& v) {
  return std::all_of(v.begin(), v.end(), [](float x) { return std::isfinite(x); });
}

double cosine(const float* a, const float* b, size_t d) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < d; ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
}

// What the documentation says must come back for a list without faults; FINCH_OK when there is none.
finch_status verdict(const List& list, uint32_t d, bool rows_read) {
  bool unsorted = false;
  for (size_t i = 1; i < list.n; ++i) unsorted |= list.scores[i] > list.scores[i - 1];
  const bool odd = !finite(list.scores) || (rows_read && !finite(list.rows));
  bool zero = false;
  for (size_t i = 0; rows_read && i < list.n; ++i) {
    const float* row = list.rows.data() + i * d;
    zero |= std::all_of(row, row + d, [](float x) { return x == 0.0f; });
  }
  if (!odd && !unsorted && !zero) return FINCH_OK;
  if (odd && !unsorted && !zero) return FINCH_NOT_FINITE;
  if (unsorted && !odd && !zero) return FINCH_INVALID_ARGUMENT;
  if (zero && !odd && !unsorted) return FINCH_ZERO_VECTOR;
  return -1;  // several faults: any of them may be named
}

// The largest of the gaps, up to what rounding may hide; `reported` must be within that of it, and no earlier gap may
// be clearly as large.
void check_gap(const std::vector<double>& values, uint32_t reported, double gap, double rounding, const char* which) {
  if (values.size() < 2) {
    FUZZ_CHECK(reported == 0 && gap == 0.0, "%s: %u", which, reported);
    return;
  }
  FUZZ_CHECK(reported >= 1 && reported < values.size(), "%s: %u of %zu", which, reported, values.size());
  double best = -HUGE_VAL;
  for (size_t i = 1; i < values.size(); ++i) best = std::max(best, values[i - 1] - values[i]);
  const double here = values[reported - 1] - values[reported];
  FUZZ_CHECK(here >= best - 2 * rounding, "%s: gap %g at %u, largest %g", which, here, reported, best);
  const double shown = std::min<double>(here, std::numeric_limits<float>::max());
  FUZZ_CHECK(std::fabs(gap - shown) <= 2 * rounding + 1e-7 * std::fabs(shown), "%s: gap %g for %g", which, gap, shown);
  if (rounding > 0) return;
  for (size_t i = 1; i < reported; ++i) {
    FUZZ_CHECK(values[i - 1] - values[i] < here, "%s: %u, but %zu is first", which, reported, i);
  }
}

void check_cut(const List& list, uint32_t d, const finch_cut_options& options, const finch_cut& cut,
               const Room<float>* similarities) {
  const uint32_t signals = options.signals == 0 ? 3 : options.signals;
  const double rounding = (static_cast<double>(d) + 16) * 6e-8;
  std::vector<double> scores(list.scores.begin(), list.scores.end());
  check_gap((signals & FINCH_CUT_SCORE) != 0 ? scores : std::vector<double>{}, cut.k_score,
            static_cast<double>(cut.gap_score), 0.0, "score");
  std::vector<double> cosines;
  if ((signals & FINCH_CUT_SIMILARITY) != 0 || similarities != nullptr) {
    for (size_t i = 1; i < list.n; ++i) {
      cosines.push_back(cosine(list.rows.data() + (i - 1) * d, list.rows.data() + i * d, d));
      if (similarities == nullptr) continue;
      FUZZ_CHECK(std::fabs(static_cast<double>(similarities->at(i - 1)) - cosines.back()) <= rounding,
                 "similarity %zu: %.9g for %.9g", i - 1, static_cast<double>(similarities->at(i - 1)), cosines.back());
    }
  }
  if ((signals & FINCH_CUT_SIMILARITY) == 0) cosines.clear();
  check_gap(cosines, cut.k_similarity, static_cast<double>(cut.gap_similarity), rounding, "similarity");

  const size_t largest = std::max(cut.k_score, cut.k_similarity);
  const size_t ruled = largest == 0 ? list.n : largest + (options.after != 0);
  size_t k = std::max<size_t>(ruled, options.min_k);
  if (options.max_k != 0) k = std::min<size_t>(k, options.max_k);
  k = std::min(k, list.n);
  FUZZ_CHECK(cut.k == k, "k = %u, the rule says %zu", cut.k, k);
  FUZZ_CHECK(cut.n == list.n && (cut.k > 0 || list.n == 0), "n = %u, k = %u", cut.n, cut.k);
  uint32_t signal = 0;
  if (k == ruled && largest > 0) {
    if (cut.k_score == largest) signal |= FINCH_CUT_SCORE;
    if (cut.k_similarity == largest) signal |= FINCH_CUT_SIMILARITY;
  }
  FUZZ_CHECK(cut.signal == signal, "signal %u, expected %u", cut.signal, signal);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  const uint32_t d = 1 + in.below(in.one_in(8) ? 150 : 24);
  finch_cut_options options{};
  options.size = sizeof(options);
  options.signals = in.below(in.one_in(16) ? 6 : 4);
  options.after = in.below(in.one_in(16) ? 3 : 2);
  if (in.one_in(3)) options.min_k = in.below(30);
  if (in.one_in(3)) options.max_k = in.below(30);
  const bool options_good =
      options.signals <= 3 && options.after <= 1 && (options.max_k == 0 || options.max_k >= options.min_k);
  const bool with_similarities = in.one_in(2);
  const bool rows_read = with_similarities || options.signals != FINCH_CUT_SCORE;

  std::vector<List> lists(1 + in.below(4));
  for (List& list : lists) list = draw(in, d);

  std::vector<finch_cut> single;
  bool all_good = true;
  finch_status one_fault = FINCH_OK;
  int faults = 0;
  for (const List& list : lists) {
    Room<float> scores(list.n);
    for (size_t i = 0; i < list.n; ++i) scores.set(i, list.scores[i]);
    Room<float> rows(list.n * d, in.below(4));
    for (size_t i = 0; i < list.n * d; ++i) rows.set(i, list.rows[i]);
    Room<float> similarities(list.n > 1 ? list.n - 1 : 0);
    Room<finch_cut> cut(1);
    cut.set(0, {sizeof(finch_cut), 7, 7, 7, 7, 7.0f, 7.0f, 7});
    cut.keep();
    const bool no_rows = !rows_read && in.one_in(2);
    const finch_status status =
        checked(finch_truncate(scores.get(), no_rows ? nullptr : rows.get(), list.n, d, &options, cut.get(),
                               with_similarities ? similarities.get() : nullptr));
    const finch_status expected = options_good ? verdict(list, d, rows_read) : FINCH_INVALID_ARGUMENT;
    if (expected >= 0) FUZZ_CHECK(status == expected, "status %d, expected %d", status, expected);
    if (expected < 0) FUZZ_CHECK(status != FINCH_OK, "several faults and no error");
    if (status == FINCH_OK) {
      check_cut(list, d, options, cut.at(0), with_similarities ? &similarities : nullptr);
    } else {
      FUZZ_CHECK(cut.untouched() && similarities.untouched(), "a failed call wrote");
    }
    single.push_back(cut.at(0));
    // What the batch, which takes no similarities, reads.
    const finch_status batch_status =
        options_good ? verdict(list, d, options.signals != FINCH_CUT_SCORE) : FINCH_INVALID_ARGUMENT;
    all_good &= batch_status == FINCH_OK;
    if (batch_status != FINCH_OK) {
      ++faults;
      one_fault = batch_status;
    }
  }

  size_t total = 0;
  Room<uint64_t> offsets(lists.size() + 1);
  offsets.set(0, 0);
  for (size_t j = 0; j < lists.size(); ++j) {
    total += lists[j].n;
    offsets.set(j + 1, total);
  }
  Room<float> scores(total);
  Room<float> rows(total * d, in.below(4));
  size_t at = 0;
  for (const List& list : lists) {
    for (size_t i = 0; i < list.n; ++i) scores.set(at + i, list.scores[i]);
    for (size_t i = 0; i < list.n * d; ++i) rows.set(at * d + i, list.rows[i]);
    at += list.n;
  }
  Room<finch_cut> cuts(lists.size());
  for (size_t j = 0; j < lists.size(); ++j) cuts.set(j, {sizeof(finch_cut), 9, 9, 9, 9, 9.0f, 9.0f, 9});
  cuts.keep();
  const bool no_rows = options.signals == FINCH_CUT_SCORE && in.one_in(2);
  const finch_status status = checked(finch_truncate_batch(scores.get(), no_rows ? nullptr : rows.get(), offsets.get(),
                                                           lists.size(), d, &options, cuts.get()));
  FUZZ_CHECK((status == FINCH_OK) == all_good, "the batch's status is %d", status);
  if (faults == 1 && one_fault >= 0) FUZZ_CHECK(status == one_fault, "status %d, expected %d", status, one_fault);
  for (size_t j = 0; j < lists.size() && status == FINCH_OK; ++j) {
    const finch_cut cut = cuts.at(j);
    check_cut(lists[j], d, options, cut, nullptr);
    // The single call may have failed on rows that only its similarities needed.
    if (single[j].k != 7 || single[j].n != 7) {
      FUZZ_CHECK(std::memcmp(&cut, &single[j], sizeof(cut)) == 0, "list %zu alone and in the batch differ", j);
    }
  }
  if (status != FINCH_OK) FUZZ_CHECK(cuts.untouched(), "a failed batch wrote");
  return 0;
}
