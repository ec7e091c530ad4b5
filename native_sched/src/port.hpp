// The port of a PE: BasicPort among the operators, threads and atomics of this machine. Everything there is to know is there.
#pragma once

#include <atomic>

#include "basic_port.hpp"
#include "deep_copy.hpp"
#include "engine.hpp"
#include "operator_context.hpp"
#include "rayelastic/flag_lock.hpp"
#include "rayelastic/port_queue.hpp"
#include "work_meter.hpp"

namespace rayelastic {

class Port;

struct PortWorld {
  using Port = rayelastic::Port;
  using Target = OperatorContext;
  using Engine = rayelastic::Engine;
  using Queue = PortQueue<>;
  using Lock = FlagLock<>;
  using DeepCopy = rayelastic::DeepCopy;

  using WorkMeter = rayelastic::WorkMeter;
  using Thread = EngineThread;
  using NotOwnWork = rayelastic::NotOwnWork;
  struct Blocked : Doing {
    explicit Blocked(EngineThread& thread) noexcept : Doing(thread, EngineThread::kBlocked) {}
  };

  [[nodiscard]] static EngineThread& thread() noexcept { return *current_thread; }
};

extern template class BasicPort<std::atomic, PortWorld>;

class Port final : public BasicPort<std::atomic, PortWorld> {
 public:
  using BasicPort::BasicPort;
};

}  // namespace rayelastic
