// A visit of BasicPort by a worker or by the port's own thread: takes the consumer lock, drains a quantum, parks or lists the port. The
// invariants: basic_port.hpp, which includes this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "queue/basic_port.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::follow(Thread& thread) {
  while (auto* port = Engine::take_next(thread)) port->visit();
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::visit() {
  for (;;) {
    if (consumer_.try_lock()) break;
    if (consumer_.leave_note(Lock::kRelist) != 0) return;  // "abandon on contention" (P15): the holder lists it again
  }
  if (gate_ != nullptr && !gate_->try_enter()) {
    (void)consumer_.unlock();  // no kRelist in it: the responsibility is here
    gate_->park(self());
    return;
  }
  Thread& thread = World::thread();
  RE_ASSERT(consumer_.is_locked());
  const bool may_be_refused = model_.load(std::memory_order_relaxed) == ThreadingModel::Dynamic;
  const std::uint64_t before = queue_.position();
  meter_.begin(thread);
  Drained drained = drain(quantum(), may_be_refused, true);
  if (meter_.end(thread, static_cast<std::size_t>(queue_.position() - before))) queue_.set_limit(meter_.waiting(queue_.capacity()));
  if (spill_ != nullptr) refill();
  bool awaited = false;
  bool more = drained != Drained::Stopped;
  if (more && queue_.empty()) {
    const auto retirement = queue_.retire();
    more = retirement.stays;
    awaited = retirement.awaited;
  } else if (more && queue_.limit() < queue_.capacity() && free_slots() >= queue_.limit() / 2) {
    awaited = queue_.forget_awaited();  // dear records: who waits has time to make the next before the last of these is done
  }
  // Unlock, then put back (P13): the next owner shall not find it locked.
  const bool parked = more && drained == Drained::Blocked && ahead()->park(self());
  const bool noted = (consumer_.unlock() & Lock::kRelist) != 0;
  if (gate_ != nullptr) {
    if (drained == Drained::Full) gate_->stall(input_, self());
    gate_->leave();
  }
  if (awaited) let_go_on(nullptr);
  if (drained == Drained::Refused) {
    engine_.park_for_token(self());
  } else if (drained != Drained::Full && (noted || (more && !parked))) {
    list();
  }
}

// For whoever is responsible for `port`, whose operators give to this one alone: it is full. True: the responsibility is here until
// this one is empty. Others may be here as well: a port behind this one that was, until it lost its queue, between the two.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::park(typename World::Port* port) noexcept {
  Machine<Atom>::writes(&port->also_behind_, sizeof also_behind_);
  RE_CHECK(port != self() && port->also_behind_ == nullptr);  // it waits for one port at a time
  port->also_behind_ = behind_.load(std::memory_order_relaxed);
  while (!behind_.compare_exchange_weak(port->also_behind_, port, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return queue_.await() || !let_go_on(port);  // nobody will look into this one: unless somebody has just done so
}

// All that wait for this one. True: `own`, which its owner takes back, was among them.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::let_go_on(typename World::Port* own) noexcept {
  bool found = false;
  for (auto* port = behind_.exchange(nullptr, std::memory_order_acquire); port != nullptr;) {
    Machine<Atom>::writes(&port->also_behind_, sizeof also_behind_);
    auto* const next = std::exchange(port->also_behind_, nullptr);
    if (port == own) {
      found = true;
    } else {
      port->list_filled();
    }
    port = next;
  }
  return found;
}

template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::ahead() noexcept -> typename World::Port* {
  if (gate_ != nullptr) return nullptr;
  if (const std::uint32_t switches = engine_.switches.load(std::memory_order_relaxed); switches != switches_seen_) {
    switches_seen_ = switches;
    meter_.forget();
    ahead_ = target_.next_port(true);
    RE_CHECK(ahead_ != self());
    if (ahead_ != nullptr && (ahead_->gate_ != nullptr || ahead_->shared_ || ahead_->partial_)) ahead_ = nullptr;
  }
  return ahead_;
}

// Consumer side, inside the gate if there is one.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::drain(std::size_t limit, bool may_be_refused, bool may_be_blocked) -> Drained {
  auto& thread = World::thread();
  while (limit > 0) {
    const auto* const next = may_be_blocked ? ahead() : nullptr;
    const std::size_t room = next == nullptr ? SIZE_MAX : next->free_slots();
    const auto front = queue_.front(std::clamp<std::size_t>(room, 1, limit));
    RE_CHECK(front.mark == nullptr || front.count == 0);
    if (front.mark != nullptr) {
      const Mark mark = *front.mark;
      const bool ok = gate_ == nullptr ? target_.accept(mark) : target_.take(input_, mark);
      queue_.pop_mark();  // only now: until it has been dealt with the queue isn't drained
      if (!ok) return Drained::Stopped;
      continue;
    }
    if (front.count == 0) break;
    if (next != nullptr && room < next->queue_.limit() && (front.count > room || room < std::min(limit, next->quantum())))
      return Drained::Blocked;
    bool token_held = false;
    if (may_be_refused && target_.needs_token()) {
      if (engine_.try_enter_token(thread)) {
        token_held = true;
        refusals_ = 0;
      } else if (++refusals_ < kMaxRefusals) {
        return Drained::Refused;
      }
    }
    const Run run{front.records, front.count, stride_, front.chunks, front.home};
    std::size_t taken = front.count;
    if (gate_ == nullptr) {
      if (!target_.execute(run, true, token_held)) return Drained::Stopped;
    } else {
      const std::int64_t some = target_.take(input_, run, true, token_held);
      if (some < 0) return Drained::Stopped;
      taken = static_cast<std::size_t>(some);
    }
    RE_CHECK(taken <= front.count);
    if (taken > 0) queue_.advance(taken);
    if (taken < front.count) return Drained::Full;
    limit -= std::min(limit, taken);
    thread.visits.add(1);
    if (thread.suspended.load(std::memory_order_relaxed)) break;
  }
  return engine_.is_stopping() ? Drained::Stopped : Drained::Quantum;
}

}  // namespace rayelastic
