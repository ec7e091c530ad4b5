// When the next records of a stream with a rate are due. Knows no clock: its caller passes the time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace rayelastic {

// Each part is due behind the one before, whenever that passed: a late wake-up is made up for. The schedule lags behind the clock by
// kCatchUp at most, so after a pause no more records pass at once than belong into that time.
class Schedule {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kCatchUp{1};

  explicit Schedule(double per_second) : per_second_(per_second) {}

  // When `count` more records are due.
  [[nodiscard]] TimePoint next(std::size_t count, TimePoint now) {
    const TimePoint due = started_ ? std::max(due_, now - kCatchUp) : now;
    const std::chrono::duration<double> takes(std::min(static_cast<double>(count) / per_second_, kLongest));
    started_ = true;
    due_ = due + std::chrono::duration_cast<TimePoint::duration>(takes);
    return due;
  }

 private:
  static constexpr double kLongest = 1e9;  // seconds that a record takes: far enough away, and the clock doesn't overflow

  double per_second_;
  bool started_ = false;
  TimePoint due_;  // of what comes next
};

}  // namespace rayelastic
