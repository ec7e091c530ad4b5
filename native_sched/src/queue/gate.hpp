// The gate that the input ports of one operator share: the right to run the operator, which one port has at a time. Operators with a single
// disjunctive port have none (their port's consumer lock suffices). Knows neither records nor operators.
//
// Invariants
//   Owner: whoever holds lock_; it alone runs the operator and touches its stages. Taken after the consumer lock of one of the ports.
//     Nobody waits for a consumer or producer lock of a port of this operator while holding its gate.
//   Deadlock: a thread waits for locks only in the order of the graph (producer, consumer, gate, then the same downstream), and
//     feedback edges never wait; so among those who wait for locks there is one who waits for nothing upstream.
//   A port that a visitor couldn't run because the gate was taken is in parked_, with the responsibility for it (BasicPort). Its
//     visitor then left kRelist in the lock: the holder lists it; or found the gate free: then it lists it itself.
//   A port whose stage is full is in waits_[input].port, with the responsibility for it, from stall() to release(). Both need the
//     gate. Only a firing makes room, and needs the gate too: it calls release(), and leave() lists the port.
//   A producer that can't help (the queue is full, the stage too, another port is short of records) sleeps on waits_[input].room. It
//     read the word under the gate, after it found no room there: every firing since has changed the word. So has interrupt(), after
//     `stopping` was set: who reads the new word sees `stopping` and doesn't sleep.
//   The head of a loop takes nothing new while what goes round doesn't fit into the queues (burdens_): else its source would fill the
//     loop faster than rows leave it. Its other ports stall like a port with a full stage. A burden is taken off, and they released, inside
//     the gate by the visitor of the feedback port; it is put on by the producer of that port, which is then announced.
//   Pairs: room (release) with the acquire in expect_room and wait_for_room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/queue/flag_lock.hpp"
#include "rayelastic/queue/free_ports.hpp"

namespace rayelastic {

template <class Port, template <class> class Atom = std::atomic>
class Gate {
  using Lock = FlagLock<Atom>;

 public:
  explicit Gate(std::size_t inputs) : parked_(inputs), waits_(inputs) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] bool try_enter() noexcept { return lock_.try_lock(); }
  void enter() noexcept { lock_.lock(); }
  void leave() noexcept {
    const bool released = std::exchange(released_, false);
    const bool noted = (lock_.unlock() & Lock::kRelist) != 0;
    if (released || noted) list_parked();
  }
  // For the thread that is responsible for `port` and found the gate taken.
  void park(Port* port) noexcept {
    parked_.push(port);
    if (lock_.leave_note(Lock::kRelist) == 0) list_parked();
  }

  // --- inside
  void stall(std::size_t input, Port* port) noexcept {
    RE_CHECK(waits_[input].port == nullptr);
    waits_[input].port = port;
  }
  [[nodiscard]] std::uint32_t expect_room(std::size_t input) noexcept {
    RE_ASSERT(lock_.is_locked());
    waits_[input].expected = true;
    return waits_[input].room.load(std::memory_order_acquire);
  }
  // The operator has fired, or takes new records again.
  void release() noexcept {
    for (Wait& wait : waits_) {
      if (wait.port != nullptr) {
        parked_.push(std::exchange(wait.port, nullptr));
        released_ = true;
      }
      if (std::exchange(wait.expected, false)) wait.wake();
    }
  }
  // The visitor of a feedback port has found room for all that didn't fit.
  void relieve() noexcept {
    const std::uint32_t burdens = burdens_.fetch_sub(1, std::memory_order_relaxed);
    RE_CHECK(burdens > 0);
    if (burdens == 1) release();
  }
  [[nodiscard]] bool is_burdened() const noexcept { return burdens_.load(std::memory_order_relaxed) != 0; }
  void close(std::size_t input) noexcept {
    RE_ASSERT(!is_closed(input));
    waits_[input].closed.store(true, std::memory_order_release);
  }

  // --- any thread
  void burden() noexcept { burdens_.fetch_add(1, std::memory_order_relaxed); }
  void wait_for_room(std::size_t input, std::uint32_t seen) noexcept { waits_[input].room.wait(seen, std::memory_order_acquire); }
  // All edges of the port are final.
  [[nodiscard]] bool is_closed(std::size_t input) const noexcept { return waits_[input].closed.load(std::memory_order_acquire); }
  void interrupt() noexcept {
    for (Wait& wait : waits_) wait.wake();
  }

 private:
  struct Wait {
    Port* port = nullptr;
    bool expected = false;
    Atom<std::uint32_t> room{0};
    Atom<bool> closed{false};

    void wake() noexcept {
      room.fetch_add(1, std::memory_order_release);
      room.notify_all();
    }
  };

  // A pop that fails because another thread is in the middle of its push loses nothing: that thread asks after its push.
  void list_parked() noexcept {
    while (Port* port = parked_.pop()) port->list();
  }

  Lock lock_;
  bool released_ = false;
  FreePorts<Port, Atom> parked_;
  std::vector<Wait> waits_;
  Atom<std::uint32_t> burdens_{0};  // feedback ports that have spilled
};

}  // namespace rayelastic
