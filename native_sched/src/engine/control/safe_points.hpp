// Holds the operators of a scheduler at their safe points. Knows their order in the graph, neither threads nor what is done while they are
// held.
//
// An operator in the middle of a call may have to get rid of output before it comes to its safe point, so operators are held one
// after the other, upstream first: what is downstream of the one that is waited for still runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "engine/engine.hpp"
#include "engine/graph/wiring.hpp"

namespace rayelastic {

class SafePoints {
 public:
  using Contexts = std::vector<std::unique_ptr<OperatorContext>>;
  using Ports = std::vector<std::vector<std::unique_ptr<Port>>>;

  SafePoints(const Contexts& contexts, const Ports& ports, const std::vector<Edge>& edges, std::vector<OperatorId> order);

  // Empty: all of them are held. Otherwise why not, and none is that wasn't before. One caller at a time.
  [[nodiscard]] std::string hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience, const Engine& engine);
  // An operator that is held takes in what producers took in part (Operator::takes_partial_runs). Empty: done. Otherwise why not. Throws StateError.
  [[nodiscard]] std::string take_in_parts(OperatorId id, std::chrono::nanoseconds patience, const Engine& engine);
  // Any thread, at any time.
  void release() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Some = std::vector<bool>;  // by operator

  [[nodiscard]] bool is_held(OperatorId id) const noexcept { return contexts_[id]->safe_point().is_held(); }
  [[nodiscard]] bool is_quiet(OperatorId id) const noexcept;
  [[nodiscard]] OperatorId first_busy(const Some& drained) const noexcept;
  [[nodiscard]] std::uint64_t taken(const Some& drained) const noexcept;
  [[nodiscard]] bool settle(OperatorId id, Clock::time_point deadline, const Engine& engine);
  [[nodiscard]] OperatorId open_stages(Clock::time_point deadline, const Engine& engine);
  [[nodiscard]] bool wait_quiet(const Some& drained, Clock::time_point deadline, const Engine& engine) const;

  const Contexts& contexts_;
  const Ports& ports_;
  const std::vector<Edge>& edges_;
  const std::vector<OperatorId> order_;
};

}  // namespace rayelastic
