// The checked graph of a scheduler, with its loops. Knows neither ports nor threads.
#pragma once

#include <cstddef>
#include <optional>
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

[[nodiscard]] std::size_t input_count(const OperatorSpec& spec) noexcept;
[[nodiscard]] std::size_t output_count(const OperatorSpec& spec) noexcept;
// Null if there is no such port.
[[nodiscard]] const Schema* input_schema(const OperatorSpec& spec, std::size_t port) noexcept;
[[nodiscard]] const Schema* output_schema(const OperatorSpec& spec, std::size_t port) noexcept;
// Throws std::invalid_argument, naming the operator.
[[noreturn]] void refuse(const OperatorSpec& spec, const std::string& why);
void check_operator(const OperatorSpec& spec);
void check_edge(const std::vector<OperatorSpec>& specs, const Edge& edge);
void check_beginning(const std::vector<OperatorSpec>& specs, const Beginning& beginning);

class Wiring {
 public:
  // Throws std::invalid_argument, naming the operator: see Scheduler::start.
  Wiring(const std::vector<OperatorSpec>& specs, const std::vector<Edge>& edges);

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

  const std::vector<OperatorSpec>& specs_;
  const std::vector<Edge>& edges_;
  std::vector<OperatorId> order_;
  Members queued_;
  std::vector<std::optional<Members>> loops_;  // by head
};

}  // namespace rayelastic
