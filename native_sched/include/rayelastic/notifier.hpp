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
// Pairs: permits_ (release) with the acquire of the waiter that takes one.
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
    for (;;) {
      std::uint32_t permits = permits_.load(std::memory_order_relaxed);
      while (permits > 0) {
        if (permits_.compare_exchange_weak(permits, permits - 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
      }
      permits_.wait(0, std::memory_order_relaxed);
    }
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
  alignas(64) Atom<std::uint32_t> permits_{0};
};

}  // namespace rayelastic
