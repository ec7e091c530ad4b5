// The input port of an operator, through which runs are passed under one of three threading models (P02-P05): manual (the submitting thread
// runs the operator), dynamic (queue, any scheduler thread), dedicated (queue, the port's own thread). Knows no goal.
//
// Here: the invariants of all of it, what it is made of, and how it is listed. port_producer.hpp: what whoever hands a run over does;
// port_visit.hpp: what whoever has popped the port does.
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
//   model_ is written by the producer side alone. Others store the desired model, and the next producer switches to it:
//     to Manual: take consumer_, drain to empty, keep consumer_. From Manual: unlock consumer_. Nothing is lost or reordered,
//     because the producer side can't push meanwhile, being itself the one that switches (M15).
//   Way: what the operator upstream keeps in its own cache line, so that a run down a manual pipeline need not look at ports: the
//     operator behind the port, or null: ask the port. Only the producer side opens it, while the model in force is Manual, and
//     reads the desired model afterwards; the producer side shuts it before it leaves Manual; a thread that stores another desired
//     model shuts it afterwards. All of that is seq_cst, so that either the one reads the new model or the other comes last.
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
//   Stretch: ports in a row that are to become manual do so as one, the last one first (lose_queues): the stack doesn't grow with their
//     number here either. Whoever holds consumer_ of one is the producer side of the next, so it may; but not where that takes a gate
//     besides.
//   Partial: a producer that finds no room has the operator take the run beside whoever runs it, where it can (operator_parts.cpp). What
//     that takes belongs to the producer side while no mark is in the queue, and to the consumer side from when it finds one until it
//     has popped it. So a run overtakes records, never a mark, and the producer side isn't asked to wait there: such a port isn't one
//     that is full, nor one ahead.
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
#include <vector>

#include "rayelastic/assert.hpp"
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
  ~BasicPort() { RE_ASSERT(!producer_.is_locked()); }
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
  void close_loop(std::unique_ptr<Spill> spill) {
    RE_CHECK(gate_ != nullptr && spill_ == nullptr);
    spill_ = std::move(spill);
  }
  // Without a gate: its operator can be run in part, beside whoever runs it.
  void allow_partial() noexcept { partial_ = true; }

  // --- producer side. False: stop. writable: the records are the callee's to overwrite.
  [[nodiscard]] bool accept(const Run& run, bool writable) {
    if (Target* target = manual_target(); target != nullptr) [[likely]]
      return target->execute(run, writable, false);
    return shared_ ? accept_shared(run, writable) : accept_owned(run, writable);
  }
  [[nodiscard]] bool accept(Mark mark);
  // The operator behind the port if the producer may run it right away, without any lock; null otherwise.
  [[nodiscard]] Target* manual_target() noexcept {
    return desired_.load(std::memory_order_relaxed) == ThreadingModel::Manual &&
                   model_.load(std::memory_order_relaxed) == ThreadingModel::Manual
               ? direct_
               : nullptr;
  }
  // The same after a switch to the desired model, so that a port that has just lost its queue adds no nested call. Leaves it in the way for the
  // next time. Null also: stop.
  [[nodiscard]] Target* open_way();
  // Where other producers may come: the operator if it is manual and they are kept away, until `unlock_way`; null otherwise. `before`: a port
  // that is locked so already, and stays it.
  [[nodiscard]] Target* lock_way(typename World::Port*& before) noexcept;
  // All that are locked so, the last one first.
  static void unlock_way(typename World::Port* last) noexcept;

  // --- a worker that has popped the port, or the port's own thread. Drains a bounded quantum; passes the responsibility on.
  void visit();
  [[nodiscard]] bool park(typename World::Port* port) noexcept;
  // The ports that a visit of this thread has filled, one after the other, until there is none.
  static void follow(Thread& thread);

  // --- any thread
  // A producer would have to wait. Never for a port with a gate: there a producer may wait for more than room; nor for one whose operator
  // it can run in part.
  [[nodiscard]] bool is_full() const noexcept { return gate_ == nullptr && !partial_ && free_slots() < quantum(); }
  void switch_to(ThreadingModel model) noexcept {
    desired_.store(model, std::memory_order_seq_cst);
    if (model != ThreadingModel::Manual) shut_way();
  }
  [[nodiscard]] ThreadingModel model() const noexcept;
  [[nodiscard]] bool is_switching() const noexcept { return model() != desired_.load(std::memory_order_relaxed); }
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
  enum class Taken { Yes, No, Stopped };
  [[nodiscard]] Taken take_partial(const Run& run);
  [[nodiscard]] bool make_room(std::size_t records);
  [[nodiscard]] bool follow_desired();
  [[nodiscard]] bool lose_queues();
  [[nodiscard]] typename World::Port* next_to_lose() noexcept;
  [[nodiscard]] bool lose_queue();
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
  [[nodiscard]] bool try_to_help();
  [[nodiscard]] static bool turn_back(std::vector<typename World::Port*>& way, std::size_t start);
  [[nodiscard]] bool lock_to_help();
  [[nodiscard]] Drained drain_locked(typename World::Port*& blocking);
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
  typename World::Port* locked_before_ = nullptr;  // under producer_: lock_way()
  Target* direct_ = nullptr;                       // the operator, if there is one edge and no gate: who runs the producer may run it
  bool shared_ = false;                            // the producer side needs its lock
  bool has_edge_ = false;
  bool partial_ = false;  // its operator takes runs beside whoever runs it
  Atom<ThreadingModel> desired_;
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
      desired_(model),
      model_(model),
      deep_copy_(engine.options.deep_copy && target.schema(input)->has_text() ? std::make_unique<DeepCopy>(target.schema(input)) : nullptr),
      stride_(target.schema(input)->record_size()),
      queue_(stride_, ring_records(engine.options, stride_), engine.options.queue_bytes),
      meter_(engine.options.queue_work / WorkMeter::kRuns, std::max<std::size_t>(queue_.capacity() / WorkMeter::kRuns, 1)) {
  RE_CHECK(queue_.limit() == queue_.capacity());
  if (model == ThreadingModel::Manual) {
    (void)consumer_.try_lock();  // the producer side's from the start
  } else {
    engine_.switched(ThreadingModel::Manual, model);
  }
}

template <template <class> class Atom, class World>
ThreadingModel BasicPort<Atom, World>::model() const noexcept {
  return (gate_ == nullptr ? target_.is_final() : gate_->is_closed(input_)) ? desired_.load(std::memory_order_relaxed)
                                                                            : model_.load(std::memory_order_relaxed);
}

template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::open_way() -> Target* {
  if (direct_ != nullptr && !follow_desired()) return nullptr;
  Target* const target = manual_target();
  if (target == nullptr || way_ == nullptr) return target;
  way_->store(target, std::memory_order_seq_cst);
  if (desired_.load(std::memory_order_seq_cst) != ThreadingModel::Manual) shut_way();
  return target;
}

template <template <class> class Atom, class World>
auto BasicPort<Atom, World>::lock_way(typename World::Port*& before) noexcept -> Target* {
  if (!shared_ || gate_ != nullptr || spill_ != nullptr || !producer_.try_lock()) return nullptr;
  if (desired_.load(std::memory_order_relaxed) != ThreadingModel::Manual ||
      model_.load(std::memory_order_relaxed) != ThreadingModel::Manual) {
    (void)producer_.unlock();
    return nullptr;
  }
  locked_before_ = std::exchange(before, self());
  return &target_;
}

template <template <class> class Atom, class World>
void BasicPort<Atom, World>::unlock_way(typename World::Port* last) noexcept {
  while (last != nullptr) {
    auto* const port = std::exchange(last, last->locked_before_);
    (void)port->producer_.unlock();
  }
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

#include "queue/port_producer.hpp"
#include "queue/port_visit.hpp"
