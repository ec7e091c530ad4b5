// The structures that a port is made of, with the defects that Fault plants. Without one they are as shipped.
#pragma once

#include <cstdint>

#include "checker/atom.hpp"
#include "rayelastic/queue/flag_lock.hpp"
#include "rayelastic/queue/port_queue.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

class Queue final : public PortQueue<Atom> {
 public:
  using PortQueue<Atom>::PortQueue;

  [[nodiscard]] bool empty() const noexcept { return PortQueue<Atom>::empty() || fault == Fault::SwitchWithoutDrain; }
  [[nodiscard]] bool announce() noexcept { return PortQueue<Atom>::announce() && fault != Fault::NoAnnounce; }
  [[nodiscard]] Retirement retire() noexcept {
    const Retirement retirement = PortQueue<Atom>::retire();
    return {retirement.stays && fault != Fault::RetireWithoutSecondLook, retirement.awaited && fault != Fault::AwaitedForgotten};
  }
  [[nodiscard]] bool has_mark() const noexcept { return PortQueue<Atom>::has_mark() && fault != Fault::PartialPastMark; }
  [[nodiscard]] bool await() noexcept { return PortQueue<Atom>::await() || fault == Fault::AwaitsNobody; }
};

class Lock final : public FlagLock<Atom> {
 public:
  std::uint32_t unlock() noexcept {
    if (fault == kept_by_) return 0;
    const std::uint32_t notes = FlagLock<Atom>::unlock();
    return fault == Fault::NoteForgotten ? 0 : notes;
  }

  static inline int made = 0;  // of the two in a port the producers' is made first

 private:
  const Fault kept_by_ = made++ % 2 == 0 ? Fault::PushKeepsProducerLock : Fault::VisitKeepsConsumerLock;
};

}  // namespace rayelastic::model
