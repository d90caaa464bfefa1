// Reads the golden vectors (test/golden/README.md). FINCH_GOLDEN_DIR is their folder; TOOLFINCH_GOLDEN overrides it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "toolfinch.h"

namespace finch::test {

using Json = nlohmann::json;

inline Json read_golden(const std::string& name) {
  const char* given = std::getenv("TOOLFINCH_GOLDEN");
  const std::string path = std::string(given != nullptr ? given : FINCH_GOLDEN_DIR) + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  Json json = Json::parse(file);
  if (json.at("format") != 1) throw std::runtime_error(path + ": unknown format");
  return json;
}

inline float to_float(const Json& json) {
  if (json.is_number()) return static_cast<float>(json.get<double>());
  const std::string text = json.get<std::string>();
  if (text == "NaN") return std::numeric_limits<float>::quiet_NaN();
  return text == "Infinity" ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
}

inline std::vector<float> floats(const Json& json) {
  std::vector<float> values;
  for (const Json& value : json) values.push_back(to_float(value));
  return values;
}

inline const float* data_or_null(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }

inline void expect_close(double got, double expected, double tolerance, const std::string& what) {
  EXPECT_LE(std::fabs(got - expected), tolerance * std::max(1.0, std::fabs(expected)))
      << what << ": got " << got << ", expected " << expected;
}

inline finch_string as_string(const std::string& s) { return {s.data(), s.size()}; }

}  // namespace finch::test
