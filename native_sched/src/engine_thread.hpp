// What each thread of the engine has to itself: flags that others set (P20), counters that others sum, and the slot that the
// bindings use. One cache line or more of its own. Knows nothing of what the thread runs.
#pragma once

#include <atomic>
#include <cstdint>

namespace rayelastic {

// Written by one thread at a time (successive writers are ordered by the lock that made them owner), read by any at any time.
class Counter {
 public:
  void add(std::uint64_t amount) noexcept { value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct alignas(64) EngineThread {
  void* user = nullptr;                // ThreadHooks
  std::atomic<bool> suspended{false};  // asked for; seq_cst, see Notifier
  std::atomic<bool> parked{false};     // in force
  Counter token_wait_ns;
  Counter token_refusals;
  Counter reschedules;
  Counter sleeps;
};

// The engine thread that runs this code; null on every other thread.
inline thread_local constinit EngineThread* current_thread = nullptr;

}  // namespace rayelastic
