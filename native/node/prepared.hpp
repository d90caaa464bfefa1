// What the hot path reads once and uses for many calls.
#pragma once

#include <vector>

#include "handles.hpp"
#include "options.hpp"
#include "toolfinch.h"
#include "values.hpp"

namespace finch::node {

// Ids with their priors, for banditScoreInto.
struct IdList {
  Strings ids;
  std::vector<float> priors;
  std::vector<finch_arm_score> scores;
};
inline void release_id_list(IdList* list) noexcept { delete list; }
FINCH_HANDLE_KIND(IdList, "id list", release_id_list, 0x1f86c2d94ba7e053, 0xc05d73ea91b846f2);

// Options of a cut.
struct CutRule {
  finch_cut_options options;
};
inline void release_cut_rule(CutRule* rule) noexcept { delete rule; }
FINCH_HANDLE_KIND(CutRule, "cut rule", release_cut_rule, 0xa947e1503fd8b62c, 0x72bc09f4d615ae83);

// Options of a search and of what follows it, with room for the candidates in between.
struct SelectRule {
  SearchOptions search;
  RankOptions rank;
  std::vector<finch_candidate> candidates;
};
inline void release_select_rule(SelectRule* rule) noexcept { delete rule; }
FINCH_HANDLE_KIND(SelectRule, "select rule", release_select_rule, 0xe3105bd78c49f6a1, 0x8d2f64b1970ec35a);

}  // namespace finch::node
