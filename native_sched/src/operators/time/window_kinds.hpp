// The kinds of windows, as operators. See window.hpp for what they do; window.cpp checks what they are given.
#pragma once

#include <string>
#include <vector>

#include "operators/time/window_core.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "rayelastic/record/days.hpp"
#include "rayelastic/record/hash.hpp"

namespace rayelastic {

// Fill in process, flags and state of a spec whose schemas are there.
void make_count_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                       const std::vector<Aggregate>& aggregates);
void make_time_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                      const std::vector<Aggregate>& aggregates);
void make_session_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                         const std::vector<Aggregate>& aggregates);
void make_assigned_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                          const std::vector<Aggregate>& aggregates);

// A failure of the aggregates, for record `index` of the run.
[[nodiscard]] inline std::int64_t failed(WindowCore& core, std::int64_t index, rel_context* context) {
  context->fail(core.accumulators().problem());
  return REL_FAILED(index);
}

// What came of WindowCore::give.
template <typename Outcome>
[[nodiscard]] Outcome outcome_of(WindowCore& core, bool given) noexcept {
  if (given) return Outcome::Ok;
  return core.accumulators().problem().empty() ? Outcome::Stopped : Outcome::Failed;
}

// Of what a window keeps, for TimedState.
[[nodiscard]] inline std::uint64_t form_of(WindowKind kind, std::uint64_t size, std::uint64_t slide, std::uint64_t kept) noexcept {
  return hash_of(hash_of(hash_of(kept ^ static_cast<std::uint64_t>(kind)) ^ size) ^ slide);
}

// Of the output: start and end, and whether it is corrected.
[[nodiscard]] inline std::size_t bounds_of(const WindowOptions& options) noexcept { return options.lateness > 0 ? 3 : 2; }

}  // namespace rayelastic
