// Runs one scenario under all schedules within bounds, or under seeded random ones, until one fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checker/choices.hpp"
#include "checker/execution.hpp"

namespace rayelastic::model {

struct Case {
  const char* structure;
  const char* name;
  std::unique_ptr<Scenario> (*make)();
  bool exhaustive = true;
  Bounds bounds = {};
  Bounds full = {.preemptions = 0};  // of the full proof, where they are other ones
};

struct Outcome {
  std::uint64_t executions = 0;  // that were seen to their end
  std::uint64_t steps = 0;
  double seconds = 0;
  bool complete = false;       // nothing within the bounds is left
  std::string failure;         // empty: none
  std::uint64_t found_by = 0;  // the execution's number, or its seed
  std::string trace;
  bool replayed = false;  // run again, the failing execution gave the same trace to the byte
};

[[nodiscard]] Outcome search_all(const Case& scenario, std::uint64_t most = UINT64_MAX);
[[nodiscard]] Outcome search_random(const Case& scenario, std::uint64_t first_seed, std::uint64_t count);

}  // namespace rayelastic::model
