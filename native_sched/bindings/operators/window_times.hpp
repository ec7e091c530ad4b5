// How the times of windows are counted, as Python passes it.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "rayelastic/record/days.hpp"

namespace rayelastic::python {

// An offset, the runs of days of 24 hours of a zone, and the ticks of a second; no run: days are no matter.
using GivenTimes = std::tuple<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>, std::int64_t>;

[[nodiscard]] inline WindowTimes times_of(const GivenTimes& given) {
  const auto& [offset, runs, per_second] = given;
  return {.offset = offset, .days = runs.empty() ? std::nullopt : std::optional<Days>(Days(runs, per_second))};
}

}  // namespace rayelastic::python
