// Finds out whether a loop is empty (P22, P34). When all edges of the head but its feedback edges are final, only records inside the loop can
// come back. The head sends a probe along the edges of the loop; every operator inside passes it on once it has it from all its edges. Queues
// are first in, first out, so what was in the loop before the probe comes back before it.
//
// Invariant: the head is final only if nothing has come back between a probe and its return on all feedback edges.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class Port;

class LoopProbe {
 public:
  void add_consumer(Port* port) { consumers_.push_back(port); }
  void add_feedback(std::size_t edges) noexcept { feedbacks_ += edges; }
  [[nodiscard]] bool is_head() const noexcept { return feedbacks_ > 0; }
  // Of the edges that belong to a loop.
  [[nodiscard]] const std::vector<Port*>& consumers() const noexcept { return consumers_; }

  void note_returned(std::size_t records) noexcept { returned_ += records; }
  void begin() noexcept { returned_ = 0; }
  [[nodiscard]] bool is_loop_empty() const noexcept { return returned_ == 0; }
  // A probe has come by one edge. True: it has come by all, `edges` in an operator inside the loop, the feedback edges at the head.
  [[nodiscard]] bool arrive(std::size_t edges) noexcept {
    RE_CHECK(arrived_ < edges);
    return ++arrived_ == edges && std::exchange(arrived_, 0) > 0;
  }
  [[nodiscard]] bool arrive_at_head() noexcept { return arrive(feedbacks_); }

 private:
  std::vector<Port*> consumers_;
  std::size_t feedbacks_ = 0;  // edges
  std::size_t arrived_ = 0;    // probes of this round
  std::size_t returned_ = 0;   // records that came back since the probe was sent
};

}  // namespace rayelastic
