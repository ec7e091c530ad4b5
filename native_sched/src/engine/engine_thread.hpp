// The private data of an engine thread: flags that others set (P20), counters that others sum, its current activity (M02), and the
// slot of the bindings. Cache lines that the thread writes are separate from those that others write. Knows nothing of what the thread
// runs.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace rayelastic {
class Port;

// Written by one thread at a time (successive writers are ordered by the lock that made them owner), read by any at any time.
class Counter {
 public:
  void add(std::uint64_t amount) noexcept { value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct EngineThread {
  // What `doing` says besides the number of the operator that runs.
  static constexpr std::uint32_t kEngine = UINT32_MAX;         // looking for work, moving records
  static constexpr std::uint32_t kIdle = UINT32_MAX - 1;       // asleep or about to be, for want of work
  static constexpr std::uint32_t kBlocked = UINT32_MAX - 2;    // waits for room in a queue
  static constexpr std::uint32_t kToken = UINT32_MAX - 3;      // waits for the Python token
  static constexpr std::uint32_t kSuspended = UINT32_MAX - 4;  // parked
  static constexpr std::uint32_t kStarved = UINT32_MAX - 5;    // waits for room in a stage, while another port is short of records

  // The thread's own.
  alignas(64) std::atomic<std::uint32_t> doing{kEngine};  // relaxed: the profiler wants to know roughly
  std::atomic<std::uint32_t> waits_in{kEngine};           // relaxed: while blocked, the operator whose output it is that finds no room
  Counter visits;                                         // of ports, and looks for work: it isn't stuck in user code (P23)
  void* user = nullptr;                                   // ThreadHooks
  Counter token_wait_ns;
  Counter token_refusals;
  Counter reschedules;
  Counter sleeps;
  clockid_t cpu_clock = 0;          // published by `alive`
  pid_t tid = 0;                    // likewise
  std::atomic<bool> alive{false};   // release: cpu_clock can be read
  std::atomic<bool> parked{false};  // suspension is in force

  // The port that this thread has just filled: it visits it next, for the records are in this core's cache. Others may take it;
  // whoever does has the responsibility for it (BasicPort). Release with acquire.
  std::atomic<Port*> next{nullptr};
  bool keeps_next = false;      // the thread is about to visit what is in `next`
  std::vector<Port*> way;       // full ports that it is about to drain, the last one first
  bool measuring = false;       // WorkMeter wants to know ...
  std::uint64_t helped_ns = 0;  // ... what wasn't the thread's own work

  // Set by others.
  alignas(64) std::atomic<bool> suspended{false};  // asked for; seq_cst, see Notifier

  // The profiler's own.
  struct Watch {
    Watch() = default;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
      if (state_file >= 0) close(state_file);
    }

    int state_file = -1;            // of /proc: whether the thread runs
    std::uint64_t cpu_ns = 0;       // of the thread at the last tick
    std::uint64_t unplaced_ns = 0;  // that it used since it was last seen to run
    std::uint64_t visits = 0;       // at the last tick
    bool paused = false;            // they hadn't moved at the last tick
    std::uint64_t stuck_ns = 0;     // since when `visits` hasn't moved, while an operator ran
    std::atomic<bool> stuck{false};
  };
  alignas(64) Watch watch;

  void set_doing(std::uint32_t what) noexcept { doing.store(what, std::memory_order_relaxed); }
};

// The engine thread that runs this code; null on every other thread. One load: a call per run is too dear for the general model.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit EngineThread* current_thread = nullptr;

// While something lasts; then what it was before.
class Doing {
 public:
  Doing(EngineThread& thread, std::uint32_t what) noexcept : thread_(thread), before_(thread.doing.load(std::memory_order_relaxed)) {
    if (what == EngineThread::kBlocked || what == EngineThread::kStarved) thread.waits_in.store(before_, std::memory_order_relaxed);
    thread.set_doing(what);
  }
  ~Doing() { thread_.set_doing(before_); }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  EngineThread& thread_;
  const std::uint32_t before_;
};

}  // namespace rayelastic
