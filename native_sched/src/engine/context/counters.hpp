// What an operator counts.
//
// Invariant: only the thread that runs the operator writes `in`, `out` and `tallies`, and only the thread that is in its partial run writes
// `partial`. Any thread reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/engine_thread.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

struct Counters {
  void count(Tally what, std::int64_t n) noexcept { tallies[static_cast<std::size_t>(what)].add(static_cast<std::uint64_t>(n)); }
  [[nodiscard]] std::uint64_t counted(Tally what) const noexcept { return tallies[static_cast<std::size_t>(what)].get(); }

  Counter in;
  Counter out;
  Counter partial;  // records that came in partial runs
  Counter tallies[3];
};

}  // namespace rayelastic
