// A try-lock in which those who didn't get it may leave notes for the holder (PLDI'17 Fig. 3: prodLocked, consLocked). The
// paper polls and puts ports back; a note tells the holder once what to do when it unlocks, so that nobody has to poll.
//
// Invariants
//   Owner: the thread whose compare-exchange set kHeld; it alone unlocks.
//   Word: 0 when free; kReserved when free for the hungry alone. Notes are set only while the word isn't 0 and leave in the one
//     compare-exchange of unlock(): what a leave_note() that returned non-zero has set is in what an unlock() returns later.
//   Linearisation: the read-modify-writes, all on this one word.
//   Pairs: unlock (release) with the acquire of the next try_lock or take_reserved; leave_note (release) with the acquire of
//     the unlock that returns its note; rouse (release) with the acquire of a leave_note that comes too late to be roused.
//   No lost wake-up: who sleeps has kSleepers in the word, and sleeps only while the word has the value with its own note in it.
//   The hungry never sleep on a reserved word, nor leave kHungry in it: nobody holds it who would wake them, and whoever takes it would
//     reserve it again for nobody.
//   Never fails spuriously: try_lock fails only if the lock is held or reserved.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "rayelastic/assert.hpp"
#include "rayelastic/queue/machine.hpp"

namespace rayelastic {

template <template <class> class Atom = std::atomic>
class FlagLock {
 public:
  using Clock = typename Machine<Atom>::Clock;

  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kRelist = 2;    // a worker took the port from the free list: the holder puts it back
  static constexpr std::uint32_t kSleepers = 4;  // threads sleep on the word
  static constexpr std::uint32_t kHungry = 8;    // one of them was passed over for kPatience
  static constexpr std::uint32_t kReserved = 16;

  static constexpr int kSpins = Machine<Atom>::kSpins;
  static constexpr std::chrono::milliseconds kPatience{2};  // half a switch interval of CPython

  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t free = 0;
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Spins shortly, then sleeps; after kPatience the lock is reserved for it.
  void lock() noexcept {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (try_lock()) return;
      Machine<Atom>::relax();
    }
    const auto start = Clock::now();
    for (bool hungry = false; !try_lock() && !(hungry && take_reserved()); hungry = Clock::now() - start > kPatience) {
      sleep(hungry ? kHungry : 0);
    }
  }

  // Sleeps until the lock is released, or not at all if it is free (for the hungry: or reserved); may return early.
  void sleep(std::uint32_t notes = 0) noexcept {
    const std::uint32_t seen = leave_note(kSleepers | notes);
    if (seen != 0) word_.wait(seen, std::memory_order_relaxed);
  }

  // The same, but not if `leave` says so; to be asked again after rouse(). Who leaves has left its note, with which the word may be what
  // another one has seen that was about to sleep when all were roused: so it rouses again.
  template <class Leave>
  void sleep_unless(Leave&& leave) noexcept {
    const std::uint32_t seen = leave_note(kSleepers);
    if (seen == 0) return;
    if (leave()) return rouse();
    word_.wait(seen, std::memory_order_relaxed);
  }

  // There is a reason for sleepers to leave, though the holder keeps the lock.
  void rouse() noexcept {
    std::uint32_t notes = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(notes, notes & ~kSleepers, std::memory_order_release, std::memory_order_relaxed)) {
    }
    if ((notes & kSleepers) != 0) word_.notify_all();
  }

  // Returns the notes; sleepers were woken.
  std::uint32_t unlock() noexcept {
    std::uint32_t notes = word_.load(std::memory_order_relaxed);
    while (
        !word_.compare_exchange_weak(notes, (notes & kHungry) != 0 ? kReserved : 0, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    RE_CHECK((notes & kHeld) != 0);
    if ((notes & kSleepers) != 0) word_.notify_all();
    return notes & ~kHeld;
  }

  [[nodiscard]] bool is_locked() const noexcept { return (word_.load(std::memory_order_relaxed) & kHeld) != 0; }

  // Non-zero: an unlock to come will find `note`. Zero: the lock was free (for the hungry: or reserved for them), nothing was left.
  [[nodiscard]] std::uint32_t leave_note(std::uint32_t note) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while (seen != 0 && ((note & kHungry) == 0 || (seen & kReserved) == 0)) {
      if (word_.compare_exchange_weak(seen, seen | note, std::memory_order_acq_rel, std::memory_order_relaxed)) return seen | note;
    }
    return 0;
  }

 private:
  [[nodiscard]] bool take_reserved() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & kReserved) != 0) {
      if (word_.compare_exchange_weak(seen, (seen & ~kReserved) | kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  Atom<std::uint32_t> word_{0};
};

}  // namespace rayelastic
