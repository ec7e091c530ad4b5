// The thread of Scheduler::poke: sends marks to ports from outside the graph. It is one more producer, which may have to wait for a port.
// Knows ports, not what their operators do.
#pragma once

#include <condition_variable>
#include <deque>
#include <thread>

#include "engine/engine.hpp"
#include "engine/engine_thread.hpp"
#include "rayelastic/mutex.hpp"

namespace rayelastic {

class Errands {
 public:
  explicit Errands(Engine& engine) : engine_(engine) {}
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // The port gets a command mark, one for all calls before it goes. The first call makes the thread.
  void add(Port& port);
  // After the engine's `stopping` is set.
  void halt() noexcept;
  void join() REL_UNCHECKED;  // after halt(): nobody makes one any more

 private:
  void run();

  Engine& engine_;
  Mutex mutex_;  // innermost
  std::condition_variable changed_;
  std::deque<Port*> ports_ REL_GUARDED_BY(mutex_);
  EngineThread own_;
  std::thread thread_ REL_GUARDED_BY(mutex_);
};

}  // namespace rayelastic
