// How an operator that follows the clock waits: in slices, so that a stop takes effect.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

inline constexpr std::chrono::milliseconds kWaitSlice{10};

// False: stop.
[[nodiscard]] inline bool wait_until(std::chrono::steady_clock::time_point due, const rel_context* context) {
  using Clock = std::chrono::steady_clock;
  for (Clock::time_point now = Clock::now(); now < due; now = Clock::now()) {
    if (context->stopping()) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(due - now, kWaitSlice));
  }
  return !context->stopping();
}

}  // namespace rayelastic
