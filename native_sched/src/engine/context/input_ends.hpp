// Which edges of an operator have ended.
//
// Invariant: a port is published as ended only after all that its edges brought has been processed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/engine/scheduler.hpp"

namespace rayelastic {

class InputEnds {
 public:
  // An edge that isn't feedback; its number.
  std::uint32_t add_edge() noexcept { return static_cast<std::uint32_t>(edges_++); }
  [[nodiscard]] std::size_t edges() const noexcept { return edges_; }
  [[nodiscard]] std::size_t ended() const noexcept { return ended_; }

  // A final mark is taken, with which a port ends or doesn't.
  void begin(bool port_ends) noexcept { port_ends_ = port_ends; }
  // One edge more has ended. True: it was the last.
  [[nodiscard]] bool end_edge() noexcept {
    RE_CHECK(ended_ < edges_);
    return ++ended_ == edges_;
  }
  [[nodiscard]] bool take_port_end() noexcept { return std::exchange(port_ends_, false); }
  // Any thread may ask from now on. Of the first kPortsWaitedFor ports.
  void publish(std::size_t port) noexcept { ports_.fetch_or(1U << (port % kPortsWaitedFor), std::memory_order_release); }
  [[nodiscard]] bool has_ended(std::size_t port) const noexcept { return (ports_.load(std::memory_order_acquire) >> port & 1U) != 0; }

 private:
  std::size_t edges_ = 0;
  std::size_t ended_ = 0;
  bool port_ends_ = false;
  std::atomic<std::uint32_t> ports_{0};
};

}  // namespace rayelastic
