// Safe points: while operators are held none of them runs, others do, and nothing is lost, doubled or reordered afterwards.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pipeline.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/state/keyed_state.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::chrono::seconds kPatience{60};

std::uint64_t taken(const Scheduler& scheduler, OperatorId id) { return scheduler.sample().operators[id].tuples_in; }

void wait_taken(const Scheduler& scheduler, OperatorId id, std::uint64_t records) {
  while (taken(scheduler, id) < records) std::this_thread::yield();
}

void hold(Scheduler& scheduler, const std::vector<OperatorId>& ids, bool drain) { CHECK_EQ(scheduler.hold(ids, drain, kPatience), ""); }

// Source, three operators, sink; each in turn held while rows flow, as are all from there on.
void held_and_released(const std::string& models, unsigned threads) {
  Rig rig({.queue_records = 64, .profile_period = {}});
  rig.chain(-1, 3, models);
  rig.scheduler.start({.thread_count = threads});
  Sink& sink = rig.last_sink();
  for (OperatorId first = 0; first < rig.specs.size(); ++first) {
    for (const bool drain : {false, true}) {
      wait_taken(rig.scheduler, rig.specs.size() - 1, static_cast<std::uint64_t>(sink.rows.load()) + 1000);
      std::vector<OperatorId> held;
      for (OperatorId id = first; id < rig.specs.size(); ++id) held.push_back(id);
      hold(rig.scheduler, held, drain);
      const Sample before = rig.scheduler.sample();
      std::this_thread::yield();
      const Sample after = rig.scheduler.sample();
      for (const OperatorId id : held) {
        CHECK_EQ(before.operators[id].tuples_in, after.operators[id].tuples_in);
        if (id > 0) CHECK_EQ(static_cast<Guarded*>(rig.specs[id].state.get())->inside.load(), 0);
        if (drain && id > first) CHECK_EQ(after.operators[id].queued, 0U);
        if (drain && id > first) CHECK_EQ(after.operators[id].tuples_in, after.operators[id - 1].tuples_out);
      }
      rig.scheduler.release();
    }
  }
  rig.scheduler.end_source(0);
  rig.finish();
  expect_rows(sink, static_cast<std::int64_t>(rig.scheduler.sample().operators[0].tuples_out));
}

// One thread, and a region of its own that isn't held: it flows on.
void others_go_on(const std::string& models) {
  Rig rig({.queue_records = 64, .profile_period = {}});
  rig.chain(-1, 2, models);
  const OperatorId held = 1;
  const OperatorId last = rig.specs.size() - 1;
  const OperatorId other_source = rig.add(source(1, -1));
  TestOperator spec = sink("other");
  spec.model = model_for(models, 0);
  const OperatorId other = rig.add(std::move(spec));
  rig.scheduler.connect(other_source, other);
  rig.scheduler.start({.thread_count = 1});
  wait_taken(rig.scheduler, last, 1000);
  hold(rig.scheduler, {held}, false);
  const std::uint64_t before = taken(rig.scheduler, other);
  wait_taken(rig.scheduler, other, before + 100'000);
  rig.scheduler.release();
  wait_taken(rig.scheduler, last, taken(rig.scheduler, last) + 1000);
  rig.scheduler.stop(true);
  rig.check_exclusive();
  CHECK(!state_of<Sink>(rig.specs[last]).disordered.load());
  CHECK(!state_of<Sink>(rig.specs[other]).disordered.load());
}

// An operator that flushes in the middle of a call, held together with those downstream, over and over at random moments.
void held_in_the_middle(const std::string& models, unsigned threads) {
  Rig rig({.queue_records = 64, .run_records = 64, .profile_period = {}});
  const OperatorId from = rig.add(source(0, -1));
  TestOperator first = twice("first"), second = twice("second"), last = sink();
  first.model = model_for(models, 0), second.model = model_for(models, 1), last.model = model_for(models, 2);
  const OperatorId a = rig.add(std::move(first)), b = rig.add(std::move(second)), c = rig.add(std::move(last));
  rig.scheduler.connect(from, a), rig.scheduler.connect(a, b), rig.scheduler.connect(b, c);
  rig.scheduler.start({.thread_count = threads});
  for (int round = 0; round < 200; ++round) {
    hold(rig.scheduler, round % 2 == 0 ? std::vector{a, b, c} : std::vector{from, a, b, c}, round % 3 == 0);
    for (const OperatorId id : {a, b, c}) CHECK_EQ(static_cast<Guarded*>(rig.specs[id].state.get())->inside.load(), 0);
    rig.scheduler.release();
  }
  rig.scheduler.end_source(0);
  rig.finish();
  expect_rows(rig.last_sink(), 4 * static_cast<std::int64_t>(rig.scheduler.sample().operators[from].tuples_out));
}

void stops_while_held() {
  for (const bool drain : {false, true}) {
    Rig rig({.queue_records = 64, .profile_period = {}});
    rig.chain(-1, 2, "dm");
    rig.scheduler.start({.thread_count = 1});
    wait_taken(rig.scheduler, 3, 1000);
    hold(rig.scheduler, {0, 1, 2, 3}, true);
    const std::uint64_t position = rig.scheduler.sample().operators[0].tuples_out;
    rig.scheduler.stop(drain, false);
    CHECK_EQ(rig.scheduler.sample().operators[0].tuples_out, position);  // what the source held back isn't submitted
    CHECK_EQ(static_cast<std::uint64_t>(rig.last_sink().rows.load()), position);
    CHECK_EQ(rig.last_sink().finished.load(), drain);
    CHECK(!rig.scheduler.hold({1}, false, kPatience).empty());
  }
}

// Not finishing: only the sink hears of the end.
void goes_on_elsewhere() {
  for (const bool finish : {false, true}) {
    Rig rig({.profile_period = {}});
    rig.chain(-1, 1, "m", REL_ONE_TO_ONE | REL_ON_FINISH);
    rig.scheduler.start({.thread_count = 1});
    wait_taken(rig.scheduler, 2, 1000);
    rig.scheduler.stop(true, finish);
    CHECK_EQ(static_cast<Guarded*>(rig.specs[1].state.get())->finished.load(), finish);
    CHECK(rig.last_sink().finished.load());
  }
}

// The source first, then the rest: what the source had submitted is processed.
void held_one_after_the_other(const std::string& models) {
  Rig rig({.queue_records = 64, .profile_period = {}});
  rig.chain(-1, 2, models);
  rig.scheduler.start({.thread_count = 2});
  for (int round = 0; round < 100; ++round) {
    hold(rig.scheduler, {0}, true);
    hold(rig.scheduler, {0, 1, 2, 3}, true);
    CHECK_EQ(static_cast<std::uint64_t>(rig.last_sink().rows.load()), rig.scheduler.sample().operators[0].tuples_out);
    rig.scheduler.release();
  }
  rig.scheduler.end_source(0);
  rig.finish();
}

// A source that goes on where it was: 2500 of 10,000 rows were there already.
void skips_what_was_submitted() {
  Rig rig({.profile_period = {}});
  TestOperator spec = source(0, 10'000);
  spec.skip = 2500;
  const OperatorId from = rig.add(std::move(spec)), to = rig.add(sink());
  rig.scheduler.connect(from, to);
  rig.last_sink().next[0] = 2500;
  rig.scheduler.start({.thread_count = 1});
  rig.finish();
  expect_rows(rig.last_sink(), 7500);
  CHECK_EQ(rig.scheduler.sample().operators[from].tuples_out, 7500U);
}

struct Stuck : Guarded {
  std::atomic<bool> in{false};
  std::atomic<bool> go{false};
};

void says_who_is_stuck() {
  Rig rig({.profile_period = {}});
  auto stuck = std::make_shared<Stuck>();
  const OperatorId from = rig.add(source(0, 10));
  TestOperator spec{.name = "stuck", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(stuck), .inputs = {row_schema()}};
  spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* state, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Stuck*>(static_cast<Guarded*>(state));
    self.in = true, self.in.notify_all();
    self.go.wait(false);
    return 0;
  };
  const OperatorId to = rig.add(std::move(spec));
  rig.scheduler.connect(from, to);
  rig.scheduler.start({.thread_count = 1});
  stuck->in.wait(false);
  const std::string refusal = rig.scheduler.hold({to}, false, std::chrono::milliseconds(1));
  CHECK(refusal.find("'stuck'") != std::string::npos);
  stuck->go = true, stuck->go.notify_all();
  rig.finish();  // it isn't held
}

// The built-in aggregate's table, moved in chunks to another one while the operator is held.
void moves_state_of_a_live_aggregate() {
  const auto keyed = std::make_shared<Schema>(
      std::vector<Field>{{.name = "stream", .type = Type::Int64, .format = "l"}, {.name = "n", .type = Type::Int64, .format = "l"}});
  const auto make = [&] {
    return make_aggregate("counts", row_schema(), keyed, {"sequence"}, {{AggregateFunction::Count, ""}}, Emit::Final);
  };
  Rig rig({.profile_period = {}});
  const OperatorId from = rig.add(source(0, -1));
  const std::shared_ptr<Operator> spec = make();
  const OperatorId counts = install(rig.scheduler, spec);
  const OperatorId last = install(rig.scheduler, sink());
  rig.scheduler.connect(from, counts), rig.scheduler.connect(counts, last);
  rig.scheduler.start({.thread_count = 1});
  wait_taken(rig.scheduler, counts, 10'000);
  hold(rig.scheduler, {from, counts}, true);
  const OperatorSample sample = rig.scheduler.sample().operators[counts];
  CHECK_EQ(sample.tuples_in, sample.state_keys);
  CHECK(sample.state_bytes > sample.state_keys * 8);
  const std::shared_ptr<Operator> other = make();
  const KeySelection all = spec->state()->select({});
  std::uint64_t at = 0;
  std::size_t chunks = 0;
  do {
    const std::vector<std::byte> chunk = spec->state()->export_chunk(all, at, 4096);
    CHECK(chunk.size() < 8192);
    CHECK(other->state()->import_range(chunk) > 0);
    ++chunks;
  } while (at != 0);
  CHECK(chunks > 10);
  CHECK_EQ(other->state()->size(), spec->state()->size());
  CHECK_EQ(other->state()->layout(), spec->state()->layout());
  CHECK(other->state()->export_range(0, UINT64_MAX) == spec->state()->export_range(0, UINT64_MAX));
  const std::size_t half = spec->state()->remove_range(0, UINT64_MAX / 2);
  CHECK_EQ(spec->state()->size() + half, other->state()->size());
  rig.scheduler.stop(false);
}

}  // namespace

TEST(held_operators_do_not_run) {
  for (const std::string models : {"m", "d", "t", "md", "dmt"}) {
    for (const unsigned threads : {1U, 2U, 4U}) held_and_released(models, threads);
  }
}
TEST(held_while_they_flush) {
  for (const std::string models : {"m", "d", "t", "md", "dmt"}) {
    for (const unsigned threads : {1U, 2U, 4U}) held_in_the_middle(models, threads);
  }
}
TEST(others_go_on) {
  for (const std::string models : {"m", "d", "t", "md", "dmt"}) others_go_on(models);
}
TEST(stops_while_held) { stops_while_held(); }
TEST(goes_on_elsewhere) { goes_on_elsewhere(); }
TEST(held_one_after_the_other) {
  for (const std::string models : {"m", "d", "t", "md"}) held_one_after_the_other(models);
}
TEST(skips_what_was_submitted) { skips_what_was_submitted(); }
TEST(says_who_is_stuck) { says_who_is_stuck(); }
TEST(moves_state_of_a_live_aggregate) { moves_state_of_a_live_aggregate(); }

REL_TEST_MAIN
