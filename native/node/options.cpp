#include "options.hpp"

#include <cmath>
#include <limits>

#include "environment.hpp"
#include "fault.hpp"
#include "handles.hpp"

namespace finch::node {
namespace {

constexpr uint32_t kMostWhole = 0xffffffff;
constexpr uint32_t kMostThreads = 65536;

// A number as the float the C ABI takes; what float cannot hold is outside every documented range.
float to_float(double number, const std::string& name) {
  const auto narrow = static_cast<float>(number);
  if (!std::isfinite(narrow)) refuse_argument("Expected " + name + " to be small enough for a 32-bit float.");
  return narrow;
}

// For fields where zero would silently mean the default.
double positive_or(const Options& options, const char* field, double fallback) {
  const std::optional<double> number = options.optional_number(field);
  if (!number.has_value()) return fallback;
  if (*number <= 0) {
    refuse_argument("Expected " + options.name_of(field) + " to be greater than 0; leave it out for the default.");
  }
  return *number;
}

float positive_float_or(const Options& options, const char* field) {
  const double number = positive_or(options, field, 0);
  const float narrow = to_float(number, options.name_of(field));
  if (number > 0 && narrow == 0) {
    refuse_argument("Expected " + options.name_of(field) + " to be large enough for a 32-bit float.");
  }
  return narrow;
}

}  // namespace

Options::Options(napi_env env, napi_value value, std::string name, bool optional) : env_(env), name_(std::move(name)) {
  napi_valuetype type = napi_undefined;
  must(env, napi_typeof(env, value, &type));
  if (type == napi_object) {
    object_ = value;
  } else if (!optional || (type != napi_undefined && type != napi_null)) {
    refuse_argument("Expected " + name_ + " to be an object but received " + describe(env, value) + ".");
  }
}

napi_value Options::get(const char* field) const {
  napi_value value = nullptr;
  if (object_ == nullptr) {
    must(env_, napi_get_undefined(env_, &value));
  } else {
    must(env_, napi_get_named_property(env_, object_, field, &value));
  }
  return value;
}

bool Options::has(const char* field) const { return !is_absent(env_, get(field)); }

uint32_t Options::whole(const char* field, uint32_t least, uint32_t most) const {
  return read_whole(env_, get(field), name_of(field), least, most);
}

uint32_t Options::whole_or(const char* field, uint32_t least, uint32_t most, uint32_t fallback) const {
  napi_value value = get(field);
  return is_absent(env_, value) ? fallback : read_whole(env_, value, name_of(field), least, most);
}

double Options::number(const char* field) const { return read_number(env_, get(field), name_of(field)); }

std::optional<double> Options::optional_number(const char* field) const {
  napi_value value = get(field);
  if (is_absent(env_, value)) return std::nullopt;
  return read_number(env_, value, name_of(field));
}

bool Options::boolean(const char* field) const { return read_boolean(env_, get(field), name_of(field)); }

bool Options::boolean_or(const char* field, bool fallback) const {
  napi_value value = get(field);
  return is_absent(env_, value) ? fallback : read_boolean(env_, value, name_of(field));
}

std::string Options::c_string(const char* field) const { return read_c_string(env_, get(field), name_of(field)); }

std::optional<std::string> Options::optional_string(const char* field) const {
  napi_value value = get(field);
  if (is_absent(env_, value)) return std::nullopt;
  std::string text = read_string(env_, value, name_of(field), Surrogates::refuse);
  // An empty string would mean the default to the C ABI.
  if (text.empty()) {
    refuse_argument("Expected " + name_of(field) + " to be a non-empty string; leave it out for the default.");
  }
  return text;
}

int32_t Options::choice(const char* field, std::initializer_list<std::pair<const char*, int32_t>> words,
                        bool optional) const {
  napi_value value = get(field);
  if (optional && is_absent(env_, value)) return words.begin()->second;
  napi_valuetype type = napi_undefined;
  must(env_, napi_typeof(env_, value, &type));
  if (type == napi_string) {
    const std::string word = read_string(env_, value, name_of(field), Surrogates::replace);
    for (const auto& [known, number] : words) {
      if (word == known) return number;
    }
  }
  std::string expected;
  for (const auto& known : words) expected += (expected.empty() ? "'" : ", '") + std::string(known.first) + "'";
  refuse_argument("Expected " + name_of(field) + " to be one of " + expected + " but received " +
                  describe(env_, value) + ".");
}

SearchOptions read_search_options(napi_env env, napi_value value, const char* name) {
  const Options options(env, value, name, false);
  SearchOptions search;
  search.k = options.whole("k", 1, FINCH_MAX_K);
  search.mode = options.choice(
      "mode", {{"auto", FINCH_SEARCH_AUTO}, {"exact", FINCH_SEARCH_EXACT}, {"ann", FINCH_SEARCH_ANN}}, true);
  // Left out: the native side's choice.
  search.threads = options.whole_or("threads", 1, kMostThreads, 0);
  search.overfetch = options.whole_or("overfetch", 1, kMostWhole, 0);
  search.expansion = options.whole_or("expansion", 1, kMostWhole, 0);
  napi_value allow = options.get("allow");
  if (!is_absent(env, allow)) {
    search.allow = open_box<finch_allow>(env, allow, options.name_of("allow").c_str()).object;
  }
  return search;
}

finch_search_options SearchOptions::view(const finch_cancel* cancel) const {
  finch_search_options options = {};
  options.size = sizeof(options);
  options.k = k;
  options.mode = mode;
  options.allow = allow.get();
  options.cancel = cancel;
  options.threads = threads;
  options.overfetch = overfetch;
  options.expansion = expansion;
  return options;
}

finch_cut_options read_cut_options(napi_env env, napi_value value, const char* name) {
  const Options options(env, value, name, true);
  finch_cut_options cut = {};
  cut.size = sizeof(cut);
  cut.min_k = options.whole_or("minK", 0, kMostWhole, 0);
  cut.max_k = options.whole_or("maxK", 0, kMostWhole, 0);
  cut.signals = FINCH_CUT_SCORE | FINCH_CUT_SIMILARITY;
  if (options.has("signals")) {
    const Strings words(env, options.get("signals"), options.name_of("signals").c_str(), Surrogates::replace);
    cut.signals = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string_view word(words[i].data, words[i].size);
      if (word == "score") {
        cut.signals |= FINCH_CUT_SCORE;
      } else if (word == "similarity") {
        cut.signals |= FINCH_CUT_SIMILARITY;
      } else {
        refuse_argument("Expected " + options.name_of("signals") + " to hold 'score' or 'similarity' but it holds '" +
                        std::string(word) + "'.");
      }
    }
    if (cut.signals == 0) {
      refuse_argument("Expected " + options.name_of("signals") +
                      " to name at least one of 'score' and 'similarity'; leave it out for both.");
    }
  }
  cut.after = static_cast<uint32_t>(options.choice("boundary", {{"before", 0}, {"after", 1}}, true));
  return cut;
}

std::optional<finch_weights> read_weights(napi_env env, napi_value value, const char* name) {
  if (is_absent(env, value)) return std::nullopt;
  const Options options(env, value, name, false);
  finch_weights weights = {};
  weights.size = sizeof(weights);
  weights.semantic = to_float(options.number("semantic"), options.name_of("semantic"));
  weights.bandit = to_float(options.number("bandit"), options.name_of("bandit"));
  weights.prior = to_float(options.number("prior"), options.name_of("prior"));
  if (weights.semantic == 0 && weights.bandit == 0 && weights.prior == 0) {
    refuse_argument(std::string("Expected the semantic, bandit and prior of ") + name +
                    " to sum to 1 but all are 0; leave the weights out for the defaults.");
  }
  weights.outage = to_float(options.optional_number("outage").value_or(0), options.name_of("outage"));
  weights.clamp = options.boolean_or("clamp", false) ? 1 : 0;
  return weights;
}

finch_bandit_options read_bandit_options(napi_env env, napi_value value, const char* name) {
  const Options options(env, value, name, false);
  finch_bandit_options bandit = {};
  bandit.size = sizeof(bandit);
  bandit.dimension = options.whole("dimension", 1, FINCH_MAX_DIMENSION);
  bandit.form = options.choice(
      "form", {{"calibrated", FINCH_BANDIT_CALIBRATED}, {"literal", FINCH_BANDIT_LITERAL}, {"mean", FINCH_BANDIT_MEAN}},
      true);
  bandit.lambda = positive_float_or(options, "lambda");
  bandit.gamma = positive_float_or(options, "gamma");
  const std::optional<double> alpha = options.optional_number("alpha");
  if (alpha.has_value()) {
    if (*alpha < 0) refuse_argument("Expected " + options.name_of("alpha") + " to be 0 or greater.");
    bandit.alpha = *alpha == 0 ? FINCH_ALPHA_ZERO : to_float(*alpha, options.name_of("alpha"));
    if (bandit.alpha == 0) bandit.alpha = FINCH_ALPHA_ZERO;  // too small for a float
  }
  bandit.availability_gamma = positive_float_or(options, "availabilityGamma");
  bandit.availability_half_life = positive_or(options, "availabilityHalfLife", 0);
  bandit.availability_half_life_max = positive_or(options, "availabilityHalfLifeMax", 0);
  bandit.trial_share = options.boolean_or("freeTrials", false) ? std::numeric_limits<float>::infinity()
                                                               : positive_float_or(options, "trialShare");
  return bandit;
}

finch_ann_options read_ann_options(napi_env env, napi_value value, const char* name) {
  const Options options(env, value, name, true);
  finch_ann_options ann = {};
  ann.size = sizeof(ann);
  ann.connectivity = options.whole_or("connectivity", 1, kMostWhole, 0);
  ann.expansion_add = options.whole_or("expansionAdd", 1, kMostWhole, 0);
  ann.expansion_search = options.whole_or("expansionSearch", 1, kMostWhole, 0);
  return ann;
}

RankOptions read_rank_options(napi_env env, napi_value value, const char* name) {
  const Options options(env, value, name, false);
  RankOptions rank;
  rank.now = options.number("now");
  rank.explore = options.boolean_or("explore", false);
  rank.weights = read_weights(env, options.get("weights"), options.name_of("weights").c_str());
  rank.cut = read_cut_options(env, options.get("cut"), options.name_of("cut").c_str());
  rank.min_availability =
      to_float(options.optional_number("minAvailability").value_or(0), options.name_of("minAvailability"));
  return rank;
}

finch_rank_options RankOptions::view() const {
  finch_rank_options options = {};
  options.size = sizeof(options);
  options.now = now;
  options.explore = explore ? 1 : 0;
  options.weights = weights.has_value() ? &*weights : nullptr;
  options.cut = &cut;
  options.min_availability = min_availability;
  return options;
}

}  // namespace finch::node
