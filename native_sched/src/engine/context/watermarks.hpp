// The watermark of an operator: the least of its edges'.
//
// Invariant: it never goes back. An edge that is idle or has ended holds nobody up; all edges idle: so is the operator.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Watermarks {
 public:
  enum class Change : std::uint8_t { None, Idle, Advanced, Active };  // Active: as before, but it was idle

  void add_edge() { edges_.push_back(kNoWatermark); }
  // An edge has a new watermark, is idle, or has ended.
  [[nodiscard]] Change advance(std::uint32_t edge, std::int64_t watermark) {
    if (edge >= edges_.size()) return Change::None;  // a source's own end
    edges_[edge] = watermark;
    const std::int64_t least = *std::ranges::min_element(edges_);
    const bool was_idle = std::exchange(idle_, least == kEndOfTime);
    if (idle_) return was_idle ? Change::None : Change::Idle;
    if (least <= value_ && !was_idle) return Change::None;
    const bool advanced = least > value_;
    value_ = std::max(value_, least);
    RE_CHECK(value_ < kEndOfTime);
    if (value_ == kNoWatermark) return Change::None;
    event_time_.store(value_, std::memory_order_relaxed);
    return advanced ? Change::Advanced : Change::Active;
  }
  // The operator emits a watermark itself: it is where the event time begins.
  void emit(std::int64_t watermark) noexcept {
    if (watermark != kIdle && value_ == kNoWatermark) event_time_.store(watermark, std::memory_order_relaxed);
  }
  void end() noexcept { value_ = kEndOfTime; }

  [[nodiscard]] std::int64_t value() const noexcept { return value_; }
  // The last one before the end, for whoever reads the counters. Any thread.
  [[nodiscard]] std::int64_t event_time() const noexcept { return event_time_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::int64_t> edges_;  // without feedback
  std::int64_t value_ = kNoWatermark;
  bool idle_ = false;
  std::atomic<std::int64_t> event_time_{kNoWatermark};
};

}  // namespace rayelastic
