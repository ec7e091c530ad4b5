// The checked graph of a scheduler, with its loops. Knows neither ports nor threads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rayelastic/engine/scheduler.hpp"

namespace rayelastic {

struct Edge {
  OperatorId from = 0;
  OperatorId to = 0;
  std::size_t output = 0;
  std::size_t input = 0;
  bool feedback = false;
};

using Operators = std::vector<std::shared_ptr<Operator>>;

// Throw std::invalid_argument, naming the operator.
[[noreturn]] void refuse(const Operator& op, const std::string& why);
void check_operator(Operator& op, const Placement& placement);
void check_edge(const Operators& operators, const Edge& edge);
void check_beginning(const Operators& operators, const Beginning& beginning);

class Wiring {
 public:
  // Throws std::invalid_argument, naming the operator: see Scheduler::start.
  Wiring(const Operators& operators, const std::vector<Edge>& edges);

  // Upstream before downstream, without regard to feedback.
  [[nodiscard]] const std::vector<OperatorId>& order() const noexcept { return order_; }
  // Both ends belong to one loop, and the edge too.
  [[nodiscard]] bool is_in_loop(const Edge& edge) const;
  // It can't be manual: stages need queues in front of them, and so do loops, and very long stretches without any.
  [[nodiscard]] bool needs_queue(OperatorId id) const { return queued_[id]; }
  // Records of one operator, or of operators behind it, come in at both ports.
  [[nodiscard]] bool are_related(OperatorId id, std::size_t port, std::size_t other) const;
  using Members = std::vector<bool>;  // by operator
  [[nodiscard]] Members upstream_of(OperatorId id, std::size_t port) const;

 private:
  void check_fed() const;
  void find_order();
  void find_queues();
  void check_loop(OperatorId head) const;
  [[nodiscard]] Members reach(Members members, bool downstream) const;

  const Operators& operators_;
  const std::vector<Edge>& edges_;
  std::vector<OperatorId> order_;
  Members queued_;
  std::vector<std::optional<Members>> loops_;  // by head
};

}  // namespace rayelastic
