// Sleep and wake-up of idle workers: an event count that costs the notifying side one load while nobody is idle. Replaces the
// exponential back-off of PLDI'17 Fig. 5 (P16), which leaves work lying for up to 10 ms.
//
// Use: waiter: prepare(); look for work once more; then cancel() if there is some, else wait(). Notifier: publish the work with
//   a seq_cst read-modify-write, then notify.
// No lost wake-up: waiters_ in prepare and notify, and the work's publication and the waiter's second look, are all seq_cst. In
//   their one order either the notifier's load comes after the waiter's increment and sees it, or the waiter's look comes after
//   the publication and sees that.
// Each notification takes one waiter off waiters_ and posts one permit; who is off leaves only with a permit. So a thread
//   that is on its way out of sleep isn't notified twice, and permits never gather.
// Pairs: permits_ (release, in notify_one and interrupt) with the acquire of the waiter that takes a permit or asks `leave` again.
#pragma once

#include <atomic>
#include <cstdint>

namespace rayelastic {

template <template <class> class Atom = std::atomic>
class Notifier {
 public:
  void prepare() noexcept { waiters_.fetch_add(1, std::memory_order_seq_cst); }

  void cancel() noexcept {
    if (!take_waiter()) wait();  // already notified: the permit is there or about to be
  }

  void wait() noexcept {
    wait([] { return false; });
  }
  // Also leaves when `leave` is true, which is asked after each interrupt().
  template <class Leave>
  void wait(Leave&& leave) noexcept {
    for (;;) {
      std::uint32_t word = permits_.load(std::memory_order_acquire);
      while (word % kInterrupt > 0) {
        if (permits_.compare_exchange_weak(word, word - 1, std::memory_order_acquire, std::memory_order_acquire)) return;
      }
      if (leave() && take_waiter()) return;  // not taken: a permit is about to come
      permits_.wait(word, std::memory_order_relaxed);
    }
  }

  // Has every waiter ask its `leave` again. A permit wouldn't do: whoever comes to wait in between may take it instead of the one
  // who is meant.
  void interrupt() noexcept {
    permits_.fetch_add(kInterrupt, std::memory_order_release);
    permits_.notify_all();
  }

  // True: a sleeper was woken.
  bool notify_one() noexcept {
    if (!take_waiter()) return false;
    permits_.fetch_add(1, std::memory_order_release);
    permits_.notify_one();
    return true;
  }

  void notify_all() noexcept {
    while (notify_one()) {
    }
  }

  [[nodiscard]] std::uint32_t waiting() const noexcept { return waiters_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool take_waiter() noexcept {
    std::uint32_t waiters = waiters_.load(std::memory_order_seq_cst);
    while (waiters > 0) {
      if (waiters_.compare_exchange_weak(waiters, waiters - 1, std::memory_order_seq_cst, std::memory_order_seq_cst)) return true;
    }
    return false;
  }

  alignas(64) Atom<std::uint32_t> waiters_{0};
  static constexpr std::uint32_t kInterrupt = 1U << 16;  // permits in the low half of the word, interrupts in the high one

  alignas(64) Atom<std::uint32_t> permits_{0};
};

}  // namespace rayelastic
