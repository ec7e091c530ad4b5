// What the lock-free structures ask of the machine beside atomics: a pause, a clock, a few sizes, and to be told of plain memory that
// their protocols hand from thread to thread. On real atomics that costs nothing; the model checker (tests/model) has its own: its
// clock is a choice, its sizes are tiny, and whoever touches plain memory without happening after the last owner is caught.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>

namespace rayelastic {

inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <template <class> class Atom>
struct Machine {
  using Clock = std::chrono::steady_clock;

  static constexpr int kSpins = 64;             // about 2 us, less than a sleep and a wake-up (findings 2)
  static constexpr std::size_t kMinNotes = 16;  // notes of a queue, however few its records
  // Between two looks at what another thread is about to finish. `spin`: of these in a row; that thread may have lost its core.
  static void relax(int spin = 0) noexcept {
    if (spin < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
  // Called before `bytes` bytes of plain memory at `address` are touched.
  static void reads(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  static void writes(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
};

}  // namespace rayelastic
