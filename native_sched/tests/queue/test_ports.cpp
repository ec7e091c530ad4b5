// Operators with several ports that take what comes: joins of two schemas, models that change under load, contradictions. Conservation and
// order per stream and port, at 1, 2 and 8 threads, under all models that there are.
#include <chrono>
#include <cstring>
#include <functional>
#include <random>

#include "several_ports.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

TEST(a_disjunctive_join_of_two_schemas) {
  at_all([](unsigned threads, const char* models) {
    for (const std::size_t queue_records : {16U, 1024U}) {
      Rig rig({.queue_records = queue_records});
      TestOperator spec = either();
      spec.model = model_for(models, 0);
      const OperatorId join = rig.add(std::move(spec));
      for (std::int64_t stream = 0; stream < 2; ++stream)
        rig.scheduler.connect(behind(rig, rig.add(source(stream, kRows)), 2, models), join);  // a union at port 0
      for (std::int64_t stream = 2; stream < 4; ++stream) {
        const OperatorId wide = rig.add(widen());
        rig.scheduler.connect(behind(rig, rig.add(source(stream, kRows)), 1, models), wide);
        rig.scheduler.connect(wide, join, 0, 1);
      }
      rig.scheduler.connect(join, rig.add(sink()));
      rig.scheduler.start({.thread_count = threads});
      rig.finish();
      expect_rows(rig.last_sink(), 8 * kRows);
      CHECK_EQ(rig.last_sink().next.size(), 4U);
    }
  });
}

TEST(models_and_threads_change_under_load) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const unsigned threads : kThreads) {
      std::mt19937_64 random(seed);
      Rig rig({.queue_records = seed == 1 ? 16U : 256U});
      TestOperator wide = widen();
      const OperatorId join = rig.add(either());
      const OperatorId wide_id = rig.add(wide);
      rig.scheduler.connect(behind(rig, rig.add(source(0, -1)), 3, "md"), join);
      rig.scheduler.connect(behind(rig, rig.add(source(1, -1)), 2, "md"), wide_id);
      rig.scheduler.connect(wide_id, join, 0, 1);
      const OperatorId end = rig.add(sink());
      rig.scheduler.connect(join, end);
      // Beside it, a split that is zipped again.
      const OperatorId halves = rig.add(split());
      rig.scheduler.connect(behind(rig, rig.add(source(2, -1)), 1, "md"), halves);
      const OperatorId both = rig.add(zip({exact(1), exact(1)}));
      rig.scheduler.connect(behind(rig, halves, 2, "md"), both);
      rig.scheduler.connect(behind(rig, halves, 1, "md", 1), both, 0, 1);
      const OperatorId other_end = rig.add(sink("other"));
      rig.scheduler.connect(both, other_end);
      rig.scheduler.start({.thread_count = threads});
      Sink& rows = state_of<Sink>(rig.specs[end]);
      Sink& others = state_of<Sink>(rig.specs[other_end]);
      constexpr ThreadingModel kAll[] = {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated};
      for (int step = 0; step < 15; ++step) {
        const std::int64_t until = rows.rows.load() + 300;
        const std::int64_t until_other = others.rows.load() + 300;
        CHECK(eventually([&] { return rows.rows.load() >= until && others.rows.load() >= until_other; }));
        Desired desired{.thread_count = 1 + static_cast<unsigned>(random() % threads)};
        for (OperatorId id = 0; id < rig.specs.size(); ++id) desired.models[id] = kAll[random() % 3];
        (void)rig.scheduler.apply(desired);
      }
      rig.scheduler.stop(true);
      CHECK(!rig.scheduler.failure().has_value());
      rig.check_exclusive();
      std::int64_t made[3] = {};
      for (const TestOperator& spec : rig.specs) {
        if ((spec.flags & REL_SOURCE) != 0) made[state_of<Source>(spec).stream] = state_of<Source>(spec).next;
      }
      expect_rows(rows, made[0] + 3 * made[1]);
      const Zip& zipped = zip_of(rig, both);
      CHECK(!zipped.wrong.load() && zipped.finished.load());
      CHECK_EQ(zipped.next[0], (made[2] + 1) / 2);
      CHECK_EQ(zipped.next[1], made[2] / 2);
      CHECK_EQ(others.rows.load(), made[2] / 2);
    }
  }
}

// An operator with two ports is run by one of them while the other one loses its queue: the port behind it is the runner's to change.
TEST(a_port_with_a_gate_loses_its_queue_alone) {
  struct Hall : Guarded {
    std::atomic<bool> entered{false};  // a row of the second port is inside
    std::atomic<bool> open{false};     // it may go on
    std::atomic<bool> go{false};       // rows of the first port come
    std::int64_t sent = 0;
  };
  constexpr std::int64_t kSent = 100;
  auto hall = std::make_shared<Hall>();
  Rig rig({.profile_period = std::chrono::milliseconds(1)});
  TestOperator late{.name = "late", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(hall), .outputs = {row_schema()}};
  late.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Hall*>(static_cast<Guarded*>(opaque));
    self.go.wait(false);
    *static_cast<Row*>(out) = {0, self.sent++};
    if (self.sent == kSent) rel_finish(context);
    return 1;
  };
  TestOperator both{.name = "both", .state = std::shared_ptr<Guarded>(hall), .inputs = {row_schema()}, .outputs = {row_schema()}};
  both.inputs.push_back(row_schema());
  both.model = ThreadingModel::Dynamic;
  both.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Hall*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    if (rel_port(context) == 1 && n > 0 && !self.entered.exchange(true)) self.open.wait(false);
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
    return n;
  };
  const OperatorId from = rig.add(late);
  const OperatorId joined = rig.add(both);
  rig.scheduler.connect(from, joined);
  rig.scheduler.connect(rig.add(source(1, 1)), joined, 0, 1);
  TestOperator last = sink();
  last.model = ThreadingModel::Dynamic;
  const OperatorId end = rig.add(last);
  rig.scheduler.connect(joined, end);
  rig.scheduler.start({.thread_count = 2});
  CHECK(eventually([&] { return hall->entered.load(); }));
  (void)rig.scheduler.apply({.thread_count = 2, .models = {{joined, ThreadingModel::Manual}, {end, ThreadingModel::Manual}}});
  hall->go = true;
  hall->go.notify_all();
  const bool stands = eventually([&] { return rig.scheduler.sample().operators[from].blocked_ns > 0; });  // in front of the gate
  const ThreadingModel behind_it = rig.scheduler.in_force().models[end];
  hall->open = true;
  hall->open.notify_all();
  CHECK(stands);
  CHECK(behind_it == ThreadingModel::Dynamic);
  rig.finish();
  expect_rows(state_of<Sink>(rig.specs[end]), kSent + 1);
}

TEST(a_gate_is_opened_by_another_operator) {
  // The gate holds its thread in user code until the key has seen a row at its second port, which comes only after the gate has been
  // entered. In front of the gate queues fill, so that other threads wait for the one inside.
  using namespace std::chrono_literals;
  for (const unsigned threads : kThreads) {
    auto open = std::make_shared<std::atomic<bool>>(false);
    struct Door : Guarded {
      std::shared_ptr<std::atomic<bool>> open;
      std::atomic<bool> entered{false};
      std::int64_t sent = 0;
    };
    auto door = std::make_shared<Door>();
    door->open = open;
    Rig rig({.queue_records = 16, .profile_period = 1ms, .stuck_after = 20ms});
    TestOperator gate = pass("gate");
    gate.state = std::shared_ptr<Guarded>(door);
    gate.model = ThreadingModel::Dynamic;
    gate.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      self.entered = true;
      self.entered.notify_all();
      self.open->wait(false);
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
      return n;
    };
    TestOperator key{.name = "key", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(door), .inputs = {row_schema()}};
    key.inputs.push_back(row_schema());
    key.model = ThreadingModel::Dynamic;
    key.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      if (rel_port(context) == 1) {
        self.open->store(true);
        self.open->notify_all();
      }
      return 0;
    };
    const OperatorId gate_id = rig.add(gate);
    const OperatorId key_id = rig.add(key);
    rig.scheduler.connect(behind(rig, rig.add(source(0, 5'000)), 4, "d"), gate_id);
    rig.scheduler.connect(gate_id, rig.add(sink()));
    const OperatorId end = rig.specs.size() - 1;
    rig.scheduler.connect(behind(rig, rig.add(source(1, 5'000)), 4, "d"), key_id);
    TestOperator opener{.name = "opener", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(door), .outputs = {row_schema()}};
    opener.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      self.entered.wait(false);
      *static_cast<Row*>(out) = {2, self.sent++};
      if (self.sent == 5'000) rel_finish(context);
      return 1;
    };
    rig.scheduler.connect(behind(rig, rig.add(opener), 4, "d"), key_id, 0, 1);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_rows(state_of<Sink>(rig.specs[end]), 5'000);
  }
}

TEST(contradictions_are_refused) {
  const auto refused = [](const std::function<void(Scheduler&)>& build, const std::string& part) {
    Scheduler scheduler;
    std::string message;
    try {
      build(scheduler);
      scheduler.start({});
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    scheduler.stop(false);
    if (message.find(part) == std::string::npos) fail(__FILE__, __LINE__, "not refused for '" + part + "' but: " + message);
  };
  refused([](Scheduler& s) { install(s, zip({exact(0), exact(1)})); }, "one record of each port");
  refused(
      [](Scheduler& s) {
        TestOperator spec = zip({exact(1), exact(1)});
        spec.demands.pop_back();
        install(s, spec);
      },
      "a demand for each");
  refused(
      [](Scheduler& s) {
        TestOperator spec = either();
        spec.inputs.push_back(nullptr);
        install(s, spec);
      },
      "without schema");
  refused(
      [](Scheduler& s) {
        TestOperator spec = source(0, 1);
        spec.demands = {exact(1)};
        install(s, spec);
      },
      "no input ports");
  refused([](Scheduler& s) { s.connect(install(s, source(0, 1)), install(s, sink()), 1); }, "no output port 1");
  refused([](Scheduler& s) { s.connect(install(s, source(0, 1)), install(s, sink()), 0, 1); }, "no input port 1");
  refused([](Scheduler& s) { s.connect(install(s, source(0, 1)), install(s, either()), 0, 1); }, "another size");
  refused([](Scheduler& s) { s.connect(install(s, source(0, 1)), install(s, either())); }, "feeds its input port 1");
  const auto looped = [](Scheduler& s, TestOperator first, TestOperator second, bool feedback) {
    const OperatorId from = install(s, source(0, 1));
    const OperatorId top = install(s, std::move(first));
    const OperatorId body = install(s, std::move(second));
    s.connect(from, top);
    s.connect(top, body);
    s.connect(body, top, 0, 0, feedback);
    s.connect(body, install(s, sink()));
    return std::pair(top, body);
  };
  refused([&](Scheduler& s) { looped(s, pass("a"), pass("b"), false); }, "feedback = true");
  refused([&](Scheduler& s) { looped(s, zip({exact(1)}), pass("b"), true); }, "can't be the head");
  refused([&](Scheduler& s) { looped(s, pass("a"), zip({exact(1)}), true); }, "conjunctive and can't stand in");
  refused([&](Scheduler& s) { looped(s, pass("a"), pass("b", REL_ON_FINISH), true); }, "end-of-input call");
  refused([&](Scheduler& s) { s.connect(install(s, source(1, 1)), looped(s, pass("a"), pass("b"), true).second); }, "elsewhere than");
  refused(
      [&](Scheduler& s) {
        const auto [top, body] = looped(s, pass("a"), pass("b"), true);
        s.connect(body, body, 0, 0, true);
      },
      "a loop inside");
  refused(
      [](Scheduler& s) {
        const OperatorId first = install(s, source(0, 1));
        const OperatorId second = install(s, source(1, 1));
        const OperatorId join = install(s, either());
        const OperatorId other = install(s, sink());
        const OperatorId wide = install(s, widen());
        s.connect(first, join);
        s.connect(second, wide);
        s.connect(wide, join, 0, 1);
        s.connect(first, other);
        s.connect(second, join, 0, 0, true);
        s.connect(join, other);
      },
      "no loop");
}

TEST(an_output_port_that_is_not_there_is_a_failure) {
  Rig rig;
  TestOperator spec = pass("lost");
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void*, rel_context* context) -> std::int64_t {
    return rel_emit(context, 3, in, n) == 0 ? 0 : REL_STOPPED;
  };
  const OperatorId id = rig.add(spec);
  rig.scheduler.connect(rig.add(source(0, 10)), id);
  rig.scheduler.connect(id, rig.add(sink()));
  rig.scheduler.start({});
  CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
  CHECK(rig.scheduler.failure().has_value());
  CHECK(rig.scheduler.failure()->message.find("output port 3") != std::string::npos);
}

REL_TEST_MAIN
