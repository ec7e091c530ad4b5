// An operator that its producer may run in part (Operator::takes_partial_runs): who finds the queue full goes on there, what it takes is in front of
// the next mark, and failures are told as those of the operator.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::chrono::seconds kPatience{60};

// Counts rows; those of partial runs apart, as plain memory: the sanitizer sees two threads in it.
struct Parts final : Operator, Guarded {
  Parts() : Operator("parts", {row_schema()}, {}, REL_SINK | REL_ON_FINISH) {}

  std::int64_t process(const std::byte*, std::int64_t n, std::byte*, std::int64_t, rel_context*) override {
    const Inside inside(*this);
    for (std::int64_t seen = in_parts.load(); seen < wait_for.load(); seen = in_parts.load()) in_parts.wait(seen);
    taken += n;
    return 0;
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context*) override {
    const Inside inside(*this);
    merge();
    return 0;
  }
  bool on_mark(Mark, rel_context*) override {
    merge();
    return true;
  }
  [[nodiscard]] bool takes_partial_runs() const override { return true; }
  std::int64_t process_partial(const std::byte*, std::int64_t n, std::string& problem) override {
    if (fails_at >= 0) {
      problem = "no more";
      return REL_FAILED(fails_at);
    }
    beside += n;
    in_parts += n;
    in_parts.notify_all();
    return n;
  }
  [[nodiscard]] bool has_partial_room() const override { return true; }
  void settle() override {
    const Inside inside(*this);
    taken += std::exchange(beside, 0);
  }
  void merge() {
    taken += std::exchange(beside, 0);
    settled = taken;
  }

  std::int64_t taken = 0;
  std::int64_t beside = 0;
  std::int64_t fails_at = -1;             // the row in a part's run
  std::atomic<std::int64_t> in_parts{0};  // rows that came so, in all
  std::atomic<std::int64_t> settled{0};   // taken, at the last mark
  std::atomic<std::int64_t> wait_for{0};  // a run of its own ends only when so many came in parts
};

// Makes two rows of each, and keeps nothing.
TestOperator doubled(std::string name) {
  TestOperator spec{.name = std::move(name), .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.reentrant = true;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void*, rel_context* context) -> std::int64_t {
    const auto* from = static_cast<const Row*>(in);
    auto* to = static_cast<Row*>(out);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < 2 * n; ++index) {
      if (made == capacity) {
        if (rel_flush(context, made) != 0) return REL_STOPPED;
        made = 0;
      }
      to[made++] = from[index / 2];
    }
    return made;
  };
  return spec;
}

// A source, an operator that keeps something, two functions that don't, the one in parts; `queued` says which of the last three have a queue.
struct Pipeline {
  explicit Pipeline(std::int64_t rows, const std::string& queued = "mmd") {
    const OperatorId from = rig.add(source(0, rows));
    const OperatorId passes = rig.add(pass("pass"));
    OperatorId before = passes;
    rig.scheduler.connect(from, passes);
    for (std::size_t index = 0; index < 2; ++index) {
      TestOperator spec = doubled("doubled" + std::to_string(index));
      spec.model = model_for(queued, index);
      doubling[index] = rig.add(std::move(spec));
      rig.scheduler.connect(before, doubling[index]);
      before = doubling[index];
    }
    end = install(rig.scheduler, parts, {.model = model_for(queued, 2)});
    rig.scheduler.connect(before, end);
  }

  std::shared_ptr<Parts> parts = std::make_shared<Parts>();
  OperatorId doubling[2] = {};
  OperatorId end = 0;
  Rig rig{{.queue_records = 64, .run_records = 16, .profile_period = {}}};
};

}  // namespace

// Whoever runs the operator waits for its producer, which therefore can't wait for it: the source's thread, behind which there is one queue.
TEST(a_producer_that_finds_no_room_runs_it_in_part) {
  for (const char* queued : {"mmd", "dmm", "mdm"}) {
    Pipeline made(100'000, queued);
    made.parts->wait_for = 40'000;
    made.rig.scheduler.start({.thread_count = 2});
    made.rig.finish();
    CHECK_EQ(made.parts->settled.load(), 400'000);
    CHECK(made.parts->in_parts.load() >= 40'000);
    const Sample sample = made.rig.scheduler.sample();
    CHECK_EQ(sample.operators[made.end].tuples_in, 400'000U);
    CHECK_EQ(sample.operators[made.doubling[0]].tuples_in, 100'000U);
    CHECK_EQ(sample.operators[made.doubling[0]].tuples_out, 200'000U);
    CHECK_EQ(sample.operators[made.doubling[1]].tuples_out, 400'000U);
  }
}

// Queues come and go while it runs: what takes part at which place changes.
TEST(what_it_took_in_part_is_in_front_of_the_next_mark) {
  std::mt19937_64 dice(7);
  for (const unsigned threads : {1U, 2U, 4U}) {
    for (const char* queued : {"mmd", "dmm", "ddd"}) {
      Pipeline made(-1, queued);
      made.rig.scheduler.stop_at_epochs({made.end});
      made.rig.scheduler.start({.thread_count = threads});
      const auto given = [&made] { return made.rig.scheduler.sample().operators[0].tuples_out; };
      for (std::int64_t epoch = 1; epoch <= 40; ++epoch) {
        const std::uint64_t before = given();
        CHECK(eventually([&] { return given() > before + 2'000; }));
        CHECK(made.rig.scheduler.wait_sent(kPatience));
        CHECK_EQ(made.rig.scheduler.hold({0}, false, kPatience), "");
        const auto position = static_cast<std::int64_t>(given());
        CHECK(made.rig.scheduler.send_epoch({0}, epoch));
        CHECK(!made.rig.scheduler.wait_epoch({made.end}, epoch, kPatience).empty());
        CHECK_EQ(made.parts->settled.load(), 4 * position);
        made.rig.scheduler.let_go({made.end});
        Desired desired{.thread_count = threads};
        for (const OperatorId id : {made.doubling[0], made.doubling[1], made.end})
          desired.models[id] = dice() % 2 == 0 ? ThreadingModel::Manual : ThreadingModel::Dynamic;
        (void)made.rig.scheduler.apply(desired);
      }
      made.rig.scheduler.end_source(0);
      made.rig.finish();
      CHECK_EQ(made.parts->settled.load(), 4 * static_cast<std::int64_t>(given()));
    }
  }
}

// Between two marks, too, for who reads the state while it runs: none comes here.
TEST(who_holds_it_has_what_was_taken_in_part) {
  for (const char* queued : {"mmd", "dmm"}) {
    Pipeline made(-1, queued);
    made.rig.scheduler.start({.thread_count = 2});
    const auto counted = [&made] { return static_cast<std::int64_t>(made.rig.scheduler.sample().operators[made.end].tuples_in); };
    for (std::int64_t look = 1; look <= 200; ++look) {
      const std::int64_t more = made.parts->in_parts.load() + 16;
      CHECK(eventually([&] { return made.parts->in_parts.load() >= more; }));
      const std::int64_t before = counted();
      CHECK_EQ(made.rig.scheduler.hold({made.end}, false, kPatience), "");
      CHECK_EQ(made.rig.scheduler.take_in_parts(made.end, kPatience), "");
      const std::int64_t taken = made.parts->taken;
      made.rig.scheduler.let_go({made.end});
      CHECK(taken >= before);
      CHECK(taken <= counted());
    }
    made.rig.scheduler.end_source(0);
    made.rig.finish();
    CHECK_EQ(made.parts->settled.load(), 4 * static_cast<std::int64_t>(made.rig.scheduler.sample().operators[0].tuples_out));
  }
}

TEST(a_part_that_fails_names_the_operator_and_the_row) {
  for (const char* queued : {"mmd", "dmm"}) {
    Pipeline made(100'000, queued);
    made.parts->wait_for = 1;  // for ever
    made.parts->fails_at = 0;
    made.rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return made.rig.scheduler.failure().has_value(); }));
    const auto failure = made.rig.scheduler.failure();
    CHECK_EQ(failure->operator_name, "parts");
    CHECK_EQ(failure->message, "no more");
    CHECK_EQ(failure->index, 0);
    CHECK_EQ(failure->record.size(), sizeof(Row));
    made.parts->in_parts = 1;
    made.parts->in_parts.notify_all();
    made.rig.scheduler.stop(false);
  }
}

REL_TEST_MAIN
