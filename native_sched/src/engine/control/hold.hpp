// The safe point of one operator: between two runs, when no thread is inside it and its state can be read, migrated and changed from
// outside (Joker calls it quiescence). Knows neither operators nor threads.
//
// Invariants
//   Owner of the operator's state: the thread that entered, until it leaves; the holder, from settled() true to release().
//   Asymmetric Dekker: who enters stores inside_ and then loads held_; the holder stores held_ and then loads inside_. One of them
//     sees the other. The full fence that this needs is all on the holder's side (membarrier: every thread of the process passes a full
//     barrier meanwhile), for entering happens once a run and holding hardly ever. Where the kernel has no membarrier both fence.
//   Pairs: inside_ (release in leave) with the acquire in settled(): the holder sees what the operator did. held_ (release in
//     release) with the acquire in try_enter(): the operator sees what the holder did.
//   A thread may be announced (expect) before the one that runs the operator before it leaves: so a run that is handed from operator to
//     operator is never nowhere. Whoever announced enters next.
#pragma once

#include <atomic>

namespace rayelastic {

// Orders what this thread did before against what it does after, in the eyes of every thread of the process.
void fence_everywhere() noexcept;

namespace hold {
// Whether fence_everywhere() reaches the other threads; decided once, before the first scheduler starts its threads.
[[nodiscard]] bool register_fence() noexcept;
inline const bool reaches_everybody = register_fence();
}  // namespace hold

// What who enters needs of the fence.
struct LightFence {
  static void pass() noexcept {
    if (hold::reaches_everybody) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
};

template <template <class> class Atom = std::atomic, class Fence = LightFence>
class BasicHold {
 public:
  // --- the thread that runs the operator
  [[nodiscard]] bool try_enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);
    Fence::pass();
    return !held_.load(std::memory_order_acquire);
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }
  void expect() noexcept { inside_.store(true, std::memory_order_relaxed); }
  // After try_enter() said no, and leave(); before the next try_enter().
  void wait() const noexcept { held_.wait(true, std::memory_order_relaxed); }

  // --- the holder; fence_everywhere() between hold() and settled()
  void hold() noexcept { held_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_held() const noexcept { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool settled() const noexcept { return !inside_.load(std::memory_order_acquire); }
  void release() noexcept {
    held_.store(false, std::memory_order_release);
    held_.notify_all();
  }

 private:
  Atom<bool> inside_{false};
  Atom<bool> held_{false};
};

using Hold = BasicHold<>;

}  // namespace rayelastic
