// Aggregates as Python names them.
#pragma once

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

// Function, field, field of the weights, two parameters.
using NamedAggregate = std::tuple<std::string, std::string, std::string, double, double>;

// Those that are named, or a user's own in their place. Throws std::invalid_argument for an unknown function, and for both.
[[nodiscard]] inline std::vector<Aggregate> aggregates_of(const std::vector<NamedAggregate>& named, const OwnAggregateObject* own) {
  std::vector<Aggregate> wanted;
  if (own != nullptr && !named.empty()) throw std::invalid_argument("a user's aggregate has no others beside it");
  if (own != nullptr) wanted.push_back({.function = AggregateFunction::Own, .own = own->aggregate});
  for (const auto& [function, field, weight, first, second] : named)
    wanted.push_back({.function = aggregate_function_of(function), .field = field, .weight = weight, .first = first, .second = second});
  return wanted;
}

}  // namespace rayelastic::python
