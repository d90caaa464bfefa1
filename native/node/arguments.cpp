#include "arguments.hpp"

#include "fault.hpp"

namespace finch::node {

void require_length(const char* name, size_t actual, size_t expected, const char* what) {
  if (actual == expected) return;
  refuse_argument(std::string("Expected ") + name + " to hold " + std::to_string(expected) + " numbers, one for each " +
                  what + ", but it holds " + std::to_string(actual) + ".");
}

void require_vectors(const char* name, size_t actual, size_t count, uint32_t dimension) {
  if (actual == count * static_cast<size_t>(dimension)) return;
  refuse(FINCH_DIMENSION, std::string("Expected ") + name + " to hold " + std::to_string(count) + " x " +
                              std::to_string(dimension) + " = " + std::to_string(count * dimension) +
                              " numbers (vectors x dimension) but it holds " + std::to_string(actual) +
                              ". Check that the vectors come from the model this index or bandit was made for.");
}

size_t count_vectors(const char* name, size_t actual, uint32_t dimension) {
  if (actual % dimension != 0) {
    refuse(FINCH_DIMENSION, std::string("Expected the length of ") + name + " to be a multiple of the dimension " +
                                std::to_string(dimension) + " but it is " + std::to_string(actual) +
                                ". Check that the vectors come from the model this index was made for.");
  }
  return actual / dimension;
}

}  // namespace finch::node
