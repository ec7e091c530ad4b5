// The scheduler under a source ten times too fast and a sink that stands still (R8).
//
// REL_OVERLOAD_SECONDS: how long the sink stands still, 1 by default, 60 for R8 in full (./dev bench overload).
#include <unistd.h>

#include <fstream>

#include "text_rows.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::int64_t kTextBytes = 1024;
constexpr double kMostGrowth = 1.05;  // R8
constexpr int kSlowness = 10;         // the sink reads a text that many times, which the source writes once

// Rows with texts, as fast as they are taken.
TestOperator text_source() {
  TestOperator spec{
      .name = "texts", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(std::make_shared<Source>()), .outputs = {text_row_schema()}};
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Source*>(static_cast<Guarded*>(opaque));
    auto* rows = static_cast<TextRow*>(out);
    const std::int64_t made = std::min<std::int64_t>(capacity, 16);
    for (std::int64_t index = 0; index < made; ++index) {
      void* text = rel_allocate(context, kTextBytes);
      if (text == nullptr) return REL_FAILED(index);
      std::memset(text, 'x', kTextBytes);
      rows[index] = {self.next++, StringView(static_cast<const char*>(text), kTextBytes)};
    }
    return made;
  };
  return spec;
}

struct SlowSink : Guarded {
  std::atomic<bool> shut{false};
  std::atomic<bool> standing{false};  // in the middle of a call, waiting for the gate
  std::atomic<std::int64_t> rows{0};
  std::atomic<bool> disordered{false};  // or another text
  const std::string expected = std::string(kTextBytes, 'x');
};

TestOperator slow_sink() {
  TestOperator spec{
      .name = "slow", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(std::make_shared<SlowSink>()), .inputs = {text_row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<SlowSink*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    const auto* rows = static_cast<const TextRow*>(in);
    for (std::int64_t index = 0; index < n; ++index) {
      if (self.shut) {
        self.standing = true;
        self.standing.notify_all();
        self.shut.wait(true);
        self.standing = false;
      }
      bool same = rows[index].sequence == self.rows;
      for (int round = 0; round < kSlowness; ++round)
        same = same && std::memcmp(rows[index].text.pointer, self.expected.data(), kTextBytes) == 0;
      if (!same) self.disordered = true;
      ++self.rows;
    }
    return 0;
  };
  return spec;
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double overload_seconds() {
  const char* given = std::getenv("REL_OVERLOAD_SECONDS");
  return given == nullptr ? 1 : std::atof(given);
}

constexpr std::size_t kQueueRecords = 256;

// What is inside when the bound by work shrinks stays, so only the bound by records holds at every moment.
void check_bounds(const Sample& sample) {
  for (const OperatorSample& each : sample.operators) CHECK(each.queued <= kQueueRecords && each.queue_capacity <= kQueueRecords);
}

std::uint64_t made(const Sample& sample) { return sample.operators.front().tuples_out; }

// Slow first, until every queue has been full many times; then nothing moves for `seconds`; then everything arrives.
void overload(const char* models, double seconds) {
  constexpr std::size_t kLength = 6;
  constexpr std::chrono::milliseconds kLook{10};
  constexpr int kStill = 20;  // looks in which the source made nothing
  Rig rig({.queue_records = kQueueRecords, .queue_bytes = 1U << 20});
  OperatorId previous = rig.add(text_source());
  for (std::size_t index = 0; index <= kLength; ++index) {
    TestOperator spec = index == kLength ? slow_sink() : text_pass();
    spec.model = model_for(models, index);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  auto& sink = state_of<SlowSink>(rig.specs.back());
  rig.scheduler.start({.thread_count = 2});
  CHECK(eventually([&] {
    check_bounds(rig.scheduler.sample());
    return sink.rows > 20'000;
  }));
  sink.shut = true;
  sink.standing.wait(false);
  std::uint64_t before = 0;
  double resident = 0;
  for (int still = 0; still < kStill; ++still) {
    const std::uint64_t now = made(rig.scheduler.sample());
    if (now != before) still = 0;
    before = now;
    CHECK(!rig.scheduler.wait_for(kLook));
    resident = resident_bytes();  // every time: what looking takes by itself is part of the warm-up
  }
  const std::int64_t taken = sink.rows;
  double most = resident;
  std::size_t queued = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    CHECK(!rig.scheduler.wait_for(kLook));
    const Sample sample = rig.scheduler.sample();
    check_bounds(sample);
    queued = 0;
    for (const OperatorSample& each : sample.operators) queued += each.queued;
    most = std::max(most, resident_bytes());
  }
  CHECK_EQ(sink.rows.load(), taken);
  std::printf("       %-3s stood still for %.0f s: %zu rows queued, resident %.1f MiB, most %.3f of it\n", models, seconds, queued,
              resident / (1 << 20), most / resident);
  CHECK(most <= kMostGrowth * resident);
  sink.shut = false;
  sink.shut.notify_all();
  CHECK(eventually([&] { return sink.rows > taken + 20'000; }));
  rig.scheduler.stop(true);  // the source never ends
  CHECK(!rig.scheduler.failure().has_value());
  rig.check_exclusive();
  CHECK_EQ(sink.rows.load(), state_of<Source>(rig.specs.front()).next);
  CHECK(!sink.disordered);
}

}  // namespace

TEST(overload_keeps_queues_and_memory_bounded_and_loses_nothing) {
  for (const char* models : {"d", "t", "md"}) overload(models, overload_seconds() / 3);
}

REL_TEST_MAIN
