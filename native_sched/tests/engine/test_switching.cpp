// Changes on a live PE: models, thread counts, both at once, and what apply answers (M15, P24).
#include <random>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr ThreadingModel kModels[] = {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated};

// Applies random states, each after `step` more rows, until `rows` have come.
void apply_at_random(Rig& rig, std::uint64_t seed, std::int64_t rows, std::int64_t step, unsigned max_threads) {
  std::mt19937_64 random(seed);
  Sink& end = rig.last_sink();
  while (end.rows.load() < rows) {
    const std::int64_t until = std::min(rows, end.rows.load() + step);
    CHECK(eventually([&] { return end.rows.load() >= until || rig.scheduler.failure().has_value(); }));
    Desired desired{.thread_count = 1 + static_cast<unsigned>(random() % max_threads)};
    for (OperatorId id = 0; id < rig.specs.size(); ++id) desired.models[id] = kModels[random() % 3];
    (void)rig.scheduler.apply(desired);
  }
}

struct Stuck : Guarded {
  std::atomic<bool> leaves{false};
  std::atomic<bool> entered{false};
};

// Keeps the thread that runs it until it leaves.
TestOperator stuck() {
  TestOperator spec{
      .name = "stuck", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(std::make_shared<Stuck>()), .inputs = {row_schema()}};
  spec.model = ThreadingModel::Dynamic;
  spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Stuck*>(static_cast<Guarded*>(opaque));
    self.entered = true;
    self.leaves.wait(false);
    return 0;
  };
  return spec;
}

}  // namespace

TEST(models_and_threads_change_under_load) {
  for (const std::size_t queue_records : {16U, 1024U}) {
    for (const std::uint64_t seed : {1U, 2U}) {
      Rig rig({.queue_records = queue_records});
      rig.chain(-1, 12, "md");
      rig.scheduler.start({.thread_count = 2});
      apply_at_random(rig, seed, 200'000, 2'000, 6);
      rig.scheduler.stop(true);
      CHECK(!rig.scheduler.failure().has_value());
      rig.check_exclusive();
      expect_rows(rig.last_sink(), state_of<Source>(rig.specs.front()).next);
    }
  }
}

TEST(a_union_and_a_fan_out_change_under_load) {
  Rig rig({.queue_records = 64});
  const OperatorId joined = rig.add(pass("union"));
  for (std::int64_t stream = 0; stream < 3; ++stream) {
    const OperatorId from = rig.add(source(stream, -1));
    const OperatorId between = rig.add(pass("between"));
    rig.scheduler.connect(from, between);
    rig.scheduler.connect(between, joined);
  }
  const OperatorId first = rig.add(sink("first"));
  const OperatorId second = rig.add(sink("second"));
  rig.scheduler.connect(joined, first);
  rig.scheduler.connect(joined, second);
  rig.scheduler.start({.thread_count = 2});
  apply_at_random(rig, 3, 200'000, 2'000, 4);
  rig.scheduler.stop(true);
  rig.check_exclusive();
  std::int64_t made = 0;
  for (const TestOperator& spec : rig.specs) made += spec.name.starts_with("source") ? state_of<Source>(spec).next : 0;
  expect_rows(state_of<Sink>(rig.specs[first]), made);
  expect_rows(state_of<Sink>(rig.specs[second]), made);
}

// It looked for what stands in its way behind two queues that were desired but not in force, the first of which was empty, while it
// was blocked by the one behind both: round and round, until a worker came by.
TEST(a_source_that_helps_alone_goes_on_while_queues_change) {
  Rig rig({.queue_records = 64, .stuck_after = std::chrono::hours(1)});
  rig.chain(-1, 3, "dmm");
  Sink& end = rig.last_sink();
  const OperatorId one = 2, two = 3, last = 4;
  const OperatorId other = rig.add(source(1, 1)), keeper = rig.add(stuck());
  rig.scheduler.connect(other, keeper);
  auto& kept = state_of<Stuck>(rig.specs[keeper]);
  rig.scheduler.start({.thread_count = 1, .models = {{last, ThreadingModel::Dynamic}}});
  CHECK(eventually([&] { return kept.entered.load(); }));
  bool goes_on = true;
  for (int change = 0; goes_on && change < 400; ++change) {
    const auto model = change % 2 == 0 ? ThreadingModel::Dynamic : ThreadingModel::Manual;
    (void)rig.scheduler.apply({.thread_count = 1, .models = {{one, model}, {two, model}}});
    const std::int64_t rows = end.rows.load() + 500;
    goes_on = eventually([&] { return end.rows.load() >= rows; }, std::chrono::seconds(20));
  }
  kept.leaves = true;
  kept.leaves.notify_all();
  rig.scheduler.stop(true);
  CHECK(goes_on);
  CHECK(!rig.scheduler.failure().has_value());
  rig.check_exclusive();
  expect_rows(end, state_of<Source>(rig.specs.front()).next);
}

TEST(apply_answers_with_what_is_in_force) {
  Rig rig({.max_threads = 4});
  rig.chain(-1, 2, "m");
  rig.scheduler.start({.thread_count = 1});
  const auto settled = [&](const Desired& desired, unsigned threads) {
    return eventually([&] {
      const InForce answer = rig.scheduler.apply(desired);
      bool same = answer.thread_count == threads && answer.models[0] == ThreadingModel::Dedicated;
      for (const auto& [id, model] : desired.models) same = same && (id == 0 || answer.models[id] == model);
      return same;
    });
  };
  for (const ThreadingModel model : kModels) {
    for (const unsigned threads : {3U, 1U, 99U, 2U, 0U}) {
      const Desired desired{.thread_count = threads, .models = {{0, model}, {1, model}, {2, model}, {3, model}}};
      CHECK(settled(desired, std::clamp(threads, 1U, 4U)));
      CHECK(settled(desired, std::clamp(threads, 1U, 4U)));  // idempotent
    }
  }
  CHECK_EQ(rig.scheduler.sample().thread_count, 1U);
  CHECK_THROWS(rig.scheduler.apply({.models = {{17, ThreadingModel::Manual}}}), std::invalid_argument);
  rig.scheduler.stop(true);
}

TEST(idle_workers_sleep_and_wake) {
  // One row at a time, each only after the one before has arrived: every hop is a wake-up.
  struct Ping : Guarded {
    std::atomic<std::int64_t>* arrived = nullptr;
    std::int64_t sent = 0;
  };
  auto ping = std::make_shared<Ping>();
  TestOperator from{.name = "ping", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(ping), .outputs = {row_schema()}};
  from.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Ping*>(static_cast<Guarded*>(opaque));
    if (!eventually([&] { return self.arrived->load() == self.sent || context->stopping(); })) return REL_FAILED(0);
    *static_cast<Row*>(out) = {0, self.sent++};
    if (self.sent == 500) rel_finish(context);
    return 1;
  };
  for (const char* models : {"d", "t", "dt"}) {
    ping->sent = 0;
    Rig rig;
    OperatorId previous = rig.add(from);
    for (std::size_t index = 0; index < 5; ++index) {
      TestOperator spec = index == 4 ? sink() : pass("pass");
      spec.model = model_for(models, index);
      const OperatorId id = rig.add(spec);
      rig.scheduler.connect(previous, id);
      previous = id;
    }
    ping->arrived = &rig.last_sink().rows;
    rig.scheduler.start({.thread_count = 3});
    rig.finish();
    expect_rows(rig.last_sink(), 500);
  }
}

REL_TEST_MAIN
