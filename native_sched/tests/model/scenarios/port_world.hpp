// What a port lives among, under the checker: operators that notice what is wrong, an engine of the real free list and notifier, and
// workers that do what src/worker.cpp and src/engine.hpp do. Change these with those.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "checker/atom.hpp"
#include "operator/deep_copy.hpp"
#include "queue/basic_port.hpp"
#include "rayelastic/queue/free_ports.hpp"
#include "rayelastic/queue/notifier.hpp"
#include "scenarios/faulty.hpp"

namespace rayelastic::model {

class ModelPort;
struct ModelEngine;

struct Record {
  std::int32_t stream = 0;
  std::int32_t sequence = 0;
};

// EngineThread as far as a port uses it.
struct ModelThread {
  struct Count {
    void add(std::uint64_t) {}
  };
  Count reschedules;
  Count sleeps;
  Count visits;
  bool is_suspended = false;
  struct {
    [[nodiscard]] bool load(std::memory_order) const { return of->is_suspended; }
    const ModelThread* of;
  } suspended{this};
  Atom<ModelPort*> next{nullptr};
  bool keeps_next = false;
  std::vector<ModelPort*> way;
};

// All that an operator has is plain memory: two threads in it at once, or one after the other without a lock between, are a race.
class Target {
 public:
  Target(ModelEngine& engine, int streams, ModelPort* downstream) : engine_(engine), streams_(streams), downstream_(downstream) {}

  [[nodiscard]] bool execute(const Run& run, bool, bool);
  [[nodiscard]] bool accept(Mark mark);
  [[nodiscard]] std::int64_t take_partial(const Run& run);
  [[nodiscard]] bool needs_token() const noexcept { return false; }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema(std::size_t) const {
    static const auto record = std::make_shared<const Schema>(std::vector<Field>{{.name = "record", .type = Type::Int64, .format = "l"}});
    return record;
  }
  [[nodiscard]] std::int64_t take(std::size_t, const Run&, bool, bool) { return -1; }
  [[nodiscard]] bool take(std::size_t, Mark) { return false; }
  [[nodiscard]] bool widen(std::size_t) { return false; }
  [[nodiscard]] ModelPort* next_port(bool) const noexcept { return downstream_; }
  [[nodiscard]] bool is_final() const { return final_.load(std::memory_order_acquire); }
  static inline bool in_parts = false;  // its producer may run it in part
  // After the end.
  void check(int records_each) const {
    require(finals_ == streams_, "a final mark is lost");
    for (int stream = 0; stream < streams_; ++stream) require(next_[static_cast<std::size_t>(stream)] == records_each, "a record is lost");
  }

 private:
  void touch() { Machine<Atom>::writes(&finals_, sizeof finals_); }

  ModelEngine& engine_;
  const int streams_;
  ModelPort* const downstream_;  // null: a sink
  alignas(8) int finals_ = 0;
  std::array<std::int32_t, kThreads> next_{};
  // Of an operator in parts, which has one stream: records of the other part, since the last mark, and whether there are any.
  alignas(8) std::int32_t beside_ = 0;
  Atom<bool> final_{false};
};

// Engine and the part of Scheduler that ends it.
struct ModelEngine {
  struct Listener {
    std::function<void()> changed;
  };

  ModelEngine() { options.queue_records = 2; }

  [[nodiscard]] bool is_stopping() const noexcept { return stopping.load(std::memory_order_relaxed); }
  void list(ModelPort* port) noexcept;
  void list_filled(ModelThread& thread, ModelPort* port) noexcept {
    if (thread.keeps_next) port = thread.next.exchange(port, std::memory_order_acq_rel);
    if (port != nullptr) list(port);
  }
  [[nodiscard]] static ModelPort* take_next(ModelThread& thread) noexcept {
    if (thread.next.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return thread.next.exchange(nullptr, std::memory_order_acq_rel);
  }
  void publish_next(ModelThread& thread) noexcept {
    if (ModelPort* port = take_next(thread); port != nullptr) list(port);
  }
  [[nodiscard]] ModelPort* pop();
  [[nodiscard]] bool try_enter_token(ModelThread&) { return false; }
  void park_for_token(ModelPort*) {}
  void halt();

  SchedulerOptions options;
  void switched(ThreadingModel, ThreadingModel) { switches.fetch_add(1, std::memory_order_relaxed); }
  Atom<std::uint32_t> switches{0};
  int changes = 0;  // written by the producer side alone
  Listener listener{[this] { ++changes; }};
  std::array<ModelThread, kThreads> threads;
  FreePorts<ModelPort, Atom> free_ports{2};
  Notifier<Atom> idle;
  Atom<bool> stopping{false};
  std::array<std::unique_ptr<ModelPort>, 2> ports;  // the second is downstream of the first, or null
  Atom<bool> suspended{false};                      // one worker is

  static inline ModelEngine* current = nullptr;
};

struct ModelWorld {
  using Port = ModelPort;
  using Target = model::Target;
  using Engine = ModelEngine;
  using Queue = model::Queue;
  using Lock = model::Lock;
  using DeepCopy = rayelastic::DeepCopy;

  using Thread = ModelThread;
  // Any number of records may turn out to be work enough, if an execution is about that.
  struct WorkMeter {
    static constexpr std::size_t kRuns = 1;
    WorkMeter(std::chrono::nanoseconds, std::size_t) {}
    void forget() {}
    std::size_t begin_with_one(std::size_t capacity) { return changes_limit ? waiting(capacity) : capacity; }
    bool begin(ModelThread&) { return changes_limit; }
    [[nodiscard]] bool end(ModelThread&, std::size_t) { return changes_limit; }
    [[nodiscard]] std::size_t waiting(std::size_t capacity) { return 1 + Execution::the().choose(static_cast<unsigned>(capacity)); }
    static inline bool changes_limit = false;
  };
  struct NotOwnWork {
    explicit NotOwnWork(ModelThread&) {}
  };
  struct Waiting {
    Waiting(ModelEngine& engine, ModelThread& thread, bool) { engine.publish_next(thread); }
  };
  // Ports with a gate or a spill aren't modelled; test_ports runs them.
  struct Gate {
    [[nodiscard]] bool try_enter() { return true; }
    void enter() {}
    void leave() {}
    void park(ModelPort*) {}
    void stall(std::size_t, ModelPort*) {}
    [[nodiscard]] std::uint32_t expect_room(std::size_t) { return 0; }
    void wait_for_room(std::size_t, std::uint32_t) {}
    [[nodiscard]] bool is_closed(std::size_t) const { return false; }
    void burden() {}
    void relieve() {}
  };
  struct Spill {
    [[nodiscard]] bool empty() const { return true; }
    [[nodiscard]] bool append(const Run&) { return true; }
    void append(Mark) {}
    void move_to(Queue&) {}
  };

  [[nodiscard]] static ModelThread& thread() noexcept {
    return ModelEngine::current->threads[static_cast<std::size_t>(Execution::the().running())];
  }
};

class ModelPort final : public BasicPort<Atom, ModelWorld> {
 public:
  using BasicPort::BasicPort;
  int listed = 0;  // in the free list
};

inline bool Target::execute(const Run& run, bool, bool) {
  touch();
  Machine<Atom>::reads(run.records, run.count * sizeof(Record));
  for (std::size_t index = 0; index < run.count; ++index) {
    Record record;
    std::memcpy(&record, run.records + index * sizeof record, sizeof record);
    require(record.stream >= 0 && record.stream < streams_, "a record that nobody wrote");
    const std::int32_t expected = next_[static_cast<std::size_t>(record.stream)]++;
    require(in_parts || record.sequence == expected, "a record is lost, doubled or out of order");
  }
  return downstream_ == nullptr || downstream_->accept(run, false);
}

inline std::int64_t Target::take_partial(const Run& run) {
  Machine<Atom>::writes(&beside_, sizeof beside_);
  beside_ += static_cast<std::int32_t>(run.count);
  return static_cast<std::int64_t>(run.count);
}

inline bool Target::accept(Mark mark) {
  touch();
  if (in_parts) {
    Machine<Atom>::writes(&beside_, sizeof beside_);
    next_[0] += std::exchange(beside_, 0);
  }
  if (mark.kind == MarkKind::Flush) {
    require(next_[0] == mark.value, "a mark isn't where it was sent");
    return true;
  }
  require(mark.kind == MarkKind::Final, "a mark has changed");
  if (++finals_ < streams_) return true;
  if (downstream_ != nullptr && !downstream_->accept(mark)) return false;
  final_.store(true, std::memory_order_release);
  if (downstream_ == nullptr) engine_.halt();
  return true;
}

inline void ModelEngine::list(ModelPort* port) noexcept {
  require(port->listed++ == 0, "a port is listed twice");
  free_ports.push(port);
  (void)idle.notify_one();
}

inline ModelPort* ModelEngine::pop() {
  ModelPort* popped = free_ports.pop();
  if (popped != nullptr) --popped->listed;
  return popped;
}

inline void ModelEngine::halt() {
  stopping.store(true, std::memory_order_seq_cst);
  suspended.store(false, std::memory_order_seq_cst);
  suspended.notify_all();
  for (const auto& port : ports) {
    if (port != nullptr) port->wake();
  }
  idle.notify_all();
}

}  // namespace rayelastic::model
