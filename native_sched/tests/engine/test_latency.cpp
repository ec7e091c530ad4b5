// Time marks from sources to sinks: under every threading model, through forks and links of operators, without a record lost.
#include "rayelastic/engine/latency.hpp"

#include <numeric>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::int64_t kRows = 100'000;
constexpr std::chrono::microseconds kStep{100};

std::atomic<std::int64_t> readings{0};
// Every look at it is a step later.
std::int64_t stepping() { return ++readings * std::chrono::nanoseconds(kStep).count(); }

std::uint64_t marks_in(const LatencyCounts& counts) {
  const LatencyCounts::Counts read = counts.read();
  return std::accumulate(read.begin(), read.end(), std::uint64_t{0});
}

}  // namespace

TEST(buckets_are_powers_of_two_of_microseconds) {
  LatencyCounts counts;
  for (const std::int64_t nanoseconds : {-5'000'000, 999, 1'000, 1'999, 2'000, 1'000'000})
    counts.add(std::chrono::nanoseconds(nanoseconds));
  counts.add(std::chrono::hours(24));
  const LatencyCounts::Counts read = counts.read();
  CHECK_EQ(read[0], 2U);   // below a microsecond
  CHECK_EQ(read[1], 2U);   // 1
  CHECK_EQ(read[2], 1U);   // 2 and 3
  CHECK_EQ(read[10], 1U);  // 512 to 1,023
  CHECK_EQ(read[LatencyCounts::kBuckets - 1], 1U);
  CHECK_EQ(marks_in(counts), 7U);
}

TEST(marks_arrive_under_every_threading_model) {
  for (const std::string models : {"m", "d", "t", "mdt"}) {
    readings = 0;
    const auto counts = std::make_shared<LatencyCounts>();
    Rig rig;
    const TestOperator end = sink();
    const OperatorId first = install(rig.scheduler, source(0, kRows).make(), {.time_marks = kStep, .clock = stepping});
    TestOperator middle = pass("pass");
    middle.model = model_for(models, 0);
    const OperatorId between = rig.add(middle);
    rig.scheduler.connect(first, between);
    rig.scheduler.connect(between,
                          install(rig.scheduler, end.make(), {.model = model_for(models, 1), .latency = counts, .clock = stepping}));
    rig.scheduler.start({.thread_count = 2});
    if (!rig.scheduler.wait_for(std::chrono::seconds(300))) fail(__FILE__, __LINE__, "the pipeline hangs");
    rig.scheduler.stop(true);
    expect_rows(state_of<Sink>(end), kRows);
    // Each mark is one look when it is made and one when it arrives; the source looks before every call, and marks most of them.
    const auto marks = static_cast<std::int64_t>(marks_in(*counts));
    CHECK(marks > 0);
    CHECK(2 * marks <= readings.load());
    CHECK_EQ(counts->read()[0], 0U);  // a step at least
  }
}

TEST(a_mark_takes_one_way_at_a_fork) {
  readings = 0;
  const auto counts = std::make_shared<LatencyCounts>();
  Rig rig;
  std::vector<OperatorId> ends{
      install(rig.scheduler, source(0, kRows).make(), {.time_marks = std::chrono::nanoseconds(0), .clock = stepping})};
  for (int stage = 0; stage < 5; ++stage) {  // 2^5 ways
    const OperatorId united = rig.add(pass("united" + std::to_string(stage)));
    for (const OperatorId end : ends) rig.scheduler.connect(end, united);
    ends = {rig.add(pass("left" + std::to_string(stage))), rig.add(pass("right" + std::to_string(stage)))};
    for (const OperatorId end : ends) rig.scheduler.connect(united, end);
  }
  const TestOperator end = sink();
  const OperatorId last = install(rig.scheduler, end.make(), {.latency = counts, .clock = stepping});
  for (const OperatorId from : ends) rig.scheduler.connect(from, last);
  rig.scheduler.start({.thread_count = 2});
  if (!rig.scheduler.wait_for(std::chrono::seconds(300))) fail(__FILE__, __LINE__, "the pipeline hangs");
  rig.scheduler.stop(true);
  CHECK_EQ(state_of<Sink>(end).rows.load(), 32 * kRows);
  CHECK_EQ(2 * static_cast<std::int64_t>(marks_in(*counts)), readings.load());  // as many as were made
}

REL_TEST_MAIN
