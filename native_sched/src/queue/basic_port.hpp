// The input port of an operator: where a run is handed over, under one of three threading models (P02-P05): manual (the submitting
// thread runs the operator), dynamic (queue, any scheduler thread), dedicated (queue, the port's own thread). Knows no goal.
//
// A template, so that tests/model runs this very code under its own atomics. World names what a port lives among:
//   Port     the class that derives from this one (what Engine lists)
//   Target   the operator behind the port    Engine   list, park_for_token, token, stopping, listener, options
//   Queue    PortQueue<Atom>                 Lock     FlagLock<Atom>
//   DeepCopy copies a run with its texts     WorkMeter says how many records are work enough to wait
//   Thread   what each thread has to itself, thread() of the one that runs this code; NotOwnWork: a scope for its books
//   Waiting  a scope around every wait for what another thread has to do: for room in a queue, or (starved) in a stage
//   Gate     what several ports of one operator share (gate.hpp)    Spill    of a feedback edge (spill.hpp)
//
// Invariants
//   Producer side: one thread at a time. A port with one upstream edge needs no lock for that (P37): its producer is the operator
//     upstream, which is itself run by one thread at a time (sources have one thread; a queue's consumer holds consumer_; a
//     manual port's operator is run by its producer side, which is one thread by induction over the graph), and successive
//     threads are ordered by the locks that handed the upstream operator over. Only ports with several edges (union) take producer_.
//   Consumer side, and so the operator: whoever holds consumer_. While the model in force is Manual the *producer side* holds it, all
//     the time, so a manual call takes no lock and no worker can get in.
//   model_ is written by the producer side alone. Others post a wish, and the producer that comes next carries it out:
//     to Manual: take consumer_, drain to empty, keep consumer_. From Manual: unlock consumer_. Nothing is lost or reordered,
//     because the producer side can't push meanwhile, being itself the one that switches (M15).
//   Way: what the operator upstream keeps in its own cache line, so that a run down a manual pipeline need not look at ports: the
//     operator behind the port, or null: ask the port. Only the producer side opens it, while the model in force is Manual, and
//     looks at the wish afterwards; the producer side shuts it before it leaves Manual; whoever wishes for another model shuts it
//     after the wish. All of that is seq_cst, so that either the one sees the wish or the other comes last.
//   Responsibility: PortQueue::announce() true obliges the caller to list() the port. From then on exactly one of these has it: the
//     free list, the worker that popped it, the token's parked list, the dedicated thread's mailbox, a kRelist note in consumer_, the port
//     ahead (behind_ there: it is full), or the gate (parked there, or stalled: its stage is full). A visit that stalls leaves it with the gate; who fires lists the port. A
//     producer that helps has no responsibility, and takes none: what it drains stays announced.
//   Gate: an operator with several ports, or with stages, is run by whoever holds consumer_ of one of them *and* the gate. Such a
//     port never gives its operator away (manual_target), and its producer side enters the gate for each call. A worker that finds
//     the gate taken gives up (P15), a producer waits, since it couldn't do anything else.
//   Room: a stage that is full takes nothing from the queue, so that fills and its producer waits (J02), not for the consumer lock,
//     which nobody may hold, but for a firing: see gate.hpp. Nobody waits by the clock.
//   Ahead: the next port with a queue, where all that a port's operators give goes there and is no more than they take. A visitor takes
//     no more from a port than has room ahead, and parks the port there if that is nothing: it holds no lock and needs no stack to wait,
//     as it would in the middle of a call. Whoever empties the port ahead lists those behind it: only then, so that a pipeline that is
//     full from end to end empties from its end, and records are in the cache again when their turn comes. Only the producer side of
//     a port changes what is ahead of the port behind it, and that is whoever holds the consumer_ of that one. To look at a port that isn't the
//     one ahead any more is slower, not wrong: what is parked goes on when that one is empty.
//   Help: a producer that finds no room drains the port itself. What is full behind it comes first, the last one first, each under its own
//     lock alone. A help inside another one comes only of an operator that gives more than it takes, in the middle of its call: as deep as
//     the logarithm of what a pipeline makes of one record, however long it is.
//   Feedback: the port of feedback edges always has a gate, never is manual and never makes its producer wait. What doesn't fit goes into spill_, which only
//     grows while the queue has something in it, and the visitor refills the queue before it may retire. Both hold producer_, shortly.
//   Deadlock: locks are taken in the order of the graph (producer_, consumer_, gate of a port before those of ports downstream), so
//     the last port always moves. Feedback edges are no part of that order: under the producer_ of their port nothing is waited for, which
//     is why its consumer may take it. The token is never held while a lock is waited for.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/queue/flag_lock.hpp"

namespace rayelastic {

template <template <class> class Atom, class World>
class BasicPort {
  using Target = typename World::Target;
  using Engine = typename World::Engine;
  using Queue = typename World::Queue;
  using Lock = typename World::Lock;
  using DeepCopy = typename World::DeepCopy;
  using WorkMeter = typename World::WorkMeter;
  using Thread = typename World::Thread;
  using Gate = typename World::Gate;
  using Spill = typename World::Spill;

 public:
  // `input`: which one of its operator's inputs it is.
  BasicPort(Target& target, Engine& engine, ThreadingModel model, std::size_t input = 0);
  BasicPort(const BasicPort&) = delete;
  BasicPort& operator=(const BasicPort&) = delete;

  // Wiring, before the start.
  void add_edge() {
    shared_ = has_edge_ || spill_ != nullptr;
    direct_ = shared_ || gate_ != nullptr ? nullptr : &target_;
    has_edge_ = true;
  }
  // Before the start: where the only operator upstream keeps the way to this one.
  void keep_way(Atom<Target*>& way) { way_ = &way; }
  // Before its edges: it has a gate; its edges are feedback.
  void meet(Gate& gate) { gate_ = &gate; }
  void close_loop(std::unique_ptr<Spill> spill) { spill_ = std::move(spill); }

  // --- producer side. False: stop. writable: the records are the callee's to overwrite.
  [[nodiscard]] bool accept(const Run& run, bool writable) {
    if (Target* target = manual_target(); target != nullptr) [[likely]]
      return target->execute(run, writable, false);
    return shared_ ? accept_shared(run, writable) : accept_owned(run, writable);
  }
  [[nodiscard]] bool accept(Mark mark);
  // The operator behind the port if the producer may run it right away, without any lock; null otherwise.
  [[nodiscard]] Target* manual_target() noexcept {
    return wish_.load(std::memory_order_relaxed) == ThreadingModel::Manual &&
                   model_.load(std::memory_order_relaxed) == ThreadingModel::Manual
               ? direct_
               : nullptr;
  }
  // The same, and leaves it in the way for the next time.
  [[nodiscard]] Target* open_way() noexcept;

  // --- a worker that has popped the port, or the port's own thread. Drains a bounded quantum; passes the responsibility on.
  void visit();
  [[nodiscard]] bool park(typename World::Port* port) noexcept;
  // The ports that a visit of this thread has filled, one after the other, until there is none.
  static void follow(Thread& thread);

  // --- any thread
  // A producer would have to wait. Never for a port with a gate: there a producer may wait for more than room.
  [[nodiscard]] bool is_full() const noexcept { return gate_ == nullptr && free_slots() < quantum(); }
  void wish(ThreadingModel model) noexcept {
    wish_.store(model, std::memory_order_seq_cst);
    if (model != ThreadingModel::Manual) shut_way();
  }
  [[nodiscard]] ThreadingModel model() const noexcept;
  [[nodiscard]] bool is_switching() const noexcept { return model() != wish_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
  // Nothing waits, nor is what came last still being dealt with. Exact while the producers are held.
  [[nodiscard]] bool is_drained() const noexcept { return queue_.is_drained() && (spill_ == nullptr || !gate_->is_burdened()); }
  // Records that may wait, as the work that they are allows.
  [[nodiscard]] std::size_t capacity() const noexcept { return queue_.limit(); }
  // The dedicated thread: sleeps until the port is listed, or until the engine stops.
  void wait_listed() noexcept;
  void wake() noexcept;
  // For whoever has the responsibility for the port: passes it on to those who look for work.
  void list() noexcept;

 private:
  enum class Drained { Quantum, Refused, Full, Blocked, Stopped };

  static constexpr std::size_t kRescheduleShare = 4;  // RESCHED_LIMIT: a quarter of the queue (P17). Also a worker's quantum: with the
                                                      // paper's unbounded drain a hot port is never left (findings 3)
  static constexpr unsigned kMaxRefusals = 16;        // then a worker waits for the token, so that no port starves
  static constexpr std::uint32_t kListed = 1;
  static constexpr std::size_t kMinRingRecords = 64;

  [[nodiscard]] static std::size_t ring_records(const SchedulerOptions& options, std::size_t stride);
  [[nodiscard]] typename World::Port* self() noexcept { return static_cast<typename World::Port*>(this); }
  [[nodiscard]] bool accept_owned(const Run& run, bool writable);
  [[nodiscard]] bool accept_shared(const Run& run, bool writable);
  [[nodiscard]] bool accept_owned(Mark mark);
  [[nodiscard]] bool enqueue(Run run);
  [[nodiscard]] bool enqueue(Mark mark);
  [[nodiscard]] bool make_room(std::size_t records);
  [[nodiscard]] bool follow_wish();
  void shut_way() noexcept {
    if (way_ != nullptr) way_->store(nullptr, std::memory_order_seq_cst);
  }
  [[nodiscard]] bool spill(Run run);
  [[nodiscard]] bool spill(Mark mark);
  void refill();
  [[nodiscard]] bool process(const Run& run, bool writable);
  [[nodiscard]] Drained drain(std::size_t limit, bool may_be_refused, bool may_be_blocked);
  [[nodiscard]] typename World::Port* ahead() noexcept;
  bool let_go_on(typename World::Port* own) noexcept;
  [[nodiscard]] Drained help();
  [[nodiscard]] bool lock_to_help();
  [[nodiscard]] Drained drain_locked();
  void wait_for(Lock& lock);
  void enter_gate();
  void release_consumer();
  void list_filled() noexcept;
  [[nodiscard]] std::size_t quantum() const noexcept { return std::max<std::size_t>(queue_.limit() / kRescheduleShare, 1); }
  [[nodiscard]] std::size_t free_slots() const noexcept { return queue_.limit() - std::min(queue_.limit(), queue_.size()); }

  Target& target_;
  Engine& engine_;
  const std::size_t input_;
  Atom<Target*>* way_ = nullptr;
  Target* direct_ = nullptr;  // the operator, if there is one edge and no gate: who runs the producer may run it
  bool shared_ = false;       // the producer side needs its lock
  bool has_edge_ = false;
  Atom<ThreadingModel> wish_;
  Atom<ThreadingModel> model_;
  std::unique_ptr<DeepCopy> deep_copy_;  // producer side; null unless asked for
  Gate* gate_ = nullptr;                 // null: the consumer lock is all it takes to run the operator
  std::unique_ptr<Spill> spill_;         // null unless the edges are feedback
  alignas(64) Lock producer_;
  alignas(64) Lock consumer_;
  unsigned refusals_ = 0;                      // consumer side: how often in a row the token wasn't to be had
  alignas(64) Atom<std::uint32_t> listed_{0};  // mailbox of the dedicated thread
  const std::size_t stride_;
  Queue queue_;
  WorkMeter meter_;                              // consumer side
  typename World::Port* ahead_ = nullptr;        // consumer side; null: there is none, or its room says nothing
  std::uint32_t switches_seen_ = UINT32_MAX;     // of models, when ahead_ was found
  typename World::Port* also_behind_ = nullptr;  // consumer side: while it is in another one's behind_, the next there
  Atom<typename World::Port*> behind_{nullptr};  // those that wait for this one to be empty; the responsibility for them is here
};

template <template <class> class Atom, class World>
std::size_t BasicPort<Atom, World>::ring_records(const SchedulerOptions& options, std::size_t stride) {
  const std::size_t fitting = std::max(std::bit_floor(options.ring_bytes / stride), kMinRingRecords);
  return std::min(options.queue_records, fitting);
}

template <template <class> class Atom, class World>
BasicPort<Atom, World>::BasicPort(Target& target, Engine& engine, ThreadingModel model, std::size_t input)
    : target_(target),
      engine_(engine),
      input_(input),
      wish_(model),
      model_(model),
      deep_copy_(engine.options.deep_copy && target.schema(input)->has_text() ? std::make_unique<DeepCopy>(target.schema(input)) : nullptr),
      stride_(target.schema(input)->record_size()),
      queue_(stride_, ring_records(engine.options, stride_), engine.options.queue_bytes),
      meter_(engine.options.queue_work / WorkMeter::kRuns, std::max<std::size_t>(queue_.capacity() / WorkMeter::kRuns, 1)) {
  if (model == ThreadingModel::Manual) {
    (void)consumer_.try_lock();  // the producer side's from the start
  } else {
    engine_.switched(ThreadingModel::Manual, model);
  }
}

template <template <class> class Atom, class World>
ThreadingModel BasicPort<Atom, World>::model() const noexcept {
  return (gate_ == nullptr ? target_.is_final() : gate_->is_closed(input_)) ? wish_.load(std::memory_order_relaxed)
                                                                            : model_.load(std::memory_order_relaxed);
}

template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::open_way() noexcept -> Target* {
  Target* const target = manual_target();
  if (target == nullptr || way_ == nullptr) return target;
  way_->store(target, std::memory_order_seq_cst);
  if (wish_.load(std::memory_order_seq_cst) != ThreadingModel::Manual) shut_way();
  return target;
}

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
  if (!follow_wish()) return false;
  if (model_.load(std::memory_order_relaxed) != ThreadingModel::Manual) return enqueue(mark);
  if (gate_ == nullptr) return target_.accept(mark);
  enter_gate();
  const bool ok = target_.take(input_, mark);
  gate_->leave();
  return ok;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::accept_owned(const Run& run, bool writable) {
  if (!follow_wish()) return false;
  if (model_.load(std::memory_order_relaxed) == ThreadingModel::Manual) return process(run, writable);
  if (deep_copy_ == nullptr) return enqueue(run);
  const ChunkRef texts = deep_copy_->copy(run);
  Chunk* chunk = texts.get();
  return enqueue({deep_copy_->records(), run.count, run.stride, {&chunk, chunk == nullptr ? 0U : 1U}});
}

// The producer side runs the operator.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::process(const Run& run, bool writable) {
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
bool BasicPort<Atom, World>::follow_wish() {
  const ThreadingModel wish = wish_.load(std::memory_order_relaxed);
  const ThreadingModel model = model_.load(std::memory_order_relaxed);
  if (wish == model) return true;
  if (wish == ThreadingModel::Manual) {
    wait_for(consumer_);
    while (!queue_.empty()) {
      if (gate_ != nullptr) enter_gate();
      const Drained drained = drain(queue_.capacity(), false, false);
      if (gate_ != nullptr) gate_->leave();
      if (drained == Drained::Stopped) {
        release_consumer();
        return false;
      }
    }
    if (queue_.forget_awaited()) let_go_on(nullptr);  // nobody will retire
  }
  if (model == ThreadingModel::Manual) shut_way();
  model_.store(wish, std::memory_order_relaxed);
  if (wish == ThreadingModel::Manual) consumer_.rouse();  // who wanted to help: consumer_ isn't unlocked for long
  if (model == ThreadingModel::Manual) release_consumer();
  engine_.switched(model, wish);
  engine_.listener.changed();
  return true;
}

template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::enqueue(Run run) {
  for (;;) {
    if (const std::size_t taken = queue_.push(run); taken > 0) {
      if (queue_.announce()) list_filled();
      run.records += taken * run.stride;
      run.count -= taken;
    }
    if (run.count == 0) return true;
    if (!make_room(run.count)) return false;
  }
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
  if (!follow_wish()) return false;
  const bool spilled = !spill_->empty();
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
  if (!follow_wish()) return false;
  const bool spilled = !spill_->empty();
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
  for (bool locked = true; way.size() > start && drained != Drained::Stopped; locked = false) {
    auto* const port = way.back();
    auto* const next = port->target_.next_port(false);
    if (next != nullptr && (drained == Drained::Blocked || next->is_full())) {
      if (locked) release_consumer();
      way.push_back(next);
      drained = Drained::Quantum;
      continue;
    }
    drained = locked || port->lock_to_help() ? port->drain_locked() : Drained::Quantum;
    if (drained != Drained::Blocked) way.pop_back();
  }
  way.resize(start);
  if (!kept_next) follow(thread);  // otherwise whoever called does
  thread.keeps_next = kept_next;
  return engine_.is_stopping() ? Drained::Stopped : drained;
}

// Takes consumer_ to drain a port that others produce for. False: it has no queue any more, or all stops.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::lock_to_help() {
  const auto leave = [this] { return model_.load(std::memory_order_relaxed) == ThreadingModel::Manual || engine_.is_stopping(); };
  for (int spin = 0; spin < Lock::kSpins; ++spin) {
    if (consumer_.try_lock()) return true;
    cpu_relax();
  }
  const typename World::Waiting waiting(engine_, World::thread(), false);
  while (!consumer_.try_lock()) {
    consumer_.sleep_unless(leave);
    if (leave()) return false;
  }
  return true;
}

// Under consumer_, which this releases. If the stage is full and nothing could be taken, waits for a firing.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::drain_locked() -> Drained {
  Thread& thread = World::thread();
  std::uint32_t room = 0;
  bool starved = false;
  if (gate_ != nullptr) enter_gate();
  const std::uint64_t before = queue_.position();
  const Drained drained = drain(quantum(), false, true);
  if (drained == Drained::Full && queue_.position() == before) {
    starved = !target_.widen(input_);
    if (starved) room = gate_->expect_room(input_);
  }
  if (gate_ != nullptr) gate_->leave();
  release_consumer();
  if (!starved || engine_.is_stopping()) return drained;
  thread.sleeps.add(1);
  const typename World::Waiting waiting(engine_, thread, true);
  if (!engine_.is_stopping()) gate_->wait_for_room(input_, room);
  return engine_.is_stopping() ? Drained::Stopped : drained;
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::follow(Thread& thread) {
  while (auto* port = Engine::take_next(thread)) port->visit();
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::visit() {
  for (;;) {
    if (consumer_.try_lock()) break;
    if (consumer_.leave_note(Lock::kRelist) != 0) return;  // "abandon on contention" (P15): the holder lists it again
  }
  if (gate_ != nullptr && !gate_->try_enter()) {
    (void)consumer_.unlock();  // no kRelist in it: the responsibility is here
    gate_->park(self());
    return;
  }
  Thread& thread = World::thread();
  const bool may_be_refused = model_.load(std::memory_order_relaxed) == ThreadingModel::Dynamic;
  const std::uint64_t before = queue_.position();
  meter_.begin(thread);
  Drained drained = drain(quantum(), may_be_refused, true);
  if (meter_.end(thread, static_cast<std::size_t>(queue_.position() - before))) queue_.set_limit(meter_.waiting(queue_.capacity()));
  if (spill_ != nullptr) refill();
  bool awaited = false;
  bool more = drained != Drained::Stopped;
  if (more && queue_.empty()) {
    const auto retirement = queue_.retire();
    more = retirement.stays;
    awaited = retirement.awaited;
  } else if (more && queue_.limit() < queue_.capacity() && free_slots() >= queue_.limit() / 2) {
    awaited = queue_.forget_awaited();  // dear records: who waits has time to make the next before the last of these is done
  }
  // Unlock, then put back (P13): the next owner shall not find it locked.
  const bool parked = more && drained == Drained::Blocked && ahead()->park(self());
  const bool noted = (consumer_.unlock() & Lock::kRelist) != 0;
  if (gate_ != nullptr) {
    if (drained == Drained::Full) gate_->stall(input_, self());
    gate_->leave();
  }
  if (awaited) let_go_on(nullptr);
  if (drained == Drained::Refused) {
    engine_.park_for_token(self());
  } else if (drained != Drained::Full && (noted || (more && !parked))) {
    list();
  }
}

// For whoever is responsible for `port`, whose operators give to this one alone: it is full. True: the responsibility is here until
// this one is empty. Others may be here as well: a port behind this one that was, until it lost its queue, between the two.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::park(typename World::Port* port) noexcept {
  Machine<Atom>::writes(&port->also_behind_, sizeof also_behind_);
  port->also_behind_ = behind_.load(std::memory_order_relaxed);
  while (!behind_.compare_exchange_weak(port->also_behind_, port, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return queue_.await() || !let_go_on(port);  // nobody will look into this one: unless somebody has just done so
}

// All that wait for this one. True: `own`, which its owner takes back, was among them.
template <template <class> class Atom, class World>
bool BasicPort<Atom, World>::let_go_on(typename World::Port* own) noexcept {
  bool found = false;
  for (auto* port = behind_.exchange(nullptr, std::memory_order_acquire); port != nullptr;) {
    Machine<Atom>::writes(&port->also_behind_, sizeof also_behind_);
    auto* const next = std::exchange(port->also_behind_, nullptr);
    if (port == own) {
      found = true;
    } else {
      port->list_filled();
    }
    port = next;
  }
  return found;
}

template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::ahead() noexcept -> typename World::Port* {
  if (gate_ != nullptr) return nullptr;
  if (const std::uint32_t switches = engine_.switches.load(std::memory_order_relaxed); switches != switches_seen_) {
    switches_seen_ = switches;
    ahead_ = target_.next_port(true);
    if (ahead_ != nullptr && (ahead_->gate_ != nullptr || ahead_->shared_)) ahead_ = nullptr;
  }
  return ahead_;
}

// Consumer side, inside the gate if there is one.
template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::drain(std::size_t limit, bool may_be_refused, bool may_be_blocked) -> Drained {
  auto& thread = World::thread();
  while (limit > 0) {
    const auto* const next = may_be_blocked ? ahead() : nullptr;
    const std::size_t room = next == nullptr ? SIZE_MAX : next->free_slots();
    const auto front = queue_.front(std::clamp<std::size_t>(room, 1, limit));
    if (front.mark != nullptr) {
      const Mark mark = *front.mark;
      const bool ok = gate_ == nullptr ? target_.accept(mark) : target_.take(input_, mark);
      queue_.pop_mark();  // only now: until it has been dealt with the queue isn't drained
      if (!ok) return Drained::Stopped;
      continue;
    }
    if (front.count == 0) break;
    if (next != nullptr && room < next->queue_.limit() && (front.count > room || room < std::min(limit, next->quantum())))
      return Drained::Blocked;
    bool token_held = false;
    if (may_be_refused && target_.needs_token()) {
      if (engine_.try_enter_token(thread)) {
        token_held = true;
        refusals_ = 0;
      } else if (++refusals_ < kMaxRefusals) {
        return Drained::Refused;
      }
    }
    const Run run{front.records, front.count, stride_, front.chunks, front.home};
    std::size_t taken = front.count;
    if (gate_ == nullptr) {
      if (!target_.execute(run, true, token_held)) return Drained::Stopped;
    } else {
      const std::int64_t some = target_.take(input_, run, true, token_held);
      if (some < 0) return Drained::Stopped;
      taken = static_cast<std::size_t>(some);
    }
    if (taken > 0) queue_.advance(taken);
    if (taken < front.count) return Drained::Full;
    limit -= std::min(limit, taken);
    thread.visits.add(1);
    if (thread.suspended.load(std::memory_order_relaxed)) break;
  }
  return engine_.is_stopping() ? Drained::Stopped : Drained::Quantum;
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::release_consumer() {
  if ((consumer_.unlock() & Lock::kRelist) != 0) list();
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::list() noexcept {
  if (model_.load(std::memory_order_relaxed) != ThreadingModel::Dedicated) {
    engine_.list(self());
    return;
  }
  wake();
}

// The port was empty before this thread pushed.
template <template <class> class Atom, class World>
void BasicPort<Atom, World>::list_filled() noexcept {
  if (model_.load(std::memory_order_relaxed) != ThreadingModel::Dedicated) {
    engine_.list_filled(World::thread(), self());
  } else {
    wake();
  }
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::wait_listed() noexcept {
  for (int spin = 0; spin < Lock::kSpins; ++spin) {
    if (listed_.exchange(0, std::memory_order_acq_rel) == kListed) return;
    cpu_relax();
  }
  while (listed_.exchange(0, std::memory_order_acq_rel) != kListed) listed_.wait(0, std::memory_order_relaxed);
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::wake() noexcept {
  // An exchange, so that whoever takes the letter has seen what every one who posted it did: the last of them, and halt() before it.
  (void)listed_.exchange(kListed, std::memory_order_release);
  listed_.notify_one();
}

}  // namespace rayelastic
