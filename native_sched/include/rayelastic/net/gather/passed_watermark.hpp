// The watermark that a gather has passed on. Used by the thread that runs the source.
//
// Invariant: it never falls; a gather that was idle passes on the old one again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace rayelastic {

class PassedWatermark {
 public:
  // The lowest one of all arms has become this. What is to be passed on, if anything.
  [[nodiscard]] std::optional<std::int64_t> advance(std::int64_t lowest) noexcept {
    const bool was_idle = std::exchange(idle_, false);
    if (value_.has_value() && lowest <= *value_ && !was_idle) return std::nullopt;
    value_ = std::max(value_.value_or(lowest), lowest);
    return value_;
  }
  // False: it has been idle since before.
  [[nodiscard]] bool become_idle() noexcept { return !std::exchange(idle_, true); }

  void publish() noexcept { published_.store(true); }                             // one has been passed on
  [[nodiscard]] bool is_published() const noexcept { return published_.load(); }  // any thread

 private:
  std::optional<std::int64_t> value_;
  bool idle_ = false;
  std::atomic<bool> published_{false};
};

}  // namespace rayelastic
