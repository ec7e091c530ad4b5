// The thread of Scheduler::poke: takes marks to ports from outside of the graph. One more producer, for which a port may have to wait.
// Knows ports, not what their operators do.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/engine.hpp"
#include "engine/engine_thread.hpp"

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
  void join();

 private:
  void run();

  Engine& engine_;
  std::mutex mutex_;  // innermost
  std::condition_variable changed_;
  std::deque<Port*> ports_;
  EngineThread own_;
  std::thread thread_;
};

}  // namespace rayelastic
