// Times the runs of a port or an operator, and bounds their length in time, as queues are bounded in records and bytes. A queue of 256
// records of 10 ms each would hold seconds of work. A pipeline of 1,000 such queues would take minutes to fill, and every tuple as long to
// pass. Knows neither queues nor operators.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/engine_thread.hpp"
#include "engine/run_length.hpp"

namespace rayelastic {

inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Used by one thread at a time: begin and end around a run. Looks at the clock once in kMeasureEvery runs, and always where runs are long.
class WorkMeter {
 public:
  static constexpr std::size_t kRuns = 4;  // that may wait in a queue: one in work, others ready, so that nobody waits for the next

  // `bound`: time that a run may take; 0: any. `most`: records of the longest run.
  WorkMeter(std::chrono::nanoseconds bound, std::size_t most) : bound_(bound), length_(static_cast<std::uint64_t>(bound.count()), most) {}

  // Records that a run may have, 1 to `most`.
  [[nodiscard]] std::size_t longest() const noexcept { return length_.longest(); }

  // Records that may wait in a queue of `capacity`.
  [[nodiscard]] std::size_t waiting(std::size_t capacity) const noexcept { return std::min(kRuns * longest(), capacity); }

  // A queue is put in, and nobody knows what a record costs: the first run is of one, and tells. Were it filled before, it would hold the
  // work of minutes where records are dear. Gives how many may wait in a queue of `capacity` until then.
  std::size_t begin_with_one(std::size_t capacity) noexcept {
    if (bound_.count() <= 0) return capacity;
    forget();
    length_.begin_with_one();
    return waiting(capacity);
  }

  // Other work is behind the runs to come, or they may take another time: the next one is timed, and says what there is to know.
  void forget() noexcept { forget(bound_); }
  void forget(std::chrono::nanoseconds bound) noexcept {
    bound_ = bound;
    dear_ = true;
    length_.forget(static_cast<std::uint64_t>(bound.count()));
  }

  // True: this run is timed, and end is to be called.
  bool begin(EngineThread& thread) noexcept {
    measuring_ = bound_.count() > 0 && (dear_ || runs_++ % kMeasureEvery == 0);
    if (!measuring_) return false;
    outer_ = thread.measuring;
    thread.measuring = true;
    helped_ns_ = thread.helped_ns;
    start_ns_ = now_ns();
    return true;
  }

  // After a run of `records`. True: longest() may have changed.
  bool end(EngineThread& thread, std::size_t records) noexcept {
    if (!measuring_) return false;
    measuring_ = false;
    thread.measuring = outer_;
    if (records == 0) return false;
    const std::uint64_t passed = now_ns() - start_ns_;
    const std::uint64_t own = passed - std::min(passed, thread.helped_ns - helped_ns_);
    dear_ = own >= kDear;
    length_.saw(records, own);
    return true;
  }

 private:
  static constexpr std::uint32_t kMeasureEvery = 16;
  static constexpr std::uint64_t kDear = 50'000;  // ns, beside which two looks at the clock are nothing

  std::chrono::nanoseconds bound_;
  bool measuring_ = false;
  bool dear_ = false;
  bool outer_ = false;
  std::uint32_t runs_ = 0;
  std::uint64_t start_ns_ = 0;
  std::uint64_t helped_ns_ = 0;
  RunLength length_;
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
