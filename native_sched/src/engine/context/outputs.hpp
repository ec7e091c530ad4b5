// The output ports of an operator, and the ports of the operators that consume them.
//
// Invariant: the consumers are complete before the start and never change. `way_` is null or the operator behind the only consumer, while that is
// manual (BasicPort writes it).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/engine_thread.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class OperatorContext;
class Port;

struct OutputPort {
  explicit OutputPort(const Schema& schema) : stride(schema.record_size()), has_text(schema.has_text()) {}

  const std::size_t stride;
  const bool has_text;
  std::vector<Port*> consumers = {};
  std::vector<std::uint32_t> edges = {};  // their numbers at the consumers
  Counter untaken = {};                   // records, where there are no consumers
};

class Outputs {
 public:
  explicit Outputs(const Schemas& schemas) {
    for (const auto& schema : schemas) ports_.emplace_back(*schema);
  }

  // `onward`: no feedback edge.
  void add_consumer(std::size_t output, Port* port, std::uint32_t edge, bool onward) {
    RE_CHECK(output < ports_.size() && port != nullptr);
    ports_[output].consumers.push_back(port);
    ports_[output].edges.push_back(edge);
    onward_ += onward ? 1 : 0;
  }
  void set_only(Port* port) noexcept { only_ = port; }

  [[nodiscard]] bool has(std::int32_t output) const noexcept { return output >= 0 && static_cast<std::size_t>(output) < ports_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return ports_.size(); }
  [[nodiscard]] OutputPort& operator[](std::size_t output) noexcept { return ports_[output]; }
  [[nodiscard]] const OutputPort& operator[](std::size_t output) const noexcept { return ports_[output]; }
  [[nodiscard]] bool is_terminal() const noexcept { return onward_ == 0; }
  // The consumer of output port 0, if there is one and no more.
  [[nodiscard]] Port* only() const noexcept { return only_; }
  [[nodiscard]] std::atomic<OperatorContext*>& way() noexcept { return way_; }

  // One consumer of any output, another the next time; null: there is none. `edge`: its number there.
  [[nodiscard]] Port* rotate(std::uint32_t& edge) noexcept {
    std::size_t ways = 0;
    for (const OutputPort& output : ports_) ways += output.consumers.size();
    if (ways == 0) return nullptr;
    std::size_t way = turn_++ % ways;
    auto output = ports_.begin();
    for (; way >= output->consumers.size(); ++output) way -= output->consumers.size();
    RE_CHECK(output != ports_.end() && output->edges.size() == output->consumers.size());
    edge = output->edges[way];
    return output->consumers[way];
  }
  // Records of output ports 1, 2, ... that have no consumer, by port.
  [[nodiscard]] std::vector<std::uint64_t> untaken() const {
    std::vector<std::uint64_t> counts;
    for (std::size_t output = 1; output < ports_.size(); ++output) counts.push_back(ports_[output].untaken.get());
    return counts;
  }

 private:
  std::atomic<OperatorContext*> way_{nullptr};
  Port* only_ = nullptr;
  std::deque<OutputPort> ports_;  // a counter doesn't move
  std::size_t onward_ = 0;        // edges to consumers, without feedback
  std::size_t turn_ = 0;          // of rotate
};

}  // namespace rayelastic
