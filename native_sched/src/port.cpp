#include "port.hpp"

#include <algorithm>
#include <bit>

namespace rayelastic {

namespace {

constexpr std::size_t kRescheduleShare = 4;  // RESCHED_LIMIT: a quarter of the queue (P17). Also a worker's quantum: with the
                                             // paper's unbounded drain a hot port is never left (findings 3)
constexpr unsigned kMaxRefusals = 16;        // then a worker waits for the token, so that no port starves
constexpr std::uint32_t kListed = 1;
constexpr std::size_t kMinRingRecords = 64;

std::size_t ring_records(const SchedulerOptions& options, std::size_t stride) {
  const std::size_t fitting = std::max(std::bit_floor(options.ring_bytes / stride), kMinRingRecords);
  return std::min(options.queue_records, fitting);
}

}  // namespace

Port::Port(OperatorContext& target, Engine& engine, ThreadingModel model)
    : target_(target),
      engine_(engine),
      wish_(model),
      model_(model),
      deep_copy_(engine.options.deep_copy && target.spec().input->has_text() ? std::make_unique<DeepCopy>(target.spec().input) : nullptr),
      queue_(target.in_stride(), ring_records(engine.options, target.in_stride()), engine.options.queue_bytes),
      quantum_(std::max<std::size_t>(queue_.capacity() / kRescheduleShare, 1)) {
  if (model == ThreadingModel::Manual) (void)consumer_.try_lock();  // the producer side's from the start
}

ThreadingModel Port::model() const noexcept {
  return target_.is_final() ? wish_.load(std::memory_order_relaxed) : model_.load(std::memory_order_relaxed);
}

bool Port::accept_shared(const Run& run, bool writable) {
  producer_.lock();
  const bool ok = accept_owned(run, writable);
  (void)producer_.unlock();
  return ok;
}

bool Port::accept(Mark mark) {
  if (edges_ == 1) return accept_owned(mark);
  producer_.lock();
  const bool ok = accept_owned(mark);
  (void)producer_.unlock();
  return ok;
}

bool Port::accept_owned(Mark mark) {
  if (!follow_wish()) return false;
  if (model_.load(std::memory_order_relaxed) == ThreadingModel::Manual) return target_.accept(mark);
  return enqueue(mark);
}

bool Port::accept_owned(const Run& run, bool writable) {
  if (!follow_wish()) return false;
  if (model_.load(std::memory_order_relaxed) == ThreadingModel::Manual) return target_.execute(run, writable, false);
  if (deep_copy_ == nullptr) return enqueue(run);
  const ChunkRef texts = deep_copy_->copy(run);
  Chunk* chunk = texts.get();
  return enqueue({deep_copy_->records(), run.count, run.stride, {&chunk, chunk == nullptr ? 0U : 1U}});
}

// Producer side. Carries out what apply() asked for; see the invariants.
bool Port::follow_wish() {
  const ThreadingModel wish = wish_.load(std::memory_order_relaxed);
  const ThreadingModel model = model_.load(std::memory_order_relaxed);
  if (wish == model) return true;
  if (wish == ThreadingModel::Manual) {
    consumer_.lock();
    while (!queue_.empty()) {
      if (drain(queue_.capacity(), false) == Drained::Stopped) {
        release_consumer();
        return false;
      }
    }
  }
  model_.store(wish, std::memory_order_relaxed);
  if (model == ThreadingModel::Manual) release_consumer();
  engine_.listener.changed();
  return true;
}

bool Port::enqueue(Run run) {
  for (;;) {
    if (const std::size_t taken = queue_.push(run); taken > 0) {
      if (queue_.announce()) list();
      run.records += taken * run.stride;
      run.count -= taken;
    }
    if (run.count == 0) return true;
    if (!make_room(run.count)) return false;
  }
}

bool Port::enqueue(Mark mark) {
  while (!queue_.push(mark)) {
    if (!make_room(1)) return false;
  }
  if (queue_.announce()) list();
  return true;
}

// reSchedule of PLDI'17 Fig. 6 (P17, P18): the producer runs what stands in its way. Where the paper spins while somebody else
// runs it, we spin shortly and then sleep until the consumer lock is released.
bool Port::make_room(std::size_t records) {
  EngineThread& thread = *current_thread;
  thread.reschedules.add(1);
  // Worth waiting for: room for the run, or a quantum. If there is that much already, notes or heap bytes are short instead.
  const std::size_t wanted = std::min(records, quantum_);
  const bool short_of_slots = queue_.capacity() - queue_.size() < wanted;
  for (int spin = 0; spin < FlagLock<>::kSpins; ++spin) {
    if (engine_.is_stopping()) return false;
    if (consumer_.try_lock()) {
      const Drained drained = drain(quantum_, false);
      release_consumer();
      return drained != Drained::Stopped;
    }
    if (short_of_slots && queue_.capacity() - queue_.size() >= wanted) return true;
    cpu_relax();
  }
  thread.sleeps.add(1);
  consumer_.sleep();
  return !engine_.is_stopping();
}

void Port::visit() {
  for (;;) {
    if (consumer_.try_lock()) break;
    if (consumer_.leave_note(FlagLock<>::kRelist) != 0) return;  // "abandon on contention" (P15): the holder lists it again
  }
  const bool may_be_refused = model_.load(std::memory_order_relaxed) == ThreadingModel::Dynamic;
  const Drained drained = drain(quantum_, may_be_refused);
  const bool more = drained != Drained::Stopped && (!queue_.empty() || queue_.retire());
  // Unlock, then put back (P13): the next owner shall not find it locked.
  const bool noted = (consumer_.unlock() & FlagLock<>::kRelist) != 0;
  if (drained == Drained::Refused) {
    engine_.park_for_token(this);
  } else if (more || noted) {
    list();
  }
}

// Consumer side.
Port::Drained Port::drain(std::size_t limit, bool may_be_refused) {
  EngineThread& thread = *current_thread;
  while (limit > 0) {
    const auto front = queue_.front(limit);
    if (front.mark != nullptr) {
      const Mark mark = *front.mark;
      queue_.pop_mark();
      if (!target_.accept(mark)) return Drained::Stopped;
      continue;
    }
    if (front.count == 0) break;
    bool token_held = false;
    if (may_be_refused && target_.needs_token()) {
      if (engine_.try_enter_token(thread)) {
        token_held = true;
        refusals_ = 0;
      } else if (++refusals_ < kMaxRefusals) {
        return Drained::Refused;
      }
    }
    if (!target_.execute({front.records, front.count, target_.in_stride(), front.chunks}, true, token_held)) return Drained::Stopped;
    queue_.advance(front.count);
    limit -= front.count;
    if (thread.suspended.load(std::memory_order_relaxed)) break;
  }
  return engine_.is_stopping() ? Drained::Stopped : Drained::Quantum;
}

void Port::release_consumer() {
  if ((consumer_.unlock() & FlagLock<>::kRelist) != 0) list();
}

void Port::list() noexcept {
  if (model_.load(std::memory_order_relaxed) != ThreadingModel::Dedicated) {
    engine_.list(this);
    return;
  }
  wake();
}

void Port::wait_listed() noexcept {
  for (int spin = 0; spin < FlagLock<>::kSpins; ++spin) {
    if (listed_.exchange(0, std::memory_order_acq_rel) == kListed) return;
    cpu_relax();
  }
  while (listed_.exchange(0, std::memory_order_acq_rel) != kListed) listed_.wait(0, std::memory_order_relaxed);
}

void Port::wake() noexcept {
  listed_.store(kListed, std::memory_order_release);
  listed_.notify_one();
}

}  // namespace rayelastic
