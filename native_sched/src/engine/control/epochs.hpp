// Starts checkpoint barriers at held sources, and waits for operators that are held at them (operator_epochs.cpp has the part in between).
// Knows contexts, not what is saved.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/engine.hpp"
#include "rayelastic/mutex.hpp"

namespace rayelastic {

class Epochs {
 public:
  using Contexts = std::vector<std::unique_ptr<OperatorContext>>;

  Epochs(const Contexts& contexts, Engine& engine) : contexts_(contexts), engine_(engine) {}
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  // Each of the sources, which are held, sends the mark, and goes on. A thread of its own does it: it may have to wait for room. False:
  // the one of an earlier epoch still waits.
  [[nodiscard]] bool send(std::vector<OperatorId> sources, std::int64_t epoch);
  // Whether nothing is being sent; waits for that. Sources are held for the next epoch only then: who sends lets them go.
  [[nodiscard]] bool sent(std::chrono::nanoseconds patience) const;
  // Those among `ids` that are held at the mark, or at their end; waits until there is one.
  [[nodiscard]] std::vector<OperatorId> wait(const std::vector<OperatorId>& ids, std::int64_t epoch,
                                             std::chrono::nanoseconds patience) const;
  // Marks up to that one mean nothing any more; whoever is held at one goes on.
  void abandon(std::int64_t epoch) noexcept;
  // After the engine's `stopping` is set.
  void halt() noexcept;
  void join();

 private:
  void run(const std::vector<OperatorId>& sources, std::int64_t epoch);

  const Contexts& contexts_;
  Engine& engine_;
  Mutex mutex_;
  std::thread thread_ REL_GUARDED_BY(mutex_);
  std::atomic<bool> sending_{false};
  EngineThread own_;
};

}  // namespace rayelastic
