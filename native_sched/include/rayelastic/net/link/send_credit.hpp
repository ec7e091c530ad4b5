// How much the sending side may have on its way.
//
// Invariant: what is on its way is at most the window, and the part of it that the receiver works off in `most_ahead`, or half of that and one
// larger frame; the receiver never grants back more than was sent.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class SendCredit {
 public:
  using Clock = std::chrono::steady_clock;

  // The receiver grants the window, then what it has consumed. False: more than was sent.
  [[nodiscard]] bool grant(std::uint64_t bytes, std::chrono::duration<double> most_ahead) noexcept {
    if (window_ == 0) {
      window_ = bytes;
      granted_at_ = Clock::now();
      keep_ahead(0);
      return true;
    }
    if (bytes > outstanding_) return false;
    outstanding_ -= bytes;
    learn(bytes, most_ahead);
    return true;
  }
  void spend(std::uint64_t bytes) noexcept {
    RE_CHECK(window_ > 0);
    if (outstanding_ == 0) granted_at_ = Clock::now();  // it had nothing to do until now
    outstanding_ += bytes;
  }
  // The receiver has consumed everything.
  void settle() noexcept { outstanding_ = 0; }

  // Whether a frame of so many bytes may go.
  [[nodiscard]] bool allows(std::uint64_t frame_bytes) const noexcept {
    return window_ > 0 && (has_room() || outstanding_ + frame_bytes <= ahead_);
  }
  [[nodiscard]] bool has_room() const noexcept { return window_ > 0 && outstanding_ <= ahead_ / 2; }
  [[nodiscard]] bool is_open() const noexcept { return window_ > 0; }  // the window is known
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }
  // Smaller frames while little may be on its way.
  [[nodiscard]] std::size_t best_frame() const noexcept { return std::max(kLeastFrame, static_cast<std::size_t>(ahead_ / 4)); }

  // The sender has records and may not send them. False: it has been so since before.
  [[nodiscard]] bool starve() noexcept { return !starved_ && (starved_ = true); }
  void feed() noexcept { starved_ = false; }
  [[nodiscard]] bool is_starved() const noexcept { return starved_; }

 private:
  static constexpr std::uint64_t kLeastAhead = 1024;
  static constexpr std::uint64_t kTrust = 8;       // one part in so many of what was consumed may be on its way
  static constexpr std::size_t kLeastFrame = 256;  // one record, if that is larger

  // The receiver's speed is known only while it had something to do all the time: when the sender waited for it. At first it is as fast as
  // it fills its own queues, which says nothing of what is behind them: so what is ahead grows with what it has consumed.
  void learn(std::uint64_t granted, std::chrono::duration<double> most_ahead) noexcept {
    consumed_ += granted;
    const auto now = Clock::now();
    const std::chrono::duration<double> took = now - granted_at_;
    granted_at_ = now;
    if (!starved_ || took.count() <= 0) return;
    const double wanted = static_cast<double>(granted) / took.count() * most_ahead.count();
    const double now_ahead = static_cast<double>(ahead_);
    keep_ahead(static_cast<std::uint64_t>(std::clamp(wanted, now_ahead / 2, now_ahead * 2)));
  }
  void keep_ahead(std::uint64_t bytes) noexcept {
    const std::uint64_t least = std::min(kLeastAhead, window_);
    ahead_ = std::clamp(bytes, least, std::clamp(consumed_ / kTrust, least, window_));
    RE_CHECK(ahead_ <= window_);
  }

  std::uint64_t window_ = 0;       // what the first grant was; 0: none came yet
  std::uint64_t ahead_ = 0;        // of that, what may be on its way
  std::uint64_t consumed_ = 0;     // by the receiver, so far
  std::uint64_t outstanding_ = 0;  // bytes sent and not granted back
  Clock::time_point granted_at_;   // when credit came, or was first spent, for the last time
  bool starved_ = false;
};

}  // namespace rayelastic
