// Aggregates as Python names them.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "rayelastic/operators/aggregate/aggregate.hpp"

namespace rayelastic::python {

// Function, field, field of the weights, two parameters.
using NamedAggregate = std::tuple<std::string, std::string, std::string, double, double>;

// Throws std::invalid_argument for an unknown function.
[[nodiscard]] inline std::vector<Aggregate> aggregates_of(const std::vector<NamedAggregate>& named) {
  std::vector<Aggregate> wanted;
  for (const auto& [function, field, weight, first, second] : named)
    wanted.push_back({aggregate_function_of(function), field, weight, first, second});
  return wanted;
}

}  // namespace rayelastic::python
