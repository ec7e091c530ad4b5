// The producer side of BasicPort: a run or a mark is taken by the operator itself, pushed into the queue, or spilled; a switch to another
// threading model is carried out; and where there is no room, what stands in the way is run (help). The invariants: basic_port.hpp,
// which includes this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "queue/basic_port.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::accept_shared(const Run& run, bool writable) {
  wait_for(producer_);
  const bool ok = spill_ != nullptr ? spill(run) : accept_owned(run, writable);
  (void)producer_.unlock();
  return ok;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::accept(Mark mark) {
  if (!shared_) return accept_owned(mark);
  wait_for(producer_);
  const bool ok = spill_ != nullptr ? spill(mark) : accept_owned(mark);
  (void)producer_.unlock();
  return ok;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::accept_owned(Mark mark) {
  if (!follow_desired()) return false;
  if (model_.load(std::memory_order_relaxed) != ThreadingModel::Manual) return enqueue(mark);
  RE_ASSERT(consumer_.is_locked() && queue_.is_drained());
  if (gate_ == nullptr) return target_.accept(mark);
  enter_gate();
  const bool ok = target_.take(input_, mark);
  gate_->leave();
  return ok;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::accept_owned(const Run& run, bool writable) {
  if (!follow_desired()) return false;
  if (model_.load(std::memory_order_relaxed) == ThreadingModel::Manual) return process(run, writable);
  if (deep_copy_ == nullptr) return enqueue(run);
  const ChunkRef texts = deep_copy_->copy(run);
  Chunk* chunk = texts.get();
  return enqueue({deep_copy_->records(), run.count, run.stride, {&chunk, chunk == nullptr ? 0U : 1U}});
}

// The producer side runs the operator.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::process(const Run& run, bool writable) {
  RE_ASSERT(consumer_.is_locked() && queue_.is_drained());
  if (gate_ == nullptr) return target_.execute(run, writable, false);
  enter_gate();
  const bool ok = target_.take(input_, run, writable, false) >= 0;
  gate_->leave();
  return ok;
}

// Waits like lock.lock(), and says so.
template <template <class> class Atom, class World>
void BasicPort<Atom, World>::wait_for(Lock& lock) {
  if (lock.try_lock()) return;
  const typename World::Waiting waiting(engine_, World::thread(), false);
  lock.lock();
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::enter_gate() {
  if (gate_->try_enter()) return;
  const typename World::Waiting waiting(engine_, World::thread(), false);
  gate_->enter();
}

// Producer side. Carries out what apply() asked for; see the invariants.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::follow_desired() {
  const ThreadingModel desired = desired_.load(std::memory_order_relaxed);
  const ThreadingModel model = model_.load(std::memory_order_relaxed);
  if (desired == model) return true;
  if (desired == ThreadingModel::Manual) return lose_queues();
  if (model == ThreadingModel::Manual) {
    RE_ASSERT(consumer_.is_locked() && queue_.is_drained());
    shut_way();
    queue_.set_limit(meter_.begin_with_one(queue_.capacity()));
  }
  model_.store(desired, std::memory_order_relaxed);
  if (model == ThreadingModel::Manual) release_consumer();
  engine_.switched(model, desired);
  engine_.listener.changed();
  return true;
}

// Ports behind this one that are to lose their queues, too, do so before it, the last one first: each then finds operators behind it that
// run down in a loop. One at a time they would do so in each other's calls, on a stack as deep as there are ports.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::lose_queues() {
  auto& way = World::thread().way;
  const std::size_t start = way.size();
  for (auto* port = self(); port != nullptr; port = port->next_to_lose()) {
    port->wait_for(port->consumer_);  // whoever holds it is the producer side of the next
    way.push_back(port);
  }
  bool ok = true;
  RE_CHECK(way.size() > start);
  while (way.size() > start) {
    auto* const port = way.back();
    way.pop_back();
    ok = ok && port->lose_queue();
    if (!ok) port->release_consumer();
  }
  return ok;
}

// For whoever holds consumer_. Behind a gate that isn't enough: another port's holder may be in there and produce for the next one.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::next_to_lose() noexcept -> typename World::Port* {
  auto* const next = gate_ == nullptr ? target_.next_port(false) : nullptr;
  const bool loses = next != nullptr && !next->shared_ && next->gate_ == nullptr &&
                     next->desired_.load(std::memory_order_relaxed) == ThreadingModel::Manual &&
                     next->model_.load(std::memory_order_relaxed) != ThreadingModel::Manual;
  return loses ? next : nullptr;
}

// Under consumer_, which it keeps. False: stop.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::lose_queue() {
  while (!queue_.empty()) {
    if (gate_ != nullptr) enter_gate();
    const Drained drained = drain(queue_.capacity(), false, false);
    if (gate_ != nullptr) gate_->leave();
    if (drained == Drained::Stopped) return false;
  }
  RE_ASSERT(consumer_.is_locked() && queue_.is_drained());
  if (queue_.forget_awaited()) let_go_on(nullptr);  // nobody will retire
  const ThreadingModel model = model_.load(std::memory_order_relaxed);
  model_.store(ThreadingModel::Manual, std::memory_order_relaxed);
  consumer_.rouse();  // who wanted to help: consumer_ isn't unlocked for long
  engine_.switched(model, ThreadingModel::Manual);
  engine_.listener.changed();
  return true;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::enqueue(Run run) {
  for (;;) {
    RE_CHECK(run.stride == stride_);
    if (const std::size_t taken = queue_.push(run); taken > 0) {
      RE_CHECK(taken <= run.count);
      if (queue_.announce()) list_filled();
      run.records += taken * run.stride;
      run.count -= taken;
    }
    if (run.count == 0) return true;
    if (const Taken taken = take_partial(run); taken != Taken::No) return taken == Taken::Yes;
    if (!make_room(run.count)) return false;
  }
}

// There is no room in the queue for the run.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::take_partial(const Run& run) -> Taken {
  if (!partial_ || queue_.has_mark()) return Taken::No;
  RE_ASSERT(!queue_.has_mark());  // a run overtakes records, never a mark
  const typename World::NotOwnWork work(World::thread());
  const std::int64_t taken = target_.take_partial(run);
  RE_CHECK(taken <= 0 || static_cast<std::size_t>(taken) == run.count);
  return taken == 0 ? Taken::No : taken > 0 ? Taken::Yes : Taken::Stopped;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::enqueue(Mark mark) {
  while (!queue_.push(mark)) {
    if (!make_room(1)) return false;
  }
  if (queue_.announce()) list();
  return true;
}

// Feedback. Under producer_. Goes to the free list, never to the thread itself: it might follow the loop round to ports that it holds.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::spill(Run run) {
  if (!follow_desired()) return false;
  const bool spilled = !spill_->empty();
  RE_ASSERT(producer_.is_locked());
  if (!spilled) {
    const std::size_t taken = queue_.push(run);
    run.records += taken * run.stride;
    run.count -= taken;
  }
  if (run.count > 0) {
    if (!spill_->append(run)) return false;
    if (!spilled) gate_->burden();
  }
  if (queue_.announce()) list();
  return true;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::spill(Mark mark) {
  if (!follow_desired()) return false;
  const bool spilled = !spill_->empty();
  RE_ASSERT(producer_.is_locked());
  if (spilled || !queue_.push(mark)) spill_->append(mark);
  if (!spilled && !spill_->empty()) gate_->burden();
  if (queue_.announce()) list();
  return true;
}

// The visitor of a feedback port, inside the gate: afterwards the spill is empty, or the queue isn't.
template <template <class> class Atom, class World>
void BasicPort<Atom, World>::refill() {
  producer_.lock();
  const bool spilled = !spill_->empty();
  spill_->move_to(queue_);
  RE_ASSERT(spill_->empty() || !queue_.empty());
  if (spilled && spill_->empty()) gate_->relieve();
  (void)producer_.unlock();
}

// reSchedule of PLDI'17 Fig. 6 (P17, P18): the producer runs what stands in its way. Where the paper spins while somebody else runs
// it, we spin shortly and then sleep until the consumer lock is released.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::make_room(std::size_t records) {
  Thread& thread = World::thread();
  thread.reschedules.add(1);
  const typename World::NotOwnWork work(thread);
  // Worth waiting for: room for the run, or a quantum. If there is that much already, notes or heap bytes are short instead.
  const std::size_t wanted = std::min(records, quantum());
  const bool short_of_slots = free_slots() < wanted;
  for (int spin = 0; spin < Lock::kSpins; ++spin) {
    if (engine_.is_stopping()) return false;
    if (consumer_.try_lock()) return help() != Drained::Stopped;
    if (short_of_slots && free_slots() >= wanted) return true;
    cpu_relax();
  }
  thread.sleeps.add(1);
  const typename World::Waiting waiting(engine_, thread, false);
  consumer_.sleep();
  return !engine_.is_stopping();
}

// The producer has locked consumer_, which this releases. Full ports behind this one are drained before it, the last one first: each
// then finds room in the next one. So neither the stack nor the locks held grow with the number of full ports.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::help() -> Drained {
  Thread& thread = World::thread();
  const bool kept_next = std::exchange(thread.keeps_next, true);
  auto& way = thread.way;
  const std::size_t start = way.size();
  way.push_back(self());
  Drained drained = Drained::Quantum;
  typename World::Port* blocking = nullptr;  // while drained is Blocked; not always the next one, once that is to switch
  for (bool locked = true; way.size() > start && drained != Drained::Stopped; locked = false) {
    auto* const port = way.back();
    auto* const next = drained == Drained::Blocked ? blocking : port->target_.next_port(false);
    if (next != nullptr && (drained == Drained::Blocked || next->is_full())) {
      if (locked) release_consumer();
      way.push_back(next);
      drained = Drained::Quantum;
      continue;
    }
    if (!locked && !port->try_to_help()) {
      if (turn_back(way, start)) {  // rather than wait at the far end
        drained = Drained::Quantum;
        continue;
      }
      locked = port->lock_to_help();
    } else {
      locked = true;
    }
    drained = locked ? port->drain_locked(blocking) : Drained::Quantum;
    if (drained != Drained::Blocked) way.pop_back();
  }
  RE_CHECK(way.size() >= start);
  way.resize(start);
  if (!kept_next) follow(thread);  // otherwise whoever called does
  thread.keeps_next = kept_next;
  return engine_.is_stopping() ? Drained::Stopped : drained;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::try_to_help() {
  for (int spin = 0; spin < Lock::kSpins; ++spin) {
    if (consumer_.try_lock()) return true;
    cpu_relax();
  }
  return false;
}

// While the ports from `start` on were gone through, others may have run some of them: then the way ends before the first that has room,
// or there is none any more. False: all are as full as they were.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::turn_back(std::vector<typename World::Port*>& way, std::size_t start) {
  RE_CHECK(way.size() > start);
  std::size_t end = way.size();
  for (std::size_t index = way.size(); index-- > start;) {  // in the direction in which room wanders
    if (way[index]->free_slots() >= way[index]->quantum()) end = index;
  }
  const bool shorter = end < way.size();
  way.resize(end);
  return shorter;
}

// Takes consumer_ to drain a port that others produce for. False: it has no queue any more, or all stops.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::lock_to_help() {
  const auto leave = [this] { return model_.load(std::memory_order_relaxed) == ThreadingModel::Manual || engine_.is_stopping(); };
  const typename World::Waiting waiting(engine_, World::thread(), false);
  while (!consumer_.try_lock()) {
    consumer_.sleep_unless(leave);
    if (leave()) return false;
  }
  return true;
}

// Under consumer_, which this releases. If the stage is full and nothing could be taken, waits for a firing. Gives what it is blocked by.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::drain_locked(typename World::Port*& blocking) -> Drained {
  Thread& thread = World::thread();
  RE_ASSERT(consumer_.is_locked());
  std::uint32_t room = 0;
  bool starved = false;
  if (gate_ != nullptr) enter_gate();
  const std::uint64_t before = queue_.position();
  meter_.begin(thread);  // a worker may not come in for long
  const Drained drained = drain(quantum(), false, true);
  if (meter_.end(thread, static_cast<std::size_t>(queue_.position() - before))) queue_.set_limit(meter_.waiting(queue_.capacity()));
  if (drained == Drained::Full && queue_.position() == before) {
    starved = !target_.widen(input_);
    if (starved) room = gate_->expect_room(input_);
  }
  if (drained == Drained::Blocked) blocking = ahead_;
  if (gate_ != nullptr) gate_->leave();
  release_consumer();
  if (!starved || engine_.is_stopping()) return drained;
  thread.sleeps.add(1);
  const typename World::Waiting waiting(engine_, thread, true);
  if (!engine_.is_stopping()) gate_->wait_for_room(input_, room);
  return engine_.is_stopping() ? Drained::Stopped : drained;
}

}  // namespace rayelastic
