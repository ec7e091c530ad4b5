// A scheduler thread (PLDI'17 Fig. 4 and 5): takes ports from the free list, drains them, sleeps when there are none. It is
// suspended and woken, never destroyed while the PE runs (P24). Knows no operator.
#pragma once

#include <atomic>
#include <thread>

#include "engine.hpp"
#include "engine_thread.hpp"

namespace rayelastic {

class Worker {
 public:
  // `index`: which of the scheduler's threads it is, for the choice of its CPU.
  Worker(Engine& engine, std::size_t index);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void suspend() noexcept;
  void resume() noexcept;
  void join();
  [[nodiscard]] bool is_parked() const noexcept { return own_.parked.load(std::memory_order_acquire); }
  // Asked to go, whether or not it has gone.
  [[nodiscard]] bool is_suspended() const noexcept { return own_.suspended.load(std::memory_order_seq_cst); }
  // In user code for longer than a while (Profiler).
  [[nodiscard]] bool is_stuck() const noexcept { return own_.watch.stuck.load(std::memory_order_relaxed); }
  [[nodiscard]] EngineThread& own() noexcept { return own_; }
  [[nodiscard]] const EngineThread& own() const noexcept { return own_; }

 private:
  void run();
  void park();
  void wait_for_work();

  Engine& engine_;
  EngineThread own_;
  std::thread thread_;
};

// A thread of the engine that runs `body`, with its hooks around it.
template <class Body>
void run_engine_thread(const ThreadHooks& hooks, EngineThread& own, Body&& body) {
  current_thread = &own;
  own.alive.store(pthread_getcpuclockid(pthread_self(), &own.cpu_clock) == 0, std::memory_order_release);
  if (hooks.started != nullptr) hooks.started(hooks.owner, &own.user);
  body();
  if (hooks.stopped != nullptr) hooks.stopped(hooks.owner, &own.user);
  own.alive.store(false, std::memory_order_release);
  current_thread = nullptr;
}

}  // namespace rayelastic
