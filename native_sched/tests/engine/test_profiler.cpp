// What the profiler says of operators and threads (M02, E9), and that a thread that stays in user code is noticed and replaced
// (P23, P25).
#include <time.h>

#include <cmath>
#include <condition_variable>
#include <mutex>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

using namespace std::chrono_literals;

double thread_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct Busy : Guarded {
  double seconds = 0;  // of CPU time, per row
};

TestOperator busy(std::string name, double seconds) {
  TestOperator spec = pass(std::move(name));
  auto state = std::make_shared<Busy>();
  state->seconds = seconds;
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    const double end = thread_cpu_seconds() + static_cast<Busy*>(static_cast<Guarded*>(opaque))->seconds * static_cast<double>(n);
    while (thread_cpu_seconds() < end) {
    }
    const auto* from = static_cast<const Row*>(in);
    for (std::int64_t index = 0; index < n; ++index) static_cast<Row*>(out)[index] = from[index];
    return n;
  };
  return spec;
}

// Runs until somebody opens it.
struct Gate : Guarded {
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};

  void await_entry() { entered.wait(false); }
  void let_go() {
    open = true;
    open.notify_all();
  }
};

TestOperator gated(std::shared_ptr<Gate> gate) {
  TestOperator spec = sink("gate");
  spec.state = std::shared_ptr<Guarded>(std::move(gate));
  spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Gate*>(static_cast<Guarded*>(opaque));
    self.entered = true;
    self.entered.notify_all();
    self.open.wait(false);
    return 0;
  };
  spec.model = ThreadingModel::Dynamic;
  return spec;
}

}  // namespace

TEST(cost_goes_to_the_operator_that_ran) {
  for (const ThreadingModel model : {ThreadingModel::Manual, ThreadingModel::Dynamic}) {
    Rig rig({.profile_period = 1ms});
    OperatorId previous = rig.add(source(0, -1));
    for (const double cost : {2e-6, 6e-6, 0.0}) {
      TestOperator spec = cost > 0 ? busy("busy", cost) : sink();
      spec.model = model;
      const OperatorId id = rig.add(spec);
      rig.scheduler.connect(previous, id);
      previous = id;
    }
    rig.scheduler.start({.thread_count = 1});
    Sample sample;
    CHECK(eventually([&] {
      sample = rig.scheduler.sample();
      return sample.operators[2].cpu_ns > 300'000'000 && sample.ticks > 800;
    }));
    rig.scheduler.stop(false);
    const double light = static_cast<double>(sample.operators[1].cpu_ns);
    const double heavy = static_cast<double>(sample.operators[2].cpu_ns);
    CHECK(heavy / (light + heavy) > 0.6 && heavy / (light + heavy) < 0.9);
    CHECK(static_cast<double>(sample.operators[3].cpu_ns) < 0.1 * heavy);
    CHECK(sample.operators[2].waited_ns < sample.operators[2].time_ns / 10);  // waiting for a CPU is no sleep
    CHECK(sample.thread_ns >= sample.scheduler_ns && sample.scheduler_ns >= sample.idle_ns && sample.ticks > 0);
  }
}

TEST(an_operator_that_waits_costs_nothing_and_an_idle_thread_is_idle) {
  auto gate = std::make_shared<Gate>();
  Rig rig({.profile_period = 1ms});
  const OperatorId from = rig.add(source(0, 1));
  const OperatorId to = rig.add(gated(gate));
  rig.scheduler.connect(from, to);
  rig.scheduler.start({.thread_count = 2});
  gate->await_entry();
  const std::uint64_t before = rig.scheduler.sample().ticks;
  Sample sample;
  CHECK(eventually([&] {
    sample = rig.scheduler.sample();
    return sample.ticks > before + 100;
  }));
  const OperatorSample& waits = sample.operators[to];
  CHECK(static_cast<double>(waits.cpu_ns) < 0.2 * static_cast<double>(sample.scheduler_ns));
  CHECK(waits.waited_ns <= waits.time_ns);
  CHECK(static_cast<double>(waits.waited_ns) > 0.8 * static_cast<double>(waits.time_ns));
  CHECK(static_cast<double>(sample.idle_ns) > 0.25 * static_cast<double>(sample.scheduler_ns));
  gate->let_go();
  CHECK(rig.scheduler.wait_for(300s));
  rig.scheduler.stop(true);
}

TEST(what_runs_in_the_thread_of_a_source_that_waits_is_not_the_source) {
  Rig rig({.profile_period = 2ms});
  TestOperator waiting = source(0, -1);
  waiting.process = [](const void*, std::int64_t, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable().wait_for(lock, 8ms, [] { return false; });
    static_cast<Row*>(out)[0] = {0, 0};
    return 1;
  };
  const OperatorId from = rig.add(waiting);
  const OperatorId dear = rig.add(busy("dear", 2e-3));
  rig.scheduler.connect(from, dear);
  rig.scheduler.connect(dear, rig.add(sink()));
  rig.scheduler.start({.thread_count = 1});
  Sample sample;
  CHECK(eventually([&] {
    (void)rig.scheduler.wait_for(10ms);  // the profiler wants the lock of samples, too
    sample = rig.scheduler.sample();
    return sample.operators[dear].cpu_ns + sample.operators[from].cpu_ns > 200'000'000;
  }));
  rig.scheduler.stop(false);
  CHECK(sample.operators[dear].cpu_ns > 2 * sample.operators[from].cpu_ns);
  CHECK(sample.operators[from].time_ns > sample.operators[dear].time_ns);
}

TEST(waiting_for_room_is_told_of_the_operator_that_waits) {
  auto gate = std::make_shared<Gate>();
  Rig rig({.profile_period = 1ms});
  const OperatorId one = rig.add(source(0, -1));
  const OperatorId other = rig.add(source(1, -1));
  const OperatorId to = rig.add(gated(gate));
  rig.scheduler.connect(one, to);
  rig.scheduler.connect(other, to);
  rig.scheduler.start({.thread_count = 1});
  gate->await_entry();
  // The thread of one of the sources may be the one that runs the gate.
  const auto blocked = [&](const Sample& sample) { return sample.operators[one].blocked_ns + sample.operators[other].blocked_ns; };
  CHECK(eventually([&] { return blocked(rig.scheduler.sample()) > 50'000'000; }));
  const Sample sample = rig.scheduler.sample();
  CHECK(sample.operators[to].blocked_ns == 0 && blocked(sample) == sample.blocked_ns);
  gate->let_go();
  rig.scheduler.stop(false);
}

TEST(queues_hold_no_more_than_a_while_of_work) {
  Rig rig;
  OperatorId previous = rig.add(source(0, -1));
  for (int index = 0; index < 8; ++index) {
    TestOperator spec = index == 7 ? sink() : busy("dear", 200e-6);  // the bound is 1 ms
    spec.model = ThreadingModel::Dynamic;
    const OperatorId id = rig.add(spec);
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  rig.scheduler.start({.thread_count = 2});
  // Operator 1 is the first one with a queue; the last of the dear ones is the seventh.
  CHECK(eventually([&] {
    const Sample sample = rig.scheduler.sample();
    return std::all_of(sample.operators.begin() + 1, sample.operators.begin() + 8,
                       [](const OperatorSample& one) { return one.queue_capacity <= 16 && one.queued <= one.queue_capacity; });
  }));
  rig.scheduler.stop(false);
}

TEST(a_stuck_thread_is_reported_and_replaced_until_it_comes_back) {
  auto gate = std::make_shared<Gate>();
  Rig rig({.profile_period = 1ms, .stuck_after = 20ms});
  rig.scheduler.connect(rig.add(source(0, 1)), rig.add(gated(gate)));
  rig.scheduler.connect(rig.add(source(1, -1)), rig.add(sink()));  // the job goes on
  rig.scheduler.start({.thread_count = 1});
  gate->await_entry();
  CHECK(eventually([&] { return rig.scheduler.in_force().stuck == 1; }));
  CHECK(eventually([&] { return rig.scheduler.in_force().thread_count == 1; }));
  const InForce answer = rig.scheduler.apply({.thread_count = 1});
  CHECK_EQ(answer.thread_count, 1U);
  CHECK_EQ(answer.stuck, 1U);
  CHECK_EQ(answer.unsuspended, 1U);  // it shall go once it comes back
  CHECK_EQ(rig.scheduler.sample().stuck, 1U);
  gate->let_go();
  CHECK(eventually([&] {
    const InForce now = rig.scheduler.in_force();
    return now.stuck == 0 && now.thread_count == 1 && now.unsuspended == 0;
  }));
  rig.scheduler.stop(false);
}

TEST(operators_that_block_for_ever_leave_the_others_running) {
  auto gate = std::make_shared<Gate>();
  Rig rig({.profile_period = 1ms, .stuck_after = 20ms});
  for (int blocked = 0; blocked < 3; ++blocked) rig.scheduler.connect(rig.add(source(blocked, 1)), rig.add(gated(gate)));
  OperatorId previous = rig.add(source(9, 20'000));
  for (int index = 0; index < 3; ++index) {
    TestOperator spec = index == 2 ? sink() : pass("pass");
    spec.model = ThreadingModel::Dynamic;
    const OperatorId id = rig.add(spec);
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  rig.scheduler.start({.thread_count = 1});  // three operators that block, one thread asked for
  CHECK(eventually([&] { return rig.last_sink().rows.load() == 20'000; }));
  gate->let_go();
  rig.finish();
  expect_rows(rig.last_sink(), 20'000);
}

REL_TEST_MAIN
