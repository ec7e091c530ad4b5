// When a source begins, and when it marks the time in its stream.
//
// Invariant: a source that waits for others to begin still begins once nothing upstream of them has moved for their patience, because what they
// wait for may be this source. A source that waits itself isn't stuck.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "rayelastic/engine/scheduler.hpp"

namespace rayelastic {

class OperatorContext;

class SourceStart {
 public:
  // It begins once that port of another operator has ended, or those upstream of it have stood still for so long.
  struct Awaited {
    const OperatorContext* consumer;
    std::size_t port;
    std::vector<const OperatorContext*> upstream;
    std::chrono::nanoseconds patience;
  };
  void begin_after(Awaited side) { awaited_.push_back(std::move(side)); }
  // Blocks until it may begin, or `source` has to stop.
  void wait(const OperatorContext& source);
  std::uint64_t skip = 0;  // records that were submitted before a restart, and aren't again
  [[nodiscard]] bool is_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  // Whether a time mark is due; `now` is its value then.
  [[nodiscard]] bool take_time_mark(const Placement& placement, std::int64_t& now) {
    if (!placement.time_marks.has_value() || (now = placement.clock()) < mark_due_) return false;
    mark_due_ = now + placement.time_marks->count();
    return true;
  }

 private:
  std::vector<Awaited> awaited_;
  std::atomic<bool> waiting_{false};
  std::int64_t mark_due_ = 0;
};

}  // namespace rayelastic
