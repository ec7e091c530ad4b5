// Firing rules and back-pressure at stages, with few threads and many (P22, P33, J02). Conservation and order per stream and port, at
// 1, 2 and 8 threads, under all models that there are.
#include <algorithm>
#include <functional>
#include <vector>

#include "several_ports.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

void run_barrier(const std::vector<Demand>& demands, const std::vector<std::int64_t>& rows, std::int64_t firings, std::size_t length = 2,
                 SchedulerOptions options = {}) {
  at_all([&](unsigned threads, const char* models) {
    Rig rig(options);
    const OperatorId id = barrier(rig, demands, rows, length, models);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, id, firings, rows);
    expect_rows(rig.last_sink(), firings);
    CHECK(rig.scheduler.in_force().models[id] != ThreadingModel::Manual);
  });
}

// Keeps one row of `of`, and numbers them anew.
TestOperator keep_one_of(std::int64_t of) {
  struct Keep : Guarded {
    std::int64_t of = 1;
    std::int64_t kept = 0;
  };
  auto state = std::make_shared<Keep>();
  state->of = of;
  TestOperator spec = pass("keep");
  spec.flags = REL_FILTER;
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Keep*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      if (row.sequence % self.of == 0) static_cast<Row*>(out)[made++] = {row.stream, self.kept++};
    }
    return made;
  };
  return spec;
}

}  // namespace

TEST(a_zip_takes_one_of_each) { run_barrier({exact(1), exact(1)}, {kRows, kRows}, kRows); }
TEST(a_zip_with_full_queues) { run_barrier({exact(1), exact(1)}, {kRows, kRows}, kRows, 2, {.queue_records = 8}); }
TEST(a_zip_takes_two_and_three) { run_barrier({exact(2), exact(3)}, {kRows, kRows / 2 * 3}, kRows / 2); }
TEST(a_zip_takes_more_than_a_run) { run_barrier({exact(700), exact(1)}, {7000, 10}, 10); }
TEST(a_conjunctive_operator_may_have_one_port) { run_barrier({exact(7)}, {kRows}, kRows / 7); }

TEST(a_zip_of_unequal_lengths_gets_the_rest_at_the_end) {
  run_barrier({exact(1), exact(1)}, {kRows, 5'000}, 5'000);
  run_barrier({exact(2), exact(3)}, {1'001, kRows}, 500);
  run_barrier({exact(1), exact(1)}, {0, kRows}, 0);
  run_barrier({exact(3), exact(3)}, {0, 0}, 0);
}

TEST(at_least_takes_all_that_is_there) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    const std::vector<std::int64_t> rows = {kRows, 600};
    const OperatorId id = barrier(rig, {at_least(5), exact(2)}, rows, 1, models);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    const Zip& self = zip_of(rig, id);
    CHECK(!self.wrong.load() && self.finished.load());
    CHECK_EQ(self.next[0], rows[0]);
    CHECK_EQ(self.next[1], rows[1]);
    CHECK(self.firings > 0 && self.firings <= 300);
    expect_rows(rig.last_sink(), self.firings);
  });
}

TEST(a_barrier_of_five_ports) {
  run_barrier(std::vector<Demand>(5, exact(1)), std::vector<std::int64_t>(5, 4'000), 4'000, 5, {.queue_records = 16});
}

TEST(barriers_in_a_row) {
  at_all([](unsigned threads, const char* models) {
    constexpr std::int64_t kEach = 3'000;
    Rig rig({.queue_records = 16});
    CHECK_EQ(rig.scheduler.minimum_threads(), 1U);
    OperatorId previous = barrier(rig, {exact(1), exact(1), exact(1)}, {kEach, kEach, kEach}, 2, models);
    for (int step = 0; step < 3; ++step) {
      const OperatorId other = behind(rig, rig.add(source(step, kEach)), 2, models);
      const OperatorId id = rig.add(zip({exact(1), exact(1)}));
      rig.scheduler.connect(behind(rig, previous, 2, models), id);
      rig.scheduler.connect(other, id, 0, 1);
      previous = id;
    }
    const OperatorId end = rig.add(sink());
    rig.scheduler.connect(previous, end);
    CHECK_EQ(rig.scheduler.minimum_threads(), 4U);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_rows(rig.last_sink(), kEach);
    expect_zipped(rig, previous, kEach, {kEach, kEach});
  });
}

TEST(two_outputs_split_and_joined) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    TestOperator spec = split();
    spec.model = model_for(models, 1);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(rig.add(source(0, 2 * kRows)), id);
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, id, 2, models), join);
    rig.scheduler.connect(behind(rig, id, 1, models, 1), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, kRows, {kRows, kRows});
    expect_rows(rig.last_sink(), kRows);
  });
}

TEST(a_diamond_with_a_filter_on_one_side) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    const OperatorId top = behind(rig, rig.add(source(0, kRows)), 1, models);
    TestOperator spec = keep_one_of(4);
    spec.model = model_for(models, 2);
    const OperatorId filter = rig.add(std::move(spec));
    rig.scheduler.connect(top, filter);
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, filter, 1, models), join);
    rig.scheduler.connect(behind(rig, top, 2, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, kRows / 4, {kRows / 4, kRows});
    expect_rows(rig.last_sink(), kRows / 4);
  });
}

TEST(a_diamond_that_keeps_too_much_back_fails) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16, .loop_bytes = 64 * 1024});
    const OperatorId top = behind(rig, rig.add(source(0, -1)), 1, models);
    const OperatorId filter = rig.add(keep_one_of(1'000'000'000));
    rig.scheduler.connect(top, filter);
    const OperatorId join = rig.add(zip({exact(2), exact(1)}));
    rig.scheduler.connect(filter, join);
    rig.scheduler.connect(behind(rig, top, 1, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = rig.scheduler.failure();
    CHECK(failure.has_value());
    CHECK_EQ(failure->operator_name, "zip");
    CHECK(failure->message.find("loop_bytes") != std::string::npos);
    rig.scheduler.stop(false);
  });
}

TEST(a_fast_stream_waits_for_a_slow_one) {
  at_all([](unsigned threads, const char* models) {
    // The second source gives a row only after the first one can't go on: were its rows kept instead, it would never be blocked.
    struct Slow : Guarded {
      const Scheduler* scheduler = nullptr;
      std::int64_t sent = 0;
    };
    auto slow = std::make_shared<Slow>();
    TestOperator spec{.name = "slow", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(slow), .outputs = {row_schema()}};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Slow*>(static_cast<Guarded*>(opaque));
      if (self.sent == 0 && !eventually([&] { return self.scheduler->sample().sleeps > 0 || context->stopping(); })) return REL_FAILED(0);
      *static_cast<Row*>(out) = {1, self.sent++};
      if (self.sent == 2'000) rel_finish(context);
      return 1;
    };
    Rig rig({.queue_records = 64, .loop_bytes = 1'000});
    slow->scheduler = &rig.scheduler;
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, rig.add(source(0, kRows)), 2, models), join);
    rig.scheduler.connect(behind(rig, rig.add(spec), 2, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, 2'000, {kRows, 2'000});
    CHECK(zip_of(rig, join).most <= 256);
  });
}

TEST(stop_ends_whoever_waits_for_a_firing) {
  at_all([](unsigned threads, const char* models) {
    // A source that gives nothing, until it is stopped.
    TestOperator silent{.name = "silent", .flags = REL_SOURCE, .state = std::make_shared<Guarded>(), .outputs = {row_schema()}};
    silent.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      static_cast<Guarded*>(opaque)->finished.wait(false);
      return 0;
    };
    silent.interrupt = [](void* opaque) {
      static_cast<Guarded*>(opaque)->finished = true;
      static_cast<Guarded*>(opaque)->finished.notify_all();
    };
    for (const bool drain : {false, true}) {
      silent.state = std::make_shared<Guarded>();
      Rig rig({.queue_records = 16});
      const OperatorId join = rig.add(zip({exact(1), exact(1)}));
      const OperatorId from = rig.add(source(0, -1));
      rig.scheduler.connect(behind(rig, from, 3, models), join);
      rig.scheduler.connect(behind(rig, rig.add(silent), 2, models), join, 0, 1);
      rig.scheduler.connect(join, rig.add(sink()));
      rig.scheduler.start({.thread_count = threads});
      CHECK(eventually([&] { return rig.scheduler.sample().operators[join].queued > 0 && rig.scheduler.sample().sleeps > 0; }));
      rig.scheduler.stop(drain);
      CHECK(!rig.scheduler.failure().has_value());
      CHECK(!zip_of(rig, join).wrong.load());
      if (drain) expect_zipped(rig, join, 0, {state_of<Source>(rig.specs[from]).next, 0});
    }
  });
}

// All that the barrier lacks comes into queues while the one thread that was asked for waits for room in front of the barrier; and no
// source helps: they give a row only when the one before has been taken, or when a thread sleeps.
TEST(one_thread_is_replaced_while_it_waits) {
  struct Gentle : Guarded {
    const Scheduler* scheduler = nullptr;
    OperatorId behind = 0;
    bool last = false;
    std::int64_t sent = 0;
  };
  const auto gentle = [](const Scheduler& scheduler, bool last) {
    auto state = std::make_shared<Gentle>();
    state->scheduler = &scheduler;
    state->last = last;
    TestOperator spec{.name = "gentle", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(state), .outputs = {row_schema()}};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Gentle*>(static_cast<Guarded*>(opaque));
      const bool may = eventually([&] {
        if (context->stopping()) return true;
        const Sample sample = self.scheduler->sample();
        return self.last ? sample.sleeps > 0 : sample.operators[self.behind].queued == 0;
      });
      if (!may) return REL_FAILED(0);
      if (self.last) rel_finish(context);
      const std::int64_t count = self.last ? std::min<std::int64_t>(10, capacity) : 1;
      for (std::int64_t index = 0; index < count; ++index) static_cast<Row*>(out)[index] = {0, self.sent++};
      return count;
    };
    return spec;
  };
  for (const bool conjunctive : {true, false}) {
    Rig rig({.queue_records = 16, .run_records = 64});
    const OperatorId fast = rig.add(gentle(rig.scheduler, false));
    const OperatorId first = behind(rig, fast, 1, "d");
    state_of<Gentle>(rig.specs[fast]).behind = first;
    const OperatorId slow = behind(rig, rig.add(gentle(rig.scheduler, true)), 2, "d");
    const OperatorId id = rig.add(zip({exact(1), exact(1)}));
    // Once in front of the barrier, once behind another one that waits.
    const OperatorId between = conjunctive ? rig.add(zip({exact(1)}, "between")) : behind(rig, first, 1, "m");
    if (conjunctive) rig.scheduler.connect(first, between);
    rig.scheduler.connect(between, id);
    rig.scheduler.connect(slow, id, 0, 1);
    rig.scheduler.connect(id, rig.add(sink()));
    rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return rig.last_sink().rows.load() == 10; }));
    rig.scheduler.stop(true);
    rig.check_exclusive();
    expect_zipped(rig, id, 10, {state_of<Gentle>(rig.specs[fast]).sent, 10});
  }
}

TEST(replaced_threads_go_when_they_are_needed_no_more) {
  for (const char* models : {"d", "md"}) {
    Rig rig({.queue_records = 16});
    const OperatorId join = barrier(rig, {exact(1), exact(1), exact(1)}, {-1, -1, 2'000}, 4, models);
    rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return rig.last_sink().rows.load() == 2'000; }));
    // The third port has ended: nobody waits for a firing any more.
    CHECK(eventually([&] {
      const InForce now = rig.scheduler.in_force();
      return now.thread_count == 1 && now.unsuspended == 0;
    }));
    rig.scheduler.stop(true);
    CHECK(!zip_of(rig, join).wrong.load());
    CHECK_EQ(zip_of(rig, join).firings, 2'000);
  }
}

TEST(a_failure_in_a_firing_is_a_value) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    const OperatorId id = barrier(rig, {exact(1), exact(1)}, {-1, -1}, 1, models);
    Rig failing;
    for (OperatorId each = 0; each < rig.specs.size(); ++each) {
      TestOperator spec = rig.specs[each];
      if (each == id) {
        spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void*, rel_context* context) -> std::int64_t {
          for (std::int64_t index = 0; index < n; ++index) {
            if (static_cast<const Row*>(in)[index].sequence < 1'000) continue;
            rel_fail(context, "no more");
            return REL_FAILED(index);
          }
          return 0;
        };
      }
      (void)failing.add(std::move(spec));
    }
    // source, pass, source, pass, zip, sink: as barrier() has added them
    failing.scheduler.connect(0, 1);
    failing.scheduler.connect(2, 3);
    failing.scheduler.connect(1, 4, 0, 0);
    failing.scheduler.connect(3, 4, 0, 1);
    failing.scheduler.connect(4, 5);
    failing.scheduler.start({.thread_count = threads});
    CHECK(failing.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = failing.scheduler.failure();
    CHECK(failure.has_value());
    CHECK_EQ(failure->operator_name, "zip");
    CHECK_EQ(failure->message, "no more");
    CHECK_EQ(reinterpret_cast<const Row*>(failure->record.data())->sequence, 1'000);
    failing.scheduler.stop(false);
  });
}

REL_TEST_MAIN
