// How much work may wait in a queue: bounds it in time, as PortQueue bounds it in records and bytes. A queue of 256 records of 10 ms
// each would hold the work of seconds; a pipeline of 1,000 such would take minutes to fill, and every tuple as long to get through.
// Knows neither queues nor operators.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/engine_thread.hpp"

namespace rayelastic {

inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// One per port, used by whoever consumes there: begin and end around a drain. Looks at the clock once in kMeasureEvery drains.
class WorkMeter {
 public:
  explicit WorkMeter(std::chrono::nanoseconds bound) : bound_ns_(static_cast<std::uint64_t>(bound.count())) {}

  void begin(EngineThread& thread) noexcept {
    measuring_ = bound_ns_ > 0 && drains_++ % kMeasureEvery == 0;
    if (!measuring_) return;
    outer_ = thread.measuring;
    thread.measuring = true;
    helped_ns_ = thread.helped_ns;
    start_ns_ = now_ns();
  }

  // After `records` records: how many may wait from now on, 0 for "as before".
  [[nodiscard]] std::size_t end(EngineThread& thread, std::size_t records, std::size_t capacity) noexcept {
    if (!measuring_) return 0;
    thread.measuring = outer_;
    if (records == 0) return 0;
    const std::uint64_t passed = now_ns() - start_ns_;
    const std::uint64_t helped = thread.helped_ns - helped_ns_;
    const std::uint64_t cost = (passed - std::min(passed, helped)) / records + 1;
    // Down at once, up slowly: what makes a measurement wrong (a thread preempted, a page touched for the first time) makes it long.
    cost_ns_ = cost < cost_ns_ ? cost : (kMemory * cost_ns_ + cost) / (kMemory + 1);
    return std::clamp<std::size_t>(bound_ns_ / std::max<std::uint64_t>(cost_ns_, 1), std::min(kMinRecords, capacity), capacity);
  }

 private:
  static constexpr std::uint32_t kMeasureEvery = 16;
  static constexpr std::uint64_t kMemory = 3;    // weight of what was measured before
  static constexpr std::size_t kMinRecords = 4;  // one in work, others ready: a dear operator shall never wait for its next tuple

  const std::uint64_t bound_ns_;
  std::uint32_t drains_ = 0;
  bool measuring_ = false;
  bool outer_ = false;
  std::uint64_t start_ns_ = 0;
  std::uint64_t helped_ns_ = 0;
  std::uint64_t cost_ns_ = 0;
};

// Around what a thread does for others in the middle of its own work, or while it waits for them: it is nobody's cost.
class NotOwnWork {
 public:
  explicit NotOwnWork(EngineThread& thread) noexcept
      : thread_(thread), measured_(thread.measuring), helped_ns_(thread.helped_ns), start_ns_(measured_ ? now_ns() : 0) {}
  ~NotOwnWork() {
    if (measured_) thread_.helped_ns = helped_ns_ + (now_ns() - start_ns_);
  }
  NotOwnWork(const NotOwnWork&) = delete;
  NotOwnWork& operator=(const NotOwnWork&) = delete;

 private:
  EngineThread& thread_;
  const bool measured_;
  const std::uint64_t helped_ns_;
  const std::uint64_t start_ns_;
};

}  // namespace rayelastic
