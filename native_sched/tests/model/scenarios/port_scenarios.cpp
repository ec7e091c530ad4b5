// The hand-over protocol of Port: producers, workers, the dedicated thread and whoever applies another model, on the real port, queue,
// locks, free list and notifier. Nothing may be lost, doubled or reordered, nobody may enter the operator beside another, and all come
// to their end.
#include <memory>

#include "scenarios/port_world.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

namespace {

constexpr auto kManual = ThreadingModel::Manual;
constexpr auto kDynamic = ThreadingModel::Dynamic;
constexpr auto kDedicated = ThreadingModel::Dedicated;

// Threads in this order: producers, workers, the dedicated thread, one that applies models or suspends a worker.
struct Cast {
  int producers = 1;
  int workers = 1;
  bool dedicated = false;
  bool applies = false;
  bool suspends = false;  // and publishes what the first worker keeps for itself, as the scheduler's own thread does
  ThreadingModel at_first = kDynamic;
  int switches = 0;        // by the one that applies, or by the first producer between its records
  bool any_model = false;  // which is a choice, as is how many records may wait; else two models in turn
  bool chain = false;      // a second operator downstream, always dynamic
  bool stretch = false;    // which gets the same models
  int records = 4;         // each producer's; the second and the third are one run
  bool in_parts = false;   // the producer may run the operator in part; in the middle it sends a mark
};

template <Cast kCast>
class Switch final : public Scenario {
 public:
  Switch() : last_(engine_, kCast.producers, nullptr), first_(engine_, kCast.producers, make_second()) {
    engine_.ports[0] = std::make_unique<ModelPort>(first_, engine_, kCast.at_first);
    if (kCast.in_parts) port().allow_partial();
    for (int producer = 0; producer < kCast.producers; ++producer) port().add_edge();
    if (kCast.producers == 1) port().keep_way(way_);
    ModelEngine::current = &engine_;
    ModelWorld::WorkMeter::changes_limit = kCast.any_model;
  }
  [[nodiscard]] int threads() const override {
    return kDedicatedThread + (kCast.dedicated ? 1 : 0) + (kCast.applies || kCast.suspends ? 1 : 0);
  }
  void run(int thread) override {
    if (thread < kCast.producers) {
      produce(thread);
    } else if (thread < kDedicatedThread) {
      work(kCast.suspends && thread == kCast.producers);
    } else if (kCast.dedicated && thread == kDedicatedThread) {
      serve();
    } else if (kCast.applies) {
      for (int step = 0; step < kCast.switches; ++step) switch_model();
    } else {
      suspend();
    }
  }
  void finish() override {
    first_.check(kCast.records);
    if (kCast.chain) last_.check(kCast.records);
    require(way_.load(std::memory_order_seq_cst) == nullptr || port().model() == kManual,
            "a way is open although another model is desired");
    require(kCast.applies || kCast.any_model || engine_.changes == kCast.switches * (kCast.stretch ? 2 : 1), "a switch isn't carried out");
  }

 private:
  static constexpr int kDedicatedThread = kCast.producers + kCast.workers;

  ModelPort* make_second() {
    Lock::made = 0;
    Target::in_parts = kCast.in_parts;
    if (!kCast.chain) return nullptr;
    engine_.ports[1] = std::make_unique<ModelPort>(last_, engine_, kDynamic);
    engine_.ports[1]->add_edge();
    return engine_.ports[1].get();
  }
  ModelPort& port() { return *engine_.ports[0]; }

  void produce(int stream) {
    for (int sequence = 0; sequence < kCast.records;) {
      const int count = sequence == 1 && kCast.records > 2 ? 2 : 1;
      Record run[2];
      for (int index = 0; index < count; ++index) run[index] = {stream, sequence + index};
      const auto ok = hand_over(Run{reinterpret_cast<const std::byte*>(run), static_cast<std::size_t>(count), sizeof(Record)});
      require(ok, "a port refuses a run although nothing stops");
      sequence += count;
      if (kCast.in_parts && sequence == kCast.records / 2 + 1)
        require(port().accept(Mark{MarkKind::Flush, sequence}), "a port refuses a mark although nothing stops");
      if (stream == 0 && !kCast.applies && switched_ < kCast.switches) switch_model();
    }
    require(port().accept(Mark{MarkKind::Final, 0}), "a port refuses a mark although nothing stops");
  }

  // OperatorContext::step, where a single producer hands over its only run; or as submit does.
  bool hand_over(const Run& run) {
    if (kCast.producers == 1) {
      Target* target = way_.load(std::memory_order_relaxed);
      if (target == nullptr) target = port().open_way();
      if (target != nullptr) return target->execute(run, false, false);
    }
    return port().accept(run, false);
  }

  void switch_model() {
    if (kCast.chain && kCast.any_model && Execution::the().choose(2) == 1) {
      engine_.ports[1]->switch_to(Execution::the().choose(2) == 1 ? kManual : kDynamic);
      return;
    }
    const ThreadingModel now = switched_++ % 2 == 0 ? kCast.at_first : other();
    const ThreadingModel desired = kCast.any_model  ? static_cast<ThreadingModel>(Execution::the().choose(kCast.dedicated ? 3 : 2))
                                   : now == other() ? kCast.at_first
                                                    : other();
    port().switch_to(desired);
    if (kCast.stretch) engine_.ports[1]->switch_to(desired);
  }
  static constexpr ThreadingModel other() {
    if (kCast.dedicated) return kCast.at_first == kDedicated ? kDynamic : kDedicated;
    return kCast.at_first == kManual ? kDynamic : kManual;
  }

  // Worker::run
  void work(bool suspendable) {
    ModelWorld::thread().keeps_next = true;
    while (!engine_.stopping.load(std::memory_order_relaxed)) {
      if (suspendable && engine_.suspended.load(std::memory_order_relaxed)) {
        park();
      } else if (ModelPort* port = engine_.pop(); port != nullptr) {
        port->visit();
        ModelPort::follow(ModelWorld::thread());
      } else {
        wait_for_work(suspendable);
      }
    }
  }
  void wait_for_work(bool suspendable) {
    if (!engine_.free_ports.looks_empty()) {
      Machine<Atom>::relax();
      return;
    }
    engine_.idle.prepare();
    const auto has_reason = [&] {
      return !engine_.free_ports.looks_empty() || engine_.stopping.load(std::memory_order_seq_cst) ||
             (suspendable && engine_.suspended.load(std::memory_order_seq_cst));
    };
    if (fault != Fault::WaiterWithoutSecondLook && has_reason()) {
      engine_.idle.cancel();
    } else {
      engine_.idle.wait([&] {
        return (suspendable && engine_.suspended.load(std::memory_order_seq_cst)) || engine_.stopping.load(std::memory_order_seq_cst);
      });
    }
  }
  void park() {
    if (fault != Fault::SuspendedKeepsNotification && !engine_.free_ports.looks_empty()) (void)engine_.idle.notify_one();
    while (engine_.suspended.load(std::memory_order_seq_cst) && !engine_.stopping.load(std::memory_order_seq_cst))
      engine_.suspended.wait(true, std::memory_order_relaxed);
  }
  // Worker::suspend; the worker is woken when all is over.
  void suspend() {
    if (engine_.is_stopping()) return;
    engine_.suspended.store(true, std::memory_order_seq_cst);
    engine_.idle.interrupt();
    engine_.publish_next(engine_.threads[kCast.producers]);
    if (engine_.stopping.load(std::memory_order_seq_cst)) {  // halt() may have been before; the scheduler's mutex orders the two
      engine_.suspended.store(false, std::memory_order_seq_cst);
      engine_.suspended.notify_all();
    }
  }
  // OperatorThread of a port
  void serve() {
    while (!engine_.is_stopping()) {
      port().wait_listed();
      if (!engine_.is_stopping()) port().visit();
    }
  }

  Atom<Target*> way_{nullptr};
  ModelEngine engine_;
  Target last_;
  Target first_;
  int switched_ = 0;
};

template <Cast kCast>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Switch<kCast>>();
}

}  // namespace

std::vector<Case> port_cases() {
  constexpr Bounds kTwo = {.preemptions = 2, .stale = 1};
  constexpr Bounds kThree = {.preemptions = 2, .stale = 1};
  return {
      {"Port", "producer and worker, dynamic", make<Cast{}>, true, kTwo, {.preemptions = 3, .stale = 1}},
      {"Port", "to manual and back", make<Cast{.switches = 2}>, true, kTwo, {.preemptions = 3, .stale = 2}},
      {"Port", "from manual and back", make<Cast{.at_first = kManual, .switches = 2}>, true, kTwo, {.preemptions = 3, .stale = 2}},
      {"Port", "producer, worker, one that applies manual", make<Cast{.applies = true, .switches = 1, .records = 3}>, true, kThree},
      {"Port", "producer, worker, one that applies dynamic", make<Cast{.applies = true, .at_first = kManual, .switches = 1, .records = 3}>,
       true, kThree},
      {"Port", "union of 2, worker", make<Cast{.producers = 2, .records = 1}>, true, {.preemptions = 1, .stale = 1}, kThree},
      {"Port",
       "dedicated and back, with a worker",
       make<Cast{.dedicated = true, .at_first = kDedicated, .switches = 2, .records = 3}>,
       true,
       {.preemptions = 2, .stale = 0},
       kThree},
      {"Port",
       "producer runs it in part beside a worker",
       make<Cast{.records = 7, .in_parts = true}>,
       true,
       {.preemptions = 2, .stale = 1},
       {.preemptions = 3, .stale = 1}},
      {"Port", "in parts, to manual and back", make<Cast{.switches = 2, .records = 7, .in_parts = true}>, false},
      {"Port", "2 ports, a worker", make<Cast{.chain = true, .records = 2}>, true, {.preemptions = 1, .stale = 1}, kThree},
      {"Port", "2 ports, the second full", make<Cast{.chain = true, .records = 6}>, true, {.preemptions = 1, .stale = 0}, kThree},
      {"Port",
       "2 ports in a row, to manual and back",
       make<Cast{.switches = 2, .chain = true, .stretch = true, .records = 3}>,
       true,
       {.preemptions = 1, .stale = 1},
       kThree},
      {"Port", "2 ports in a row, one that applies manual",
       make<Cast{.workers = 2, .applies = true, .switches = 1, .chain = true, .stretch = true, .records = 4}>, false},
      {"Port", "3 threads, 2 ports, the second full", make<Cast{.workers = 2, .chain = true, .records = 6}>, false},
      {"Port", "4 threads, 2 ports, any models",
       make<Cast{.workers = 2, .applies = true, .switches = 2, .any_model = true, .chain = true, .records = 6}>, false},
      {"Port", "4 threads, 2 ports, any models, own thread",
       make<Cast{.dedicated = true, .applies = true, .switches = 3, .any_model = true, .chain = true, .records = 6}>, false},
      {"Port", "4 threads, 2 ports, 2 workers", make<Cast{.workers = 2, .suspends = true, .switches = 1, .chain = true}>, false},
      {"Port", "3 threads, any models", make<Cast{.applies = true, .switches = 3, .any_model = true}>, false},
      {"Port", "4 threads, any models, own thread", make<Cast{.dedicated = true, .applies = true, .switches = 3, .any_model = true}>,
       false},
      {"Port", "4 threads, union of 2, any models", make<Cast{.producers = 2, .applies = true, .switches = 3, .any_model = true}>, false},
      {"Port", "4 threads, 2 workers, one suspended", make<Cast{.workers = 2, .suspends = true, .switches = 2}>, false},
  };
}

}  // namespace rayelastic::model
