// The profiler: what each engine thread is doing, looked at 100 times a second (Middleware'19 section 3, M02). Where the paper
// counts snapshots, a snapshot here carries the CPU time that its thread used: a thread that sleeps in user code, waits for the GIL or
// was preempted adds nothing to the cost of its operator. What a thread used before it fell asleep goes to what it is next seen to run,
// not to what it sleeps in: a source that waits for its next tuple would else have the cost of all that ran in its thread. Nor does it
// go to a wait that it was woken from and for whose end it has no CPU yet. Totals only
// grow, so any two readings make a window, and no reader ever finds an empty one (E9).
//
// Also the watchdog (P23, P25): a scheduler thread that stays in user code for longer than a while is stuck, and said to be so.
// Knows neither ports nor policies; who owns threads hands them to `tick`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine_thread.hpp"

namespace rayelastic {

// Totals since the start, in nanoseconds.
struct Profile {
  std::vector<std::uint64_t> operator_cpu = {};      // by operator: CPU time inside its function
  std::vector<std::uint64_t> operator_time = {};     // by operator: time that threads were inside its function, running or not
  std::vector<std::uint64_t> operator_waited = {};   // by operator: of that, asleep, whatever for
  std::vector<std::uint64_t> operator_blocked = {};  // by operator: time that threads waited for room for its output
  std::uint64_t engine_cpu = 0;                      // CPU time outside all operators
  std::uint64_t scheduler_time = 0;                  // of scheduler threads that aren't suspended, summed
  std::uint64_t idle_time = 0;                       // of that, without work
  std::uint64_t thread_time = 0;                     // of all engine threads that aren't suspended, summed
  std::uint64_t blocked_time = 0;                    // of that, waiting for room in a queue
  std::uint64_t token_time = 0;                      // of that, waiting for the Python token
  std::uint64_t ticks = 0;
};

class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  Profiler(std::size_t operators, std::chrono::nanoseconds stuck_after);

  // One look at all threads: begin, see each, end. One caller at a time. end: true if the set of stuck threads changed.
  void begin(Clock::time_point now);
  void see(EngineThread& thread, bool of_scheduler);
  [[nodiscard]] bool end();

  // The totals; same caller as tick, or a lock of the caller's around both.
  [[nodiscard]] const Profile& profile() const noexcept { return profile_; }

 private:
  const std::uint64_t stuck_after_ns_;
  Profile profile_;
  Clock::time_point last_;
  std::uint64_t elapsed_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  bool changed_ = false;
};

}  // namespace rayelastic
