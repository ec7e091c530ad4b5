// The graph at run time, built when a scheduler starts: contexts, their ports, and their connections. Knows no threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "engine/engine.hpp"
#include "engine/graph/junction.hpp"
#include "engine/graph/wiring.hpp"
#include "rayelastic/engine/scheduler.hpp"

namespace rayelastic {

class Graph {
 public:
  using Models = decltype(Desired::models);
  using Overflow = std::function<void(OperatorId)>;  // a loop makes records faster than it ends them

  // Throws std::invalid_argument, naming the operator: see Scheduler::start. What it is given outlives it.
  Graph(const Operators& operators, const std::vector<Placement>& placements, const std::vector<Edge>& edges);

  [[nodiscard]] std::size_t port_count() const noexcept;
  // Once, before anything below.
  void build(Engine& engine, const Models& models, const Overflow& overflow);

  [[nodiscard]] const std::vector<std::unique_ptr<OperatorContext>>& contexts() const noexcept { return contexts_; }
  // By operator and input; none for sources.
  [[nodiscard]] const std::vector<std::vector<std::unique_ptr<Port>>>& ports() const noexcept { return ports_; }
  // Upstream before downstream, without regard to feedback.
  [[nodiscard]] const std::vector<OperatorId>& order() const noexcept { return wiring_.order(); }
  // Before the start.
  void begin_after(const Beginning& beginning);
  // The model that an operator can have where `desired` is asked for.
  [[nodiscard]] ThreadingModel possible_model(OperatorId id, ThreadingModel desired) const;
  // As long as one of its ports hasn't switched, the operator hasn't.
  [[nodiscard]] ThreadingModel model_of(OperatorId id) const;

 private:
  void add_operator(OperatorId id, Engine& engine, const Models& models, const Overflow& overflow);
  void relate_ports(OperatorId id, Engine& engine);
  void connect(const Edge& edge);
  void find_parts();

  const Operators& operators_;
  const std::vector<Placement>& placements_;
  const std::vector<Edge>& edges_;
  const Wiring wiring_;
  std::vector<std::vector<Junction::Input>> inputs_;
  std::vector<std::vector<std::size_t>> feedback_inputs_;  // by operator and port; 0: none
  std::vector<std::unique_ptr<OperatorContext>> contexts_;
  std::vector<std::vector<std::unique_ptr<Port>>> ports_;
};

}  // namespace rayelastic
