// Epoch marks cut the streams in two (Chandy and Lamport; Carbone et al., "Lightweight asynchronous snapshots"): what an operator has
// taken at its mark is exactly what those upstream had sent at theirs. An operator passes the mark on when it has come by all of its edges,
// an edge that has ended counting as one by which it has come; if it is to stop there, it is held from then on, at its safe point, until
// whoever saves its state lets it go.
//
// Alignment: what comes behind the mark by one edge has to wait for the marks of the others. It waits at its producer, which has passed
// on the mark and knows which of its consumers have several edges (meetings_): so no queue ever has, in front of a mark, what belongs behind it.
//
// Deadlock: who waits for an operator X to align has had its own mark; all that is still to bring X a mark hasn't. Downstream of what
// hasn't had its mark nobody has aligned: so whoever runs it, or helps where it has no room, meets nobody who waits here, and the locks that
// these hold belong to operators that have aligned. What is missing is a thread at most: waiting counts as starving, so it is replaced. Loops
// are not aligned, nor are operators that somebody pokes in front of a meeting: the plan doesn't send marks there (saving.py).
#include <atomic>
#include <mutex>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"

namespace rayelastic {

bool OperatorContext::take_epoch(Mark mark) {
  if (is_final() || mark.value <= engine_.abandoned.load(std::memory_order_seq_cst)) return true;
  engine_.replace_waiting();
  if (mark.value != epoch_) {
    epoch_ = mark.value;
    epochs_ = 0;
  }
  ++epochs_;
  return align();
}

// Called also when an edge has ended.
bool OperatorContext::align() {
  if (epochs_ == 0 || epochs_ + finals_ < inputs_) return true;
  epochs_ = 0;
  if (stops_at_epochs_) hold_here();
  const bool ok = show({MarkKind::Epoch, epoch_});
  aligned_.store(epoch_, std::memory_order_seq_cst);
  alignments_.fetch_add(1, std::memory_order_seq_cst);
  alignments_.notify_all();
  return ok;
}

// From when it leaves its safe point. Whoever gives epochs up, or stops, has said so before it comes here.
void OperatorContext::hold_here() {
  const std::lock_guard guard(held_mutex_);
  if (engine_.stopping.load(std::memory_order_seq_cst) || epoch_ <= engine_.abandoned.load(std::memory_order_seq_cst)) return;
  held_at_.store(epoch_, std::memory_order_release);
  safe_point_.hold();
}

void OperatorContext::let_go() noexcept {
  const std::lock_guard guard(held_mutex_);
  held_at_.store(0, std::memory_order_relaxed);
  safe_point_.release();
}

void OperatorContext::give_epochs_up(std::int64_t epoch) noexcept {
  {
    const std::lock_guard guard(held_mutex_);
    const std::int64_t at = held_at_.load(std::memory_order_relaxed);
    if (at != 0 && at <= epoch) {
      held_at_.store(0, std::memory_order_relaxed);
      safe_point_.release();
    }
  }
  alignments_.fetch_add(1, std::memory_order_seq_cst);
  alignments_.notify_all();
}

bool OperatorContext::is_aligned(std::int64_t epoch) const noexcept {
  return aligned_.load(std::memory_order_seq_cst) >= epoch || engine_.abandoned.load(std::memory_order_seq_cst) >= epoch || is_final();
}

bool OperatorContext::wait_aligned() {
  for (const OperatorContext* at : meetings_) {
    if (at->is_aligned(unaligned_)) continue;
    const PortWorld::Waiting waiting(engine_, *current_thread, true);
    for (;;) {
      const std::uint32_t seen = at->alignments_.load(std::memory_order_seq_cst);
      if (at->is_aligned(unaligned_)) break;
      if (engine_.is_stopping()) return false;
      at->alignments_.wait(seen, std::memory_order_seq_cst);
    }
  }
  unaligned_ = 0;
  return true;
}

}  // namespace rayelastic
