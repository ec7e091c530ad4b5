// Epoch marks cut the streams in two (Chandy and Lamport; Carbone et al., "Lightweight asynchronous snapshots"): what an operator has
// taken at its mark is exactly what those upstream had sent at theirs. An operator passes the mark on when it has come by all of its edges,
// an edge that has ended counting as one by which it has come; if its state is to be saved there, a copy of that is begun, and it goes on
// (state_copy.hpp). What can't be copied so, and sinks, are held from then on, at their safe point, until whoever saves them lets them go.
//
// Alignment: what comes behind the mark by one edge has to wait for the marks of the others. It waits at its producer, which has passed
// on the mark and knows which of its consumers have several edges (alignment.hpp): so no queue ever has, in front of a mark, what belongs behind it.
//
// Deadlock: who waits for an operator X to align has had its own mark; all that is still to bring X a mark hasn't. Downstream of what
// hasn't had its mark nobody has aligned: so whoever runs it, or helps where it has no room, meets nobody who waits here, and the locks that
// these hold belong to operators that have aligned. What is missing is a thread at most: waiting counts as starving, so it is replaced. Loops
// are not aligned, nor are operators that somebody pokes in front of a meeting: no marks are sent there (alignment.py).
#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"

namespace rayelastic {

bool OperatorContext::take_epoch(Mark mark) {
  if (is_final() || mark.value <= engine_.abandoned.load(std::memory_order_seq_cst)) return true;
  engine_.replace_waiting();
  alignment_.note(mark.value);
  return align();
}

// Called also when an edge has ended. The operator receives the barrier first, and merges its partial runs into its state.
bool OperatorContext::align() {
  if (!alignment_.take_complete(ends_.ended(), ends_.edges())) return true;
  const bool ok = show({MarkKind::Barrier, alignment_.checkpoint()});
  if (ok && barrier_hold_.is_enabled()) barrier_hold_.hold(alignment_.checkpoint(), *op_, engine_);
  alignment_.publish();
  return ok;
}

void OperatorContext::give_epochs_up(std::int64_t epoch) noexcept {
  barrier_hold_.give_up(epoch);
  alignment_.wake();
}

bool OperatorContext::is_aligned(std::int64_t epoch) const noexcept {
  return alignment_.aligned() >= epoch || engine_.abandoned.load(std::memory_order_seq_cst) >= epoch || is_final();
}

bool OperatorContext::wait_aligned() {
  for (const OperatorContext* at : alignment_.meetings()) {
    if (at->is_aligned(alignment_.awaited())) continue;
    const PortWorld::Waiting waiting(engine_, *current_thread, true);
    for (;;) {
      const std::uint32_t seen = at->alignment_.changes();
      if (at->is_aligned(alignment_.awaited())) break;
      if (engine_.is_stopping()) return false;
      at->alignment_.wait(seen);
    }
  }
  alignment_.clear_awaited();
  return true;
}

}  // namespace rayelastic
