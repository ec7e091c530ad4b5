// Epoch marks cut the streams in two (Chandy and Lamport; Carbone et al., "Lightweight asynchronous snapshots"): what an operator has
// taken at its mark is exactly what those upstream had sent at theirs. An operator passes the mark on when it has come by all of its edges,
// an edge that has ended counting as one by which it has come; if its state is to be saved there, a copy of that is begun, and it goes on
// (state_copy.hpp). What can't be copied so, and sinks, are held from then on, at their safe point, until whoever saves them lets them go.
//
// Alignment: what comes behind the mark by one edge has to wait for the marks of the others. It waits at its producer, which has passed
// on the mark and knows which of its consumers have several edges (meetings_): so no queue ever has, in front of a mark, what belongs behind it.
//
// Deadlock: who waits for an operator X to align has had its own mark; all that is still to bring X a mark hasn't. Downstream of what
// hasn't had its mark nobody has aligned: so whoever runs it, or helps where it has no room, meets nobody who waits here, and the locks that
// these hold belong to operators that have aligned. What is missing is a thread at most: waiting counts as starving, so it is replaced. Loops
// are not aligned, nor are operators that somebody pokes in front of a meeting: no marks are sent there (alignment.py).
#include <atomic>
#include <new>
#include <utility>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "rayelastic/state/state_table.hpp"

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

// Called also when an edge has ended. First the operator sees the mark: what belongs in front of it, and was kept apart, is in its state then.
bool OperatorContext::align() {
  if (epochs_ == 0 || epochs_ + finals_ < inputs_) return true;
  epochs_ = 0;
  const bool ok = show({MarkKind::Barrier, epoch_});
  if (ok && stops_at_epochs_) hold_here();
  aligned_.store(epoch_, std::memory_order_seq_cst);
  alignments_.fetch_add(1, std::memory_order_seq_cst);
  alignments_.notify_all();
  return ok;
}

// From when it leaves its safe point. Whoever gives epochs up, or stops, has said so before it comes here.
// The copy is begun without the lock: that may take the GIL, and whoever has that may want the lock.
void OperatorContext::hold_here() {
  const auto is_vain = [this] {
    return engine_.stopping.load(std::memory_order_seq_cst) || epoch_ <= engine_.abandoned.load(std::memory_order_seq_cst);
  };
  std::shared_ptr<StateCopy> begun;
  try {
    if (StateTable* const state = op_.state(); state != nullptr && !is_vain()) begun = state->begin_copy();
  } catch (const std::bad_alloc&) {
    begun = nullptr;  // reading it where it is takes less memory
  }
  const Lock guard(held_mutex_);
  if (is_vain()) {
    if (begun != nullptr) begun->abandon();
    return;
  }
  copy_ = std::move(begun);
  copies_.store(copy_ != nullptr, std::memory_order_relaxed);
  held_at_.store(epoch_, std::memory_order_release);
  if (copy_ == nullptr) safe_point_.hold();
}

std::shared_ptr<StateCopy> OperatorContext::take_copy(std::int64_t epoch) {
  const Lock guard(held_mutex_);
  if (held_at_.load(std::memory_order_relaxed) != epoch || copy_ == nullptr) return nullptr;
  held_at_.store(0, std::memory_order_relaxed);
  StateCopy* const taken = copy_.get();
  return {taken, [copy = std::move(copy_), table = owner_](StateCopy*) { copy->abandon(); }};
}

void OperatorContext::let_go() noexcept {
  const Lock guard(held_mutex_);
  if (copy_ == nullptr) held_at_.store(0, std::memory_order_relaxed);  // else it was held for something else
  safe_point_.release();
}

void OperatorContext::give_epochs_up(std::int64_t epoch) noexcept {
  {
    const Lock guard(held_mutex_);
    const std::int64_t at = held_at_.load(std::memory_order_relaxed);
    if (at != 0 && at <= epoch) {
      held_at_.store(0, std::memory_order_relaxed);
      if (copy_ != nullptr) {
        copy_->abandon();
        copy_ = nullptr;
      } else {
        safe_point_.release();
      }
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
