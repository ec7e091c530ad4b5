// A scheduler thread (PLDI'17 Fig. 4 and 5): takes ports from the free list, drains them, sleeps when there are none. It is
// suspended and woken, never destroyed while the PE runs (P24). Knows no operator.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <string>
#include <thread>

#include "engine/engine.hpp"
#include "engine/engine_thread.hpp"

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

// A thread of the engine that runs `body`, with the engine's hooks around it. What operators throw has been caught where their names
// are known; what is left is memory that the engine can't have.
template <class Body>
void run_engine_thread(Engine& engine, EngineThread& own, Body&& body) {
  const ThreadHooks& hooks = engine.options.hooks;
  current_thread = &own;
  own.tid = static_cast<pid_t>(::syscall(SYS_gettid));  // glibc 2.28, which wheels are for, has no gettid
  own.alive.store(pthread_getcpuclockid(pthread_self(), &own.cpu_clock) == 0, std::memory_order_release);
  if (hooks.started != nullptr) hooks.started(hooks.owner, &own.user);
  try {
    body();
  } catch (const std::exception& error) {
    engine.listener.failed({.operator_name = "scheduler", .message = std::string("a thread of it can't go on: ") + error.what()});
  }
  if (hooks.stopped != nullptr) hooks.stopped(hooks.owner, &own.user);
  own.alive.store(false, std::memory_order_release);
  current_thread = nullptr;
}

}  // namespace rayelastic
