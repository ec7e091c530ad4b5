// Operators that are run in part: by a producer that finds the queue full, beside whoever runs them. So an aggregate of keys, and the
// functions in front of it, use as many threads as there are producers and workers, without a queue of their own for each.
//
// An operator with a part (Operator::takes_partial_runs) takes runs in any order between two marks. A function that keeps nothing (reentrant), all
// of whose output goes there, has a *twin*: a context of its own for the same function, whose output goes into the part. What a producer
// hands to the twin overtakes the records that wait in the queue, and those that are being processed behind it.
//
// Owner: one thread at a time is in a part (partial_run.hpp). Two could want to be: the producer of the function's port and, if the
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
#include "rayelastic/assert.hpp"

namespace rayelastic {

bool OperatorContext::run_in_parts(OperatorContext* next) {
  if (op_->takes_partial_runs()) {
    partial_.end = this;
  } else if (op_->is_reentrant() && next != nullptr && next->partial_.end != nullptr) {
    partial_.twin = std::make_unique<OperatorContext>(id_, op_, placement_, engine_);
    partial_.twin->partial_.beside = next;
    partial_.end = next->partial_.end;
  }
  return partial_.end != nullptr;
}

// Nothing on the way there has a queue.
bool OperatorContext::leads_straight_to(const OperatorContext* end) const noexcept {
  for (const OperatorContext* at = this; at != end;) {
    at = at->outputs_.only()->manual_target();
    if (at == nullptr) return false;
  }
  return true;
}

std::int64_t OperatorContext::take_partial(const Run& run) {
  OperatorContext& end = *partial_.end;
  if (engine_.is_stopping()) return -1;
  if (end.partial_.is_to_be_settled() || !leads_straight_to(&end)) return 0;
  const PartialRun::Inside inside(end.partial_);
  return inside && end.op_->has_partial_room() ? take_part(run) : 0;
}

bool OperatorContext::try_settle() {
  const PartialRun::Inside inside(partial_);
  if (inside) op_->settle();
  return static_cast<bool>(inside);
}

// Touches nothing of what belongs to whoever runs the operator.
std::int64_t OperatorContext::take_part(const Run& run) {
  if (partial_.twin != nullptr) return partial_.twin->execute(run, false, false) ? static_cast<std::int64_t>(run.count) : -1;
  const Doing doing(*current_thread, static_cast<std::uint32_t>(id_));
  std::string problem;
  std::int64_t taken = 0;
  try {
    taken = op_->process_partial(run.records, static_cast<std::int64_t>(run.count), problem);
  } catch (const std::exception& error) {
    taken = REL_FAILED(INT64_MAX - 1);
    problem = thrown(error);
  }
  if (taken < 0) {
    tell(std::move(problem), run, -1 - taken);
    return -1;
  }
  RE_CHECK(taken == static_cast<std::int64_t>(run.count));
  counters_.partial.add(run.count);
  return static_cast<std::int64_t>(run.count);
}

}  // namespace rayelastic
