// Streams that are dealt out to channels, more and fewer while everything runs: nothing lost, nothing doubled, order as asked for.
#include <random>
#include <span>

#include "pipeline.hpp"
#include "rayelastic/operators/channels.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::size_t kChannels = 5;

// Keeps rows whose sequence isn't divisible by 3, and makes two of those that are even: more and fewer records than it takes.
TestOperator uneven(std::string name) {
  TestOperator spec{.name = std::move(name), .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(state));
    const auto* rows = static_cast<const Row*>(in);
    auto* to = static_cast<Row*>(out);
    std::int64_t made = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (rows[i].sequence % 3 == 0) continue;
      for (std::int64_t copy = 0; copy < 2 - rows[i].sequence % 2; ++copy) {
        if (made == capacity && rel_flush(context, std::exchange(made, 0)) != 0) return REL_STOPPED;
        to[made++] = rows[i];
      }
    }
    return made;
  };
  return spec;
}

// Counts rows and adds up their sequences; and whether these ever went down.
struct Sums : Guarded {
  std::int64_t rows = 0;
  std::int64_t sum = 0;
  std::int64_t last = -1;
  bool ordered = true;
};

TestOperator sums() {
  TestOperator spec{
      .name = "sums", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(std::make_shared<Sums>()), .inputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Sums*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    for (const Row& row : std::span(static_cast<const Row*>(in), static_cast<std::size_t>(n))) {
      self.ordered = self.ordered && row.sequence >= self.last;
      self.last = row.sequence;
      self.sum += row.sequence;
      ++self.rows;
    }
    return 0;
  };
  return spec;
}

void run(std::shared_ptr<Operator> dealer, std::int64_t rows, ThreadingModel model, bool ordered, ChannelWidth* width, unsigned seed) {
  Rig rig({.queue_records = 64});
  const OperatorId from = rig.add(source(0, rows));
  const OperatorId dealt = install(rig.scheduler, std::move(dealer));
  rig.scheduler.connect(from, dealt);
  std::vector<OperatorId> ends;
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    TestOperator spec = uneven("uneven" + std::to_string(channel));
    spec.model = model;
    ends.push_back(rig.add(std::move(spec)));
    rig.scheduler.connect(dealt, ends.back(), channel, 0);
  }
  OperatorId last = 0;
  if (ordered) {
    last = install(rig.scheduler, make_in_turn("in turn", row_schema(), kChannels));
    for (std::size_t channel = 0; channel < kChannels; ++channel) rig.scheduler.connect(ends[channel], last, 0, channel);
    ends = {last};
  }
  const OperatorId out = rig.add(sums());
  for (const OperatorId end : ends) rig.scheduler.connect(end, out);
  std::mt19937 dice(seed);
  rig.scheduler.start({.thread_count = 2, .models = {}});
  while (width != nullptr && !rig.scheduler.wait_for(std::chrono::microseconds(200))) width->set(1 + dice() % kChannels);
  rig.finish();
  const auto& found = state_of<Sums>(rig.specs.back());
  std::int64_t wanted = 0;
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t copies = row % 3 == 0 ? 0 : 2 - row % 2;
    wanted += copies;
    sum += copies * row;
  }
  CHECK_EQ(found.rows, wanted);
  CHECK_EQ(found.sum, sum);
  if (ordered) CHECK(found.ordered);
}

}  // namespace

TEST(channels_that_come_and_go_lose_nothing) {
  for (const ThreadingModel model : {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated}) {
    for (const bool ordered : {false, true}) {
      const auto width = std::make_shared<ChannelWidth>(kChannels, 1);
      run(make_channels("channels", row_schema(), width, ordered), 200'000, model, ordered, width.get(), 7);
    }
  }
}

TEST(channels_by_key_restore_the_order) {
  const std::vector<std::string> keys{"sequence"};
  for (const ThreadingModel model : {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated})
    run(make_keyed_channels("channels", row_schema(), keys, kChannels), 50'000, model, true, nullptr, 0);
}

TEST(a_width_stays_within_its_bounds) {
  ChannelWidth width(3, 9);
  CHECK_EQ(width.active(), std::size_t{3});
  width.set(0);
  CHECK_EQ(width.active(), std::size_t{1});
}

REL_TEST_MAIN
