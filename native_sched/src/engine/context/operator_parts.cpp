// Operators that are run in part: by a producer that finds the queue full, beside whoever runs them. So an aggregate of keys, and the
// functions in front of it, use as many threads as there are producers and workers, without a queue of their own for each.
//
// An operator with a part (Operator::takes_partial_runs) takes runs in any order between two marks. A function that keeps nothing (reentrant), all
// of whose output goes there, has a *twin*: a context of its own for the same function, whose output goes into the part. What a producer
// hands to the twin overtakes the records that wait in the queue, and those that are being processed behind it.
//
// Owner: one thread at a time is in a part, whoever set in_part_. Two could want to be: the producer of the function's port and, if the
//   operator behind it has a queue too, the producer of that.
// Marks: the producer sends none while it is in here, and there is none in the queue of its port (BasicPort). There is none behind that
//   queue either, as long as what is behind it has no queue of its own: it is popped only when it has been dealt with. So what a part has when
//   a mark comes to it is what was in front of the mark.
// Reading: whoever holds the operator may take in what its part has between two marks, too, as one who is in the part (try_settle).
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"

namespace rayelastic {

bool OperatorContext::run_in_parts(OperatorContext* next) {
  if (op_.takes_partial_runs()) {
    end_of_parts_ = this;
  } else if (op_.is_reentrant() && next != nullptr && next->end_of_parts_ != nullptr) {
    twin_ = std::make_unique<OperatorContext>(id_, owner_, placement_, engine_);
    twin_->beside_ = next;
    end_of_parts_ = next->end_of_parts_;
  }
  return end_of_parts_ != nullptr;
}

// Nothing on the way there has a queue.
bool OperatorContext::leads_straight_to(const OperatorContext* end) const noexcept {
  for (const OperatorContext* at = this; at != end;) {
    at = at->only_->manual_target();
    if (at == nullptr) return false;
  }
  return true;
}

std::int64_t OperatorContext::take_partial(const Run& run) {
  OperatorContext& end = *end_of_parts_;
  if (engine_.is_stopping()) return -1;
  if (end.settles_.load(std::memory_order_relaxed) || !leads_straight_to(&end) || end.in_part_.test_and_set(std::memory_order_acquire))
    return 0;
  const std::int64_t taken = end.op_.has_partial_room() ? take_part(run) : 0;
  end.in_part_.clear(std::memory_order_release);
  return taken;
}

bool OperatorContext::try_settle() {
  if (in_part_.test_and_set(std::memory_order_acquire)) return false;
  struct Out {
    std::atomic_flag& in_part;
    ~Out() { in_part.clear(std::memory_order_release); }
  } const out{in_part_};
  op_.settle();
  return true;
}

// Touches nothing of what belongs to whoever runs the operator.
std::int64_t OperatorContext::take_part(const Run& run) {
  if (twin_ != nullptr) return twin_->execute(run, false, false) ? static_cast<std::int64_t>(run.count) : -1;
  const Doing doing(*current_thread, number_);
  std::string problem;
  std::int64_t taken = 0;
  try {
    taken = op_.process_partial(run.records, static_cast<std::int64_t>(run.count), problem);
  } catch (const std::exception& error) {
    taken = REL_FAILED(INT64_MAX - 1);
    problem = error.what();
  }
  if (taken < 0) {
    tell(std::move(problem), run, -1 - taken);
    return -1;
  }
  partly_in_.add(run.count);
  return static_cast<std::int64_t>(run.count);
}

}  // namespace rayelastic
