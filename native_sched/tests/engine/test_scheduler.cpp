// Pipelines under every threading model: conservation and order first, then ends, failures and counters.
#include <stdexcept>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::int64_t kRows = 20'000;

void run_chain(std::size_t length, const std::string& models, unsigned threads, SchedulerOptions options = {}, std::int64_t rows = kRows) {
  Rig rig(options);
  rig.chain(rows, length, models);
  rig.scheduler.start({.thread_count = threads});
  rig.finish();
  expect_rows(rig.last_sink(), rows);
  const Sample sample = rig.scheduler.sample();
  for (std::size_t id = 1; id < sample.operators.size(); ++id) {
    CHECK_EQ(sample.operators[id].tuples_in, static_cast<std::uint64_t>(rows));
    CHECK_EQ(sample.operators[id].queued, 0U);
    CHECK(sample.operators[id].final);
  }
  CHECK_EQ(sample.operators[0].tuples_out, static_cast<std::uint64_t>(rows));
}

void run_chain_at_all_thread_counts(std::size_t length, const std::string& models, std::int64_t rows = kRows) {
  for (const unsigned threads : {1U, 2U, 4U, 8U}) {
    run_chain(length, models, threads, {}, rows);
    run_chain(length, models, threads, {.queue_records = 8}, rows / 10);  // always full
  }
}

TestOperator failing_at(std::int64_t sequence, bool by_exception) {
  struct Failing : Guarded {
    std::int64_t at = 0;
    bool throws = false;
  };
  auto state = std::make_shared<Failing>();
  state->at = sequence;
  state->throws = by_exception;
  TestOperator spec{.name = "failing", .state = std::shared_ptr<Guarded>(state), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Failing*>(static_cast<Guarded*>(opaque));
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      if (row.sequence == self.at) {
        if (self.throws) throw std::runtime_error("too much");
        rel_fail(context, "bad row");
        return REL_FAILED(index);
      }
      static_cast<Row*>(out)[index] = row;
    }
    return n;
  };
  return spec;
}

// A sink that stays in its call until it is interrupted.
struct Stuck : Guarded {
  std::atomic<bool> entered{false};
  std::atomic<bool> released{false};
};

TestOperator stuck() {
  TestOperator spec{
      .name = "stuck", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(std::make_shared<Stuck>()), .inputs = {row_schema()}};
  spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Stuck*>(static_cast<Guarded*>(opaque));
    self.entered = true;
    self.released.wait(false);
    return REL_STOPPED;
  };
  spec.interrupt = [](void* opaque) {
    auto& self = *static_cast<Stuck*>(static_cast<Guarded*>(opaque));
    self.released = true;
    self.released.notify_all();
  };
  return spec;
}

}  // namespace

TEST(manual_chains_of_1_10_100) {
  for (const std::size_t length : {1U, 10U, 100U}) run_chain(length, "m", 1);
}
TEST(dynamic_chain_of_1) { run_chain_at_all_thread_counts(1, "d"); }
TEST(dynamic_chain_of_10) { run_chain_at_all_thread_counts(10, "d"); }
TEST(dynamic_chain_of_100) { run_chain_at_all_thread_counts(100, "d", 10'000); }
TEST(dedicated_chain_of_1_and_10) {
  for (const std::size_t length : {1U, 10U}) {
    run_chain(length, "t", 1);
    run_chain(length, "t", 1, {.queue_records = 8}, kRows / 10);
  }
}
TEST(mixed_chains) {
  run_chain_at_all_thread_counts(20, "mdt");
  run_chain_at_all_thread_counts(20, "mmmdmmt");
}
TEST(chain_of_1000_manual_operators_fits_the_stack) { run_chain(1000, "m", 1, {}, 1000); }

TEST(in_place_operators_keep_what_others_see) {
  for (const char* models : {"m", "d", "md"}) {
    Rig rig;
    rig.chain(kRows, 10, models, REL_ONE_TO_ONE | REL_IN_PLACE);
    rig.scheduler.start({.thread_count = 2});
    rig.finish();
    expect_rows(rig.last_sink(), kRows);
  }
}

TEST(several_consumers_get_every_run_and_in_place_ones_spoil_none) {
  for (const char* models : {"m", "d", "t", "mdt", "dmt"}) {
    Rig rig;
    const OperatorId from = rig.add(source(0, kRows));
    for (std::size_t branch = 0; branch < 3; ++branch) {
      TestOperator negate{.name = "negate",
                          .flags = REL_ONE_TO_ONE | REL_IN_PLACE,
                          .state = std::make_shared<Guarded>(),
                          .inputs = {row_schema()},
                          .outputs = {row_schema()}};
      negate.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
        for (std::int64_t index = 0; index < n; ++index) {
          const Row row = static_cast<const Row*>(in)[index];
          static_cast<Row*>(out)[index] = {row.stream + 1, row.sequence};
        }
        return n;
      };
      negate.model = model_for(models, branch);
      const OperatorId middle = rig.add(negate);
      const OperatorId end = rig.add(sink());
      rig.scheduler.connect(from, middle);
      rig.scheduler.connect(middle, end);
    }
    rig.scheduler.start({.thread_count = 2});
    rig.finish();
    for (const TestOperator& spec : rig.specs) {
      if (spec.name != "sink") continue;
      Sink& end = state_of<Sink>(spec);
      expect_rows(end, kRows);
      CHECK_EQ(end.next.size(), 1U);
      CHECK_EQ(end.next.begin()->first, 1);  // overwritten once, not once per branch
    }
  }
}

TEST(union_keeps_the_order_of_each_stream_and_counts_finals) {
  for (const char* model : {"m", "d", "t"}) {
    for (const unsigned threads : {1U, 2U, 4U}) {
      Rig rig({.queue_records = 64});
      TestOperator joined = pass("union");
      joined.model = model_for(model, 0);
      const OperatorId middle = rig.add(joined);
      for (std::int64_t stream = 0; stream < 4; ++stream) {
        const OperatorId from = rig.add(source(stream, kRows / 4));
        TestOperator between = pass("between");
        between.model = model_for("dm", static_cast<std::size_t>(stream));
        const OperatorId id = rig.add(between);
        rig.scheduler.connect(from, id);
        rig.scheduler.connect(id, middle);
      }
      rig.scheduler.connect(middle, rig.add(sink()));
      rig.scheduler.start({.thread_count = threads});
      rig.finish();
      expect_rows(rig.last_sink(), kRows / 4 * 4);
    }
  }
}

TEST(a_diamond_meets_again) {
  for (const char* models : {"m", "d", "dm", "md"}) {
    Rig rig({.queue_records = 32});
    const OperatorId from = rig.add(source(0, kRows));
    TestOperator left = pass("left");
    TestOperator right = pass("right");
    TestOperator meet = sink();
    left.model = model_for(models, 0);
    right.model = model_for(models, 1);
    meet.model = model_for(models, 2);
    const OperatorId left_id = rig.add(left);
    const OperatorId right_id = rig.add(right);
    const OperatorId end = rig.add(meet);
    rig.scheduler.connect(from, left_id);
    rig.scheduler.connect(from, right_id);
    rig.scheduler.connect(left_id, end);
    rig.scheduler.connect(right_id, end);
    rig.scheduler.start({.thread_count = 4});
    rig.finish();
    CHECK_EQ(rig.last_sink().rows.load(), 2 * kRows);
  }
}

TEST(flat_maps_flush_in_the_middle) {
  for (const char* models : {"m", "d", "md"}) {
    Rig rig({.queue_records = 64});
    OperatorId previous = rig.add(source(0, 2000));
    for (std::size_t index = 0; index < 4; ++index) {
      TestOperator spec = twice("twice" + std::to_string(index));
      spec.model = model_for(models, index);
      const OperatorId id = rig.add(spec);
      rig.scheduler.connect(previous, id);
      previous = id;
    }
    rig.scheduler.connect(previous, rig.add(sink()));
    rig.scheduler.start({.thread_count = 2});
    rig.finish();
    expect_rows(rig.last_sink(), 2000 * 16);
  }
}

TEST(a_failure_carries_operator_record_and_message) {
  for (const char* models : {"m", "d", "t"}) {
    for (const bool by_exception : {false, true}) {
      Rig rig;
      const OperatorId from = rig.add(source(7, -1));
      TestOperator spec = failing_at(12'345, by_exception);
      spec.model = model_for(models, 0);
      const OperatorId id = rig.add(spec);
      const OperatorId end = rig.add(sink());
      rig.scheduler.connect(from, id);
      rig.scheduler.connect(id, end);
      rig.scheduler.start({.thread_count = 2});
      CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
      const auto failure = rig.scheduler.failure();
      CHECK(failure.has_value());
      CHECK_EQ(failure->operator_id, id);
      CHECK_EQ(failure->operator_name, "failing");
      CHECK_EQ(failure->message, by_exception ? "failing: too much" : "bad row");
      if (!by_exception) {
        CHECK_EQ(failure->record.size(), sizeof(Row));
        CHECK_EQ(reinterpret_cast<const Row*>(failure->record.data())->sequence, 12'345);
      }
      rig.scheduler.stop(false);
      CHECK(!rig.last_sink().finished.load());
    }
  }
}

TEST(stop_ends_whoever_is_blocked) {
  for (const char* models : {"m", "d", "t", "md", "dt"}) {
    for (const unsigned threads : {1U, 4U}) {
      Rig rig({.queue_records = 16});
      OperatorId previous = rig.add(source(0, -1));
      for (std::size_t index = 0; index < 5; ++index) {
        TestOperator spec = pass("pass");
        spec.model = model_for(models, index);
        const OperatorId id = rig.add(spec);
        rig.scheduler.connect(previous, id);
        previous = id;
      }
      TestOperator last = stuck();
      last.model = model_for(models, 5);
      const OperatorId end = rig.add(last);
      rig.scheduler.connect(previous, end);
      rig.scheduler.start({.thread_count = threads});
      auto& blocked = state_of<Stuck>(rig.specs.back());
      CHECK(eventually([&] { return blocked.entered.load(); }));
      CHECK(!rig.scheduler.wait_for(std::chrono::nanoseconds(0)));
      rig.scheduler.stop(false);
      CHECK(rig.scheduler.wait_for(std::chrono::nanoseconds(0)));
      CHECK(!rig.scheduler.failure().has_value());
    }
  }
}

TEST(stop_with_drain_loses_nothing) {
  for (const char* models : {"m", "d", "t", "mdt"}) {
    Rig rig;
    rig.chain(-1, 10, models);
    rig.scheduler.start({.thread_count = 2});
    CHECK(eventually([&] { return rig.last_sink().rows.load() > 10'000; }));
    rig.scheduler.stop(true);
    expect_rows(rig.last_sink(), state_of<Source>(rig.specs.front()).next);
    rig.check_exclusive();
  }
}

TEST(a_drain_unblocks_a_waiting_source) {
  TestOperator waiting{
      .name = "waiting", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(std::make_shared<Stuck>()), .outputs = {row_schema()}};
  waiting.process = stuck().process;
  waiting.interrupt = stuck().interrupt;
  Rig rig;
  const OperatorId from = rig.add(waiting);
  rig.scheduler.connect(from, rig.add(sink()));
  rig.scheduler.start({});
  CHECK(eventually([&] { return state_of<Stuck>(rig.specs.front()).entered.load(); }));
  rig.scheduler.stop(true);
  expect_rows(rig.last_sink(), 0);
}

TEST(a_scheduler_that_is_never_stopped_ends_by_itself) {
  Rig rig;
  rig.chain(-1, 3, "md");
  rig.scheduler.start({.thread_count = 3});
  CHECK(eventually([&] { return rig.last_sink().rows.load() > 100; }));
}

TEST(contradictions_are_refused) {
  Scheduler scheduler;
  CHECK_THROWS(install(scheduler, TestOperator{.name = "empty"}), std::invalid_argument);
  TestOperator keyless = pass("keyless", REL_KEYED);
  CHECK_THROWS(install(scheduler, keyless), std::invalid_argument);
  const OperatorId first = install(scheduler, pass("first"));
  const OperatorId second = install(scheduler, pass("second"));
  const OperatorId from = install(scheduler, source(0, 1));
  const OperatorId end = install(scheduler, sink());
  CHECK_THROWS(scheduler.connect(first, from), std::invalid_argument);
  CHECK_THROWS(scheduler.connect(end, first), std::invalid_argument);
  CHECK_THROWS(scheduler.connect(first, 99), std::invalid_argument);
  CHECK_THROWS(scheduler.start({}), std::invalid_argument);  // nothing feeds them
  scheduler.connect(from, first);
  scheduler.connect(first, second);
  scheduler.connect(second, first);
  scheduler.connect(second, end);
  CHECK_THROWS(scheduler.start({}), std::invalid_argument);  // a cycle
}

REL_TEST_MAIN
