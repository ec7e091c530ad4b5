// A graph of 2,305 operators (C000-15), and 1,000 ports switched at once under 16 threads.
#include "text_rows.hpp"
#include "thread_stacks.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::size_t kStack = (kSanitized ? 4096 : 512) * 1024UL;  // the system's default is 8 MiB

// Rows of one branch get a stream of their own.
struct Branch : Guarded {
  std::int64_t number = 0;
};

TestOperator relabel(std::int64_t branch) {
  auto state = std::make_shared<Branch>();
  state->number = branch;
  TestOperator spec = pass("branch" + std::to_string(branch));
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Branch*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      static_cast<Row*>(out)[index] = {row.stream * 1000 + self.number, row.sequence};
    }
    return n;
  };
  return spec;
}

void large_graph(const std::string& models, unsigned threads) {
  constexpr std::int64_t kSources = 8;
  constexpr std::int64_t kBranches = 41;
  constexpr std::int64_t kLength = 7;
  static_assert(kSources + kSources * kBranches * kLength + 1 == 2305);
  constexpr std::int64_t kRows = 500;
  Rig rig({.queue_records = 64});
  std::vector<OperatorId> ends;
  std::size_t index = 0;
  for (std::int64_t stream = 0; stream < kSources; ++stream) {
    const OperatorId from = rig.add(source(stream, kRows));
    for (std::int64_t branch = 0; branch < kBranches; ++branch) {
      OperatorId previous = from;
      for (std::int64_t place = 0; place < kLength; ++place) {
        TestOperator spec = place == 0 ? relabel(branch) : pass("pass");
        spec.model = model_for(models, index++);
        const OperatorId id = rig.add(std::move(spec));
        rig.scheduler.connect(previous, id);
        previous = id;
      }
      ends.push_back(previous);
    }
  }
  TestOperator last = sink();
  last.model = model_for(models, 0);
  const OperatorId end = rig.add(std::move(last));
  for (const OperatorId id : ends) rig.scheduler.connect(id, end);
  rig.scheduler.start({.thread_count = threads});
  rig.finish();
  expect_rows(rig.last_sink(), kSources * kBranches * kRows);
  CHECK_EQ(rig.last_sink().next.size(), static_cast<std::size_t>(kSources * kBranches));
}

}  // namespace

TEST(a_graph_of_2305_operators_runs_and_ends) {
  large_graph("m", 1);
  large_graph("d", 16);
  large_graph("mmmdmd", 4);
}

TEST(a_thousand_ports_switch_at_once_under_16_threads) {
  constexpr std::size_t kLength = 1000;
  const ThreadStacks stacks(kStack);
  // Under a sanitizer a wait in the engine may take so long that a thread seems stuck, and each replacement makes it longer.
  Rig rig({.queue_records = 64, .stuck_after = kSanitized ? std::chrono::hours(1) : std::chrono::seconds(1)});
  rig.chain(-1, kLength, "d");
  rig.scheduler.start({.thread_count = 16});
  const std::string patterns[] = {"m", "d", "md", "m", "dm", "d", "mmmmd", "d"};
  for (const std::string& models : patterns) {
    Desired desired{.thread_count = 16};
    for (OperatorId id = 1; id <= kLength + 1; ++id) desired.models[id] = model_for(models, id);
    const std::int64_t before = rig.last_sink().rows;
    CHECK(eventually([&] {
      const InForce answer = rig.scheduler.apply(desired);
      for (const auto& [id, model] : desired.models) {
        if (answer.models[id] != model) return false;
      }
      return true;
    }));
    CHECK(eventually([&] { return rig.last_sink().rows > before; }));
  }
  rig.scheduler.stop(true);  // the source never ends
  CHECK(!rig.scheduler.failure().has_value());
  rig.check_exclusive();
  expect_rows(rig.last_sink(), state_of<Source>(rig.specs.front()).next);
}

REL_TEST_MAIN
