// Dynamic top-k over one list or many.
#include <vector>

#include "cut.hpp"
#include "entry.hpp"
#include "options.hpp"
#include "results.hpp"

namespace finch::node {

Napi::Value cut_object(Napi::Env env, const finch_cut& cut) {
  Napi::Array signals = Napi::Array::New(env);
  uint32_t count = 0;
  if ((cut.signal & FINCH_CUT_SCORE) != 0) signals.Set(count++, "score");
  if ((cut.signal & FINCH_CUT_SIMILARITY) != 0) signals.Set(count++, "similarity");
  Napi::Object object = Napi::Object::New(env);
  set_number(env, object, "k", cut.k);
  set_number(env, object, "kScore", cut.k_score);
  set_number(env, object, "kSimilarity", cut.k_similarity);
  set(env, object, "signals", signals);
  set_number(env, object, "gapScore", cut.gap_score);
  set_number(env, object, "gapSimilarity", cut.gap_similarity);
  set_number(env, object, "n", cut.n);
  return object;
}

namespace {

finch_cut empty_cut() {
  finch_cut cut = {};
  cut.size = sizeof(cut);
  return cut;
}

// Scores with their embeddings, as views; embeddings may be null with the score signal alone.
struct List {
  std::span<const float> scores;
  const float* embeddings;
  uint32_t dimension;
};

List read_list(const Arguments& arguments, const finch_cut_options& options) {
  List list = {arguments.floats(0, "scores"), nullptr, 0};
  const std::optional<std::span<const float>> embeddings = arguments.optional_floats(1, "embeddings");
  if (!embeddings.has_value()) {
    if ((options.signals & FINCH_CUT_SIMILARITY) != 0) {
      refuse_argument(
          "Expected embeddings, which the similarity signal needs, but received none. Pass them, or ask for "
          "signals: ['score'] alone.");
    }
    return list;
  }
  const size_t count = list.scores.size();
  const size_t length = embeddings->size();
  if (count == 0 ? length != 0 : length % count != 0 || length == 0 || length / count > FINCH_MAX_DIMENSION) {
    refuse(FINCH_DIMENSION, "Expected embeddings to hold one vector for each of the " + std::to_string(count) +
                                " scores, all of one dimension from 1 to " + std::to_string(FINCH_MAX_DIMENSION) +
                                ", but it holds " + std::to_string(length) + " numbers.");
  }
  list.embeddings = embeddings->data();
  list.dimension = count == 0 ? 1 : static_cast<uint32_t>(length / count);
  return list;
}

Napi::Value truncate(const Arguments& arguments) {
  Napi::Env env = arguments.env();
  const finch_cut_options options = read_cut_options(env, arguments[2], "options");
  const List list = read_list(arguments, options);
  const size_t count = list.scores.size();
  // No JavaScript runs between here and the C call.
  const bool similar = list.embeddings != nullptr && count > 1;
  const Array<float> similarities = make_array<float>(env, similar ? count - 1 : 0);
  finch_cut cut = empty_cut();
  check(finch_truncate(list.scores.data(), list.embeddings, count, list.dimension, &options, &cut,
                       similar ? similarities.data.data() : nullptr));
  Napi::Object object = Napi::Object::New(env);
  set(env, object, "cut", cut_object(env, cut));
  set(env, object, "similarities", similarities.value);
  return object;
}

Napi::Value truncate_batch(const Arguments& arguments) {
  Napi::Env env = arguments.env();
  const finch_cut_options options = read_cut_options(env, arguments[3], "options");
  const std::vector<uint64_t> offsets = read_wholes(env, arguments[2], "offsets");
  const List list = read_list(arguments, options);
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != list.scores.size()) {
    refuse_argument("Expected offsets to start at 0 and to end at the number of scores, " +
                    std::to_string(list.scores.size()) + ": one entry more than there are lists.");
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      refuse_argument("Expected offsets to ascend but offsets[" + std::to_string(i) + "] is below the one before it.");
    }
  }
  std::vector<finch_cut> cuts(offsets.size() - 1, empty_cut());
  check(finch_truncate_batch(list.scores.data(), list.embeddings, offsets.data(), cuts.size(), list.dimension, &options,
                             cuts.data()));
  napi_value array = nullptr;
  must(env, napi_create_array_with_length(env, cuts.size(), &array));
  for (size_t i = 0; i < cuts.size(); ++i) {
    Napi::HandleScope scope(env);
    must(env, napi_set_element(env, array, static_cast<uint32_t>(i), cut_object(env, cuts[i])));
  }
  return {env, array};
}

constexpr Export kExports[] = {
    {"truncate", sync_entry<truncate>},
    {"truncateBatch", sync_entry<truncate_batch>},
};

}  // namespace

std::span<const Export> truncate_exports() { return kExports; }

}  // namespace finch::node
