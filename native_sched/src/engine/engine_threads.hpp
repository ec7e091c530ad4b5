// The threads of one scheduler: workers, threads of single operators, the profiler's. How many workers are able to work, which of
// them wait and are replaced for that time (P33), which are stuck in user code and are (P23). Knows neither graph nor outcome.
//
// Every member may be called by any thread, whatever engine locks it holds. The mutex is held shortly; no engine lock is waited for
// under it. Those that make threads throw std::system_error where there are no more to be had.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "engine/control/profiler.hpp"
#include "engine/engine.hpp"
#include "engine/operator_thread.hpp"
#include "engine/worker.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/mutex.hpp"

namespace rayelastic {

class EngineThreads {
 public:
  EngineThreads(Engine& engine, std::size_t operators) : engine_(engine), profiler_(operators, engine.options.stuck_after) {}
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // So many workers, within what the options allow.
  void set_count(unsigned count);
  // A thread for a port that is to have one of its own; once it has, it keeps it.
  void start_dedicated(Port& port);
  void start_source(OperatorContext& source);
  // Until `over_within` (so long) says that all is over. `looked`: after each look.
  void start_profiler(std::function<bool(std::chrono::nanoseconds)> over_within, std::function<void(const Profile&)> looked);
  // Threads that wait while somebody starves, directly or for one another, are replaced for that time: whatever can run runs, even
  // where one thread was asked for (P33). Extra threads go to sleep when those come back.
  void replace_waiting();
  // After the engine's `stopping` is set: nobody sleeps on.
  void halt();
  void join() REL_UNCHECKED;  // when nobody makes one any more; without the mutex, which those that end may want

  // So many workers as asked for work.
  [[nodiscard]] bool has(unsigned count) const;
  void tell(InForce& answer) const;
  // What there is to say of threads and, by operator, of their time.
  void tell(Sample& sample) const;

 private:
  void adjust() REL_HELD(mutex_);
  [[nodiscard]] bool somebody_starves() const REL_HELD(mutex_);
  [[nodiscard]] unsigned able() const REL_HELD(mutex_);
  [[nodiscard]] unsigned bounded(unsigned count) const;

  void tick(const std::function<void(const Profile&)>& looked);

  Engine& engine_;
  mutable Mutex mutex_;
  std::deque<Worker> workers_ REL_GUARDED_BY(mutex_);
  std::deque<OperatorThread> operator_threads_ REL_GUARDED_BY(mutex_);
  std::vector<const Port*> dedicated_ REL_GUARDED_BY(mutex_);
  Profiler profiler_ REL_GUARDED_BY(mutex_);
  unsigned wanted_ REL_GUARDED_BY(mutex_) = 0;
  std::thread profiling_;
};

}  // namespace rayelastic
