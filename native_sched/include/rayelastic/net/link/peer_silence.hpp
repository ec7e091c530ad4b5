// How long the peer of a link has sent nothing. Used by the thread that reads.
//
// Invariant: it counts the heartbeats' periods waited in vain, not a clock: a machine that stood still loses no peer.
#pragma once

#include <chrono>

namespace rayelastic {

class PeerSilence {
 public:
  // `limit`: a peer that is silent for so long is lost; `first_limit`: the same before its first bytes.
  PeerSilence(std::chrono::milliseconds period, std::chrono::milliseconds limit, std::chrono::milliseconds first_limit) noexcept
      : period_(period), limit_(limit), first_limit_(first_limit) {}

  void wait() noexcept { ++periods_; }       // a period, in vain
  void restart() noexcept { periods_ = 0; }  // while nobody reads, nothing counts
  void end() noexcept {                      // bytes came
    periods_ = 0;
    spoke_ = true;
  }
  [[nodiscard]] std::chrono::milliseconds length() const noexcept { return periods_ * period_; }
  [[nodiscard]] bool is_too_long() const noexcept { return length() >= (spoke_ ? limit_ : first_limit_); }

 private:
  const std::chrono::milliseconds period_, limit_, first_limit_;
  int periods_ = 0;
  bool spoke_ = false;
};

}  // namespace rayelastic
