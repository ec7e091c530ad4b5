// How long runs may be: bounded by the work that they are, never so short that a call's fixed cost decides.
#include "engine/run_length.hpp"

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::uint64_t kBound = 250'000;  // ns
constexpr std::size_t kMost = 128;

// Whatever is asked for is run: `fixed` ns a call and `each` ns a record.
std::size_t settled(std::uint64_t fixed, std::uint64_t each, RunLength length = RunLength(kBound, kMost)) {
  for (int run = 0; run < 200; ++run) length.saw(length.longest(), fixed + each * length.longest());
  return length.longest();
}

// Takes `each` for a row, and remembers its first run, and how many rows have come since the tenth.
struct Slow : Guarded {
  std::chrono::microseconds each{200};
  std::atomic<std::int64_t> runs{0};
  std::atomic<std::int64_t> first{0};
  std::atomic<std::int64_t> rows{0};

  // The mean length of a run since the tenth. A single run may be long after another one was preempted.
  [[nodiscard]] std::int64_t mean() const { return rows / std::max<std::int64_t>(runs - kFirst, 1); }

  static constexpr std::int64_t kFirst = 10;
};

TestOperator slow(const std::shared_ptr<Slow>& state) {
  TestOperator spec = pass("slow");
  spec.state = std::shared_ptr<Guarded>(state);
  static const rel_process plain = spec.process;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Slow*>(static_cast<Guarded*>(opaque));
    const auto end = std::chrono::steady_clock::now() + n * self.each;
    while (std::chrono::steady_clock::now() < end) {
    }
    if (self.runs == 0) self.first = n;
    if (++self.runs > Slow::kFirst) self.rows += n;
    return plain(in, n, out, capacity, opaque, context);
  };
  return spec;
}

// A chain that runs with one thread: source, another operator, an expensive one, and a sink behind a queue. Gives the expensive one.
OperatorId start_chain(Rig& rig, TestOperator source, TestOperator middle, TestOperator expensive) {
  TestOperator last = sink();
  last.model = ThreadingModel::Dynamic;
  const OperatorId first = rig.add(std::move(source));
  const OperatorId second = rig.add(std::move(middle));
  const OperatorId third = rig.add(std::move(expensive));
  const OperatorId end = rig.add(std::move(last));
  rig.scheduler.connect(first, second);
  rig.scheduler.connect(second, third);
  rig.scheduler.connect(third, end);
  rig.scheduler.start({.thread_count = 1});
  return third;
}

}  // namespace

TEST(cheap_records_keep_long_runs) { CHECK_EQ(settled(1'000, 10), kMost); }

TEST(runs_of_expensive_records_are_bounded) {
  CHECK_EQ(settled(0, 50'000), std::size_t{5});
  CHECK_EQ(settled(0, 400'000), std::size_t{1});
  CHECK_EQ(settled(0, 100'000'000), std::size_t{1});
}

TEST(a_fixed_cost_of_a_call_never_shrinks_runs_to_single_records) {
  CHECK_EQ(settled(5'000'000, 1'000), kMost);  // a model server: 5 ms a call
  const std::size_t length = settled(1'000'000, 100'000);
  CHECK(length >= 32);  // 1 ms beside 0.1 ms a record: 30 % more for each at 32 of them
}

TEST(a_slow_start_is_forgotten) {
  RunLength length(kBound, kMost);
  length.saw(1, 50'000'000);  // the first record of all: pages, caches, a module that is imported
  CHECK_EQ(settled(0, 10, length), kMost);
}

TEST(single_long_measurements_change_nothing) {
  RunLength length(kBound, kMost);
  for (int run = 0; run < 100; ++run) length.saw(length.longest(), 50'000 * length.longest());
  CHECK_EQ(length.longest(), std::size_t{5});
  for (int run = 0; run < 1'000; ++run) {
    length.saw(length.longest(), run % 10 == 0 ? 10'000'000 : 50'000 * length.longest());  // preempted every tenth time
    CHECK(length.longest() >= 2 && length.longest() <= 10);
  }
}

// A queue that went from behind it has it do all the work: by 6 % for each of its runs, of half a second now, that took minutes.
TEST(records_that_become_a_million_times_dearer_get_short_runs_at_once) {
  RunLength length(kBound, kMost);
  for (int run = 0; run < 100; ++run) length.saw(length.longest(), 2 * length.longest());
  CHECK_EQ(length.longest(), kMost);
  for (int run = 0; run < 3; ++run) length.saw(length.longest(), 2'000'000 * length.longest());
  CHECK(length.longest() <= 2);
}

TEST(a_busy_machine_is_no_reason_for_longer_runs) {
  RunLength length(kBound, kMost);
  for (int run = 0; run < 1'500; ++run) {
    const std::uint64_t busy = run / 50 % 2 == 0 ? 1 : 3;  // others compute for a while
    length.saw(1 + static_cast<std::size_t>(run) % length.longest(),
               400'000 * busy * (1 + static_cast<std::size_t>(run) % length.longest()));
    if (run > 10) CHECK(length.longest() <= 2);
  }
}

TEST(records_that_become_cheaper_get_longer_runs) {
  RunLength length(kBound, kMost);
  for (int run = 0; run < 100; ++run) length.saw(length.longest(), 400'000 * length.longest());
  CHECK_EQ(length.longest(), std::size_t{1});
  CHECK_EQ(settled(0, 100, length), kMost);
}

// Were they as long as the buffer, the queue behind the operator would be empty while they are made, and full afterwards.
TEST(a_source_in_front_of_an_expensive_operator_gives_short_runs) {
  for (const bool expands : {false, true}) {
    const auto state = std::make_shared<Slow>();
    Rig rig;
    start_chain(rig, source(0, 600), expands ? twice("twice") : pass("pass"), slow(state));
    rig.finish();
    expect_rows(rig.last_sink(), expands ? 1'200 : 600);
    CHECK(state->runs > 100);
    CHECK(state->mean() <= 4);
  }
}

// What a record cost was little as long as all that its source, or the port before, did was to fill the queue.
TEST(a_queue_that_goes_leaves_no_long_runs_behind) {
  for (const bool behind_a_port : {false, true}) {
    const auto state = std::make_shared<Slow>();
    Rig rig;
    TestOperator before = pass("before");
    before.model = behind_a_port ? ThreadingModel::Dynamic : ThreadingModel::Manual;
    TestOperator queued = slow(state);
    queued.model = ThreadingModel::Dynamic;
    const OperatorId expensive = start_chain(rig, source(0, -1), std::move(before), std::move(queued));
    CHECK(eventually([&] { return state->runs > 100; }));
    Desired desired{.thread_count = 1};
    desired.models[expensive] = ThreadingModel::Manual;
    (void)rig.scheduler.apply(desired);
    CHECK(eventually([&] { return rig.scheduler.in_force().models.at(expensive) == ThreadingModel::Manual; }));
    state->runs = 0;
    state->rows = 0;
    CHECK(eventually([&] { return state->runs > 100; }));
    CHECK(state->mean() <= 4);
    rig.scheduler.stop(false);
  }
}

// A queue that comes would be filled before its first record was timed, with 1,024 of 2 ms each: the work of two seconds.
TEST(a_queue_that_comes_holds_little_until_a_record_was_timed) {
  const auto state = std::make_shared<Slow>();
  state->each = std::chrono::milliseconds(2);
  Rig rig;
  const OperatorId expensive = start_chain(rig, source(0, -1), pass("before"), slow(state));
  CHECK(eventually([&] { return state->runs > 20; }));
  Desired desired{.thread_count = 1};
  desired.models[expensive] = ThreadingModel::Dynamic;
  (void)rig.scheduler.apply(desired);
  CHECK(eventually([&] { return rig.scheduler.in_force().models.at(expensive) == ThreadingModel::Dynamic; }));
  std::size_t most = 0;
  const std::int64_t before = state->runs;
  CHECK(eventually([&] {
    most = std::max(most, rig.scheduler.sample().operators.at(expensive).queued);
    return state->runs > before + 20;
  }));
  CHECK(most >= 1 && most <= 64);
  rig.scheduler.stop(false);
}

// They come between two runs: of 256 records of 2 ms each a command would wait for half a second, and a change has many.
TEST(who_takes_commands_does_not_wait_long_for_the_run_before_where_all_is_manual) {
  const auto state = std::make_shared<Slow>();
  Rig rig;
  const OperatorId from = rig.add(source(0, 600));
  TestOperator taking = pass("commanded");
  taking.takes_commands = true;
  const OperatorId middle = rig.add(std::move(taking));
  const OperatorId expensive = rig.add(slow(state));
  const OperatorId end = rig.add(sink());
  rig.scheduler.connect(from, middle);
  rig.scheduler.connect(middle, expensive);
  rig.scheduler.connect(expensive, end);
  rig.scheduler.start({.thread_count = 1});
  rig.finish();
  expect_rows(rig.last_sink(), 600);
  CHECK(state->runs > 100);
  CHECK(state->mean() <= 4);
}

// Who counts tuples once a period sees none in most of them where a run takes longer.
TEST(where_somebody_looks_on_runs_are_bounded_without_queues) {
  for (const auto work : {std::chrono::milliseconds(1), std::chrono::milliseconds(0)}) {
    const auto state = std::make_shared<Slow>();
    Rig rig({.run_work = work});
    const OperatorId from = rig.add(source(0, 12 * 256));
    const OperatorId expensive = rig.add(slow(state));
    const OperatorId end = rig.add(sink());
    rig.scheduler.connect(from, expensive);
    rig.scheduler.connect(expensive, end);
    rig.scheduler.start({.thread_count = 1});
    rig.finish();
    expect_rows(rig.last_sink(), 12 * 256);
    if (work.count() > 0) CHECK(state->mean() <= 8);
    if (work.count() == 0) CHECK(state->mean() > 100);
  }
}

// Nobody knows what one call of it takes: were the first run of 256, the first result would wait for all of them.
TEST(the_first_run_of_a_function_called_for_each_record_is_one) {
  for (const CalledFor beside : {CalledFor::Unknown, CalledFor::Run}) {
    const auto state = std::make_shared<Slow>();
    Rig rig({.run_work = std::chrono::milliseconds(1)});
    TestOperator each = slow(state);
    each.called_for = CalledFor::Record;
    TestOperator other = pass("other");
    other.called_for = beside;
    const OperatorId from = rig.add(source(0, 1024));
    const OperatorId expensive = rig.add(std::move(each));
    const OperatorId next = rig.add(std::move(other));
    const OperatorId end = rig.add(sink());
    rig.scheduler.connect(from, expensive);
    rig.scheduler.connect(expensive, next);
    rig.scheduler.connect(next, end);
    rig.scheduler.start({.thread_count = 1});
    rig.finish();
    expect_rows(rig.last_sink(), 1024);
    if (beside == CalledFor::Unknown) CHECK_EQ(state->first.load(), 1);
    if (beside == CalledFor::Run) CHECK(state->first.load() > 200);
  }
}

REL_TEST_MAIN
