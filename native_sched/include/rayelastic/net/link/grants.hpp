// What the receiving side grants back to the sender.
//
// Invariant: every byte received is granted back once, after it is consumed; the first grant is the window.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rayelastic {

class Grants {
 public:
  using Clock = std::chrono::steady_clock;

  void open(std::uint64_t window) noexcept { due_ = window_ = window; }

  void receive(std::uint64_t bytes) noexcept { outstanding_ += bytes; }
  // True: time for a grant. A busy receiver grants in quarters of the window, for a Credit frame costs a system call, but a slow one at least
  // once in kPeriod. So what isn't granted yet never keeps the sender waiting for long.
  [[nodiscard]] bool consume(std::uint64_t bytes) noexcept {
    consumed_ += bytes;
    return consumed_ >= window_ / 4 || Clock::now() - granted_at_ >= kPeriod;
  }
  // All that was consumed is due. False: nothing was.
  [[nodiscard]] bool grant() noexcept {
    if (consumed_ == 0) return false;
    granted_at_ = Clock::now();
    due_ += std::exchange(consumed_, 0);
    return true;
  }
  [[nodiscard]] bool is_due() const noexcept { return due_ > 0; }
  [[nodiscard]] std::uint64_t take_due() noexcept {
    outstanding_ -= std::min(outstanding_, due_);  // nothing came before the window was granted
    return std::exchange(due_, 0);
  }
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

 private:
  static constexpr std::chrono::milliseconds kPeriod{1};

  std::uint64_t window_ = 0;
  std::uint64_t outstanding_ = 0;  // bytes received and not granted back
  std::uint64_t consumed_ = 0;     // of them, to be granted back
  std::uint64_t due_ = 0;          // of those, in the next Credit frame
  Clock::time_point granted_at_;
};

}  // namespace rayelastic
