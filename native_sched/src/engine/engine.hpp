// The shared parts of one scheduler's ports, operators and workers: the free list, the idle workers, the token, and how it ends. Knows no
// operator, no policy.
//
// `stopping` is the only word that every hop reads. It has a cache line of its own and is written once, so the line stays shared by
// all cores (P20, P21: the paper has a copy per scheduler thread and this for operator threads).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/engine_thread.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/engine/token.hpp"
#include "rayelastic/queue/free_ports.hpp"
#include "rayelastic/queue/notifier.hpp"

namespace rayelastic {

class Port;

class Engine {
 public:
  // What the scheduler wants to hear; all of it rare.
  struct Listener {
    std::function<void(Failure)> failed;
    std::function<void()> terminal_final;  // an operator without consumers has seen its last tuple
    std::function<void()> changed;         // something that apply() may wait for is in force now
    std::function<void()> waiting;         // a thread begins to wait for others, or has waited: see tell_waiting
  };

  Engine(const SchedulerOptions& options, std::size_t ports, Listener listener)
      : options(options), free_ports(ports), parked_ports(ports), token(options.hooks), listener(std::move(listener)) {}

  [[nodiscard]] bool is_stopping() const noexcept { return stopping.load(std::memory_order_relaxed); }

  void list(Port* port) noexcept {
    free_ports.push(port);
    idle.notify_one();
  }
  // A port that was empty has been filled. Goes to the thread itself, if that is about to look for work: depth first, so that records
  // meet the next operator while they are in the cache, and a tuple alone wakes nobody on its way. (The paper's free list is first in,
  // first out for all, P15: with 100 queues of one operation each that is 4 times slower.)
  void list_filled(EngineThread& thread, Port* port) noexcept {
    if (thread.keeps_next) port = thread.next.exchange(port, std::memory_order_acq_rel);
    if (port != nullptr) list(port);
  }
  // What `thread` has kept for itself, if it is still there.
  [[nodiscard]] static Port* take_next(EngineThread& thread) noexcept {
    if (thread.next.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return thread.next.exchange(nullptr, std::memory_order_acq_rel);
  }
  // For a thread that won't look for work soon, or isn't getting there.
  void publish_next(EngineThread& thread) noexcept {
    if (Port* port = take_next(thread); port != nullptr) list(port);
  }

  [[nodiscard]] bool try_enter_token(EngineThread& thread) {
    if (token.try_enter(&thread.user)) return true;
    thread.token_refusals.add(1);
    return false;
  }
  // Time in the token's queue is not operator cost: it is counted apart (architecture section 4).
  // beside: Python without the token, for what only waits there. The interpreter's own lock says who runs.
  void enter_token(EngineThread& thread, bool beside = false) {
    const Doing waiting(thread, EngineThread::kToken);
    const auto start = std::chrono::steady_clock::now();
    beside ? token.enter_beside(&thread.user) : token.enter(&thread.user);
    const auto waited = std::chrono::steady_clock::now() - start;
    thread.token_wait_ns.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(waited).count()));
  }
  void leave_token(EngineThread& thread, bool beside = false) {
    if (beside) return token.leave_beside(&thread.user);
    if ((token.leave(&thread.user) & FlagLock<>::kRelist) != 0) list_parked();
  }
  // For the thread that is responsible for `port` and was refused the token: whoever leaves the token lists the port.
  void park_for_token(Port* port) noexcept {
    parked_ports.push(port);
    if (!token.ask_relist()) list_parked();
  }

  // Where operators may be short of records of one port while those of another fill up, no thread must be missing that could bring
  // them (P33): the scheduler replaces threads that wait. Elsewhere whoever waits does so for one that works, and it needn't know.
  void tell_waiting() {
    if (replaces_waiting.load(std::memory_order_relaxed)) listener.waiting();
  }

  // From now on threads that wait are replaced, those that wait already too.
  void replace_waiting() {
    if (!replaces_waiting.exchange(true, std::memory_order_relaxed)) listener.waiting();
  }

  void switched(ThreadingModel from, ThreadingModel to) noexcept {
    if (from == ThreadingModel::Manual) queues.fetch_add(1, std::memory_order_relaxed);
    RE_ASSERT(to != ThreadingModel::Manual || queues.load(std::memory_order_relaxed) > 0);
    if (to == ThreadingModel::Manual) queues.fetch_sub(1, std::memory_order_relaxed);
    switches.fetch_add(1, std::memory_order_relaxed);
  }

  const SchedulerOptions options;
  bool takes_commands = false;             // an operator does (Scheduler::poke), as it was built
  bool begins_with_one = false;            // record: the first run is timed, as it may take minutes
  std::atomic<std::uint32_t> switches{0};  // of models: which ports have queues has changed
  std::atomic<std::size_t> queues{0};      // ports that have one
  std::atomic<bool> replaces_waiting{false};
  std::atomic<std::int64_t> abandoned{0};  // marks of epochs up to this one mean nothing any more
  std::atomic<bool> finishing{true};  // operators get their call at the end of the input; false: only sinks, the others go on elsewhere
  FreePorts<Port> free_ports;
  FreePorts<Port> parked_ports;  // that wait for the token
  Notifier<> idle;
  Token token;
  const Listener listener;
  alignas(64) std::atomic<bool> stopping{false};  // everything unwinds, nothing more is submitted
  alignas(64) char end_of_line[1] = {};

 private:
  // A pop that fails because another thread is in the middle of its push loses nothing: that thread asks after its push.
  void list_parked() noexcept {
    while (Port* port = parked_ports.pop()) list(port);
  }
};

}  // namespace rayelastic
