// Alignment of an operator at checkpoint barriers (operator_epochs.cpp): which barrier is coming in, and which its consumers have aligned at.
//
// Invariant: nothing is submitted behind a barrier to a consumer with several edges before that has aligned. So no queue has, in front of a
// barrier, what belongs behind it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class OperatorContext;

class Alignment {
 public:
  // A consumer that has several edges.
  void add_meeting(OperatorContext& consumer) { meetings_.push_back(&consumer); }
  [[nodiscard]] const std::vector<OperatorContext*>& meetings() const noexcept { return meetings_; }

  // The barrier of a checkpoint has come by one edge more.
  void note(std::int64_t checkpoint) noexcept {
    RE_CHECK(checkpoint > 0);
    if (checkpoint != checkpoint_) arrived_ = 0;
    checkpoint_ = checkpoint;
    ++arrived_;
  }
  // It has come by all of `edges`, of which `ended` have ended. Once.
  [[nodiscard]] bool take_complete(std::size_t ended, std::size_t edges) noexcept {
    RE_ASSERT(arrived_ + ended <= edges);  // nothing, no end either, comes behind a barrier before it has come by all edges
    if (arrived_ == 0 || arrived_ + ended < edges) return false;
    arrived_ = 0;
    return true;
  }
  [[nodiscard]] std::int64_t checkpoint() const noexcept { return checkpoint_; }

  // The operator has aligned at checkpoint(): those who wait continue.
  void publish() noexcept {
    RE_CHECK(checkpoint_ > 0 && arrived_ == 0);
    aligned_.store(checkpoint_, std::memory_order_seq_cst);
    wake();
  }
  void wake() noexcept {
    changes_.fetch_add(1, std::memory_order_seq_cst);
    changes_.notify_all();
  }
  [[nodiscard]] std::int64_t aligned() const noexcept { return aligned_.load(std::memory_order_seq_cst); }
  // Changes with aligned(), and when waiting for it is vain.
  [[nodiscard]] std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_seq_cst); }
  void wait(std::uint32_t seen) const noexcept { changes_.wait(seen, std::memory_order_seq_cst); }

  // It has passed a barrier on to its consumers.
  void pass(std::int64_t checkpoint) noexcept {
    if (!meetings_.empty()) awaited_ = checkpoint;
  }
  // The checkpoint whose barrier the consumers have to align at before anything more is submitted; 0: none.
  [[nodiscard]] std::int64_t awaited() const noexcept { return awaited_; }
  void clear_awaited() noexcept { awaited_ = 0; }

 private:
  std::vector<OperatorContext*> meetings_;
  std::int64_t awaited_ = 0;
  std::int64_t checkpoint_ = 0;
  std::size_t arrived_ = 0;  // edges by which its barrier has come; 0: none, or it has aligned
  std::atomic<std::int64_t> aligned_{0};
  std::atomic<std::uint32_t> changes_{0};
};

}  // namespace rayelastic
