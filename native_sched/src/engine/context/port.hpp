// The port of a PE: BasicPort with the operators, threads and atomics of this machine. basic_port.hpp has the explanation.
#pragma once

#include <atomic>
#include <optional>

#include "engine/context/operator_context.hpp"
#include "engine/context/spill.hpp"
#include "engine/engine.hpp"
#include "engine/work_meter.hpp"
#include "operator/deep_copy.hpp"
#include "queue/basic_port.hpp"
#include "queue/gate.hpp"
#include "rayelastic/queue/flag_lock.hpp"
#include "rayelastic/queue/port_queue.hpp"

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
  using Gate = rayelastic::Gate<rayelastic::Port>;
  using Spill = rayelastic::Spill;

  // What the thread has kept for itself goes to others, and the scheduler hears of it where that may matter.
  class Waiting {
   public:
    Waiting(Engine& engine, EngineThread& thread, bool starved) : engine_(engine) {
      engine.publish_next(thread);
      doing_.emplace(thread, starved ? EngineThread::kStarved : EngineThread::kBlocked);
      engine_.tell_waiting();
    }
    ~Waiting() {
      doing_.reset();
      engine_.tell_waiting();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Engine& engine_;
    std::optional<Doing> doing_;
  };

  [[nodiscard]] static EngineThread& thread() noexcept { return *current_thread; }
};

extern template class BasicPort<std::atomic, PortWorld>;

class Port final : public BasicPort<std::atomic, PortWorld> {
 public:
  using BasicPort::BasicPort;
};

}  // namespace rayelastic
