// The input port of an operator: where a run is handed over, under one of three threading models (P02-P05): manual (the submitting
// thread runs the operator), dynamic (queue, any scheduler thread), dedicated (queue, the port's own thread). Knows no goal.
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
//   Responsibility: PortQueue::announce() true obliges the caller to list() the port. From then on exactly one of these has it: the
//     free list, the worker that popped it, the token's parked list, the dedicated thread's mailbox, or a kRelist note in consumer_.
//   Deadlock: locks are taken in the order of the graph (producer_ and consumer_ of a port before those of ports downstream), so
//     the last port always moves. The token is never held while a lock is waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "deep_copy.hpp"
#include "engine.hpp"
#include "operator_context.hpp"
#include "rayelastic/flag_lock.hpp"
#include "rayelastic/operator.hpp"
#include "rayelastic/port_queue.hpp"

namespace rayelastic {

class Port {
 public:
  Port(OperatorContext& target, Engine& engine, ThreadingModel model);

  void add_edge() { ++edges_; }  // before the start

  // --- producer side. False: stop. writable: the records are the callee's to overwrite.
  [[nodiscard]] bool accept(const Run& run, bool writable) {
    if (OperatorContext* target = manual_target(); target != nullptr) [[likely]]
      return target->execute(run, writable, false);
    return edges_ == 1 ? accept_owned(run, writable) : accept_shared(run, writable);
  }
  [[nodiscard]] bool accept(Mark mark);
  // The operator behind the port if the producer may run it right away, without any lock; null otherwise.
  [[nodiscard]] OperatorContext* manual_target() noexcept {
    return edges_ == 1 && wish_.load(std::memory_order_relaxed) == ThreadingModel::Manual &&
                   model_.load(std::memory_order_relaxed) == ThreadingModel::Manual
               ? &target_
               : nullptr;
  }

  // --- a worker that has popped the port, or the port's own thread. Drains a bounded quantum; passes the responsibility on.
  void visit();

  // --- any thread
  void wish(ThreadingModel model) noexcept { wish_.store(model, std::memory_order_relaxed); }
  [[nodiscard]] ThreadingModel model() const noexcept;
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return queue_.capacity(); }
  // The dedicated thread: sleeps until the port is listed, or until the engine stops.
  void wait_listed() noexcept;
  void wake() noexcept;

 private:
  enum class Drained { Quantum, Refused, Stopped };

  [[nodiscard]] bool accept_owned(const Run& run, bool writable);
  [[nodiscard]] bool accept_shared(const Run& run, bool writable);
  [[nodiscard]] bool accept_owned(Mark mark);
  [[nodiscard]] bool enqueue(Run run);
  [[nodiscard]] bool enqueue(Mark mark);
  [[nodiscard]] bool make_room(std::size_t records);
  [[nodiscard]] bool follow_wish();
  [[nodiscard]] Drained drain(std::size_t limit, bool may_be_refused);
  void release_consumer();
  void list() noexcept;

  OperatorContext& target_;
  Engine& engine_;
  std::size_t edges_ = 0;
  std::atomic<ThreadingModel> wish_;
  std::atomic<ThreadingModel> model_;
  std::unique_ptr<DeepCopy> deep_copy_;  // producer side; null unless asked for
  alignas(64) FlagLock<> producer_;
  alignas(64) FlagLock<> consumer_;
  unsigned refusals_ = 0;                             // consumer side: how often in a row the token wasn't to be had
  alignas(64) std::atomic<std::uint32_t> listed_{0};  // mailbox of the dedicated thread
  PortQueue<> queue_;
  const std::size_t quantum_;  // records of one visit
};

}  // namespace rayelastic
