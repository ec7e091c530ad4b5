// The stack that a thread needs doesn't grow with the pipeline, whatever its operators' models and whatever they give: small stacks, long
// pipelines, and queues that are full. REL_STACK_OPERATORS: how many in the longest pipeline of full queues (./dev bench stacks: 10,000).
#include <cstdlib>
#include <latch>

#include "text_rows.hpp"
#include "thread_stacks.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

std::size_t stack_operators() {
  const char* given = std::getenv("REL_STACK_OPERATORS");
  return given != nullptr ? std::strtoul(given, nullptr, 10) : kSanitized ? 500 : 2'000;
}

constexpr std::size_t kStack = (kSanitized ? 4096 : 512) * 1024UL;  // the system's default is 8 MiB

// Of each pair of rows the first, with half its number: undoes twice().
TestOperator half(std::string name) {
  TestOperator spec = pass(std::move(name), REL_FILTER);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context*) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(state));
    std::int64_t kept = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      if (row.sequence % 2 == 0) static_cast<Row*>(out)[kept++] = {row.stream, row.sequence / 2};
    }
    return kept;
  };
  return spec;
}

struct Standing : Sink {
  std::latch open{1};
};

// A sink that takes nothing until it is opened.
TestOperator standing_sink(const std::shared_ptr<Standing>& state) {
  TestOperator spec = sink();
  spec.state = std::shared_ptr<Guarded>(state);
  static const rel_process count = sink().process;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    static_cast<Standing*>(static_cast<Guarded*>(opaque))->open.wait();
    return count(in, n, out, capacity, opaque, context);
  };
  return spec;
}

// A source, `pairs` of twice() and half(), a sink.
void expand_and_shrink(std::size_t pairs, const std::string& models, unsigned threads, std::int64_t rows) {
  const ThreadStacks small(kStack);
  Rig rig({.queue_records = 16});
  OperatorId previous = rig.add(source(0, rows));
  for (std::size_t index = 0; index < 2 * pairs + 1; ++index) {
    TestOperator spec = index == 2 * pairs ? sink() : index % 2 == 0 ? twice("twice") : half("half");
    spec.model = model_for(models, index);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  rig.scheduler.start({.thread_count = threads});
  rig.finish();
  expect_rows(rig.last_sink(), rows);
}

}  // namespace

TEST(a_long_pipeline_of_full_queues_behind_a_sink_that_stands_still) {
  const std::size_t length = stack_operators();
  CHECK(length > 0);
  constexpr std::size_t kRecords = 4;
  const auto rows = static_cast<std::int64_t>(length * kRecords + 1'000);
  for (const unsigned threads : {1U, 2U, 8U}) {
    const ThreadStacks small(kStack);
    const auto standing = std::make_shared<Standing>();
    Rig rig({.queue_records = kRecords});
    OperatorId previous = rig.add(source(0, rows));
    for (std::size_t index = 0; index <= length; ++index) {
      TestOperator spec = index == length ? standing_sink(standing) : pass("pass");
      spec.model = index == length ? ThreadingModel::Dedicated : ThreadingModel::Dynamic;  // no helper shall stand in the sink
      const OperatorId id = rig.add(std::move(spec));
      rig.scheduler.connect(previous, id);
      previous = id;
    }
    rig.scheduler.start({.thread_count = threads});
    CHECK(eventually([&] {
      std::size_t queued = 0;
      for (const OperatorSample& each : rig.scheduler.sample().operators) queued += each.queued;
      return queued >= length * kRecords * 9 / 10;
    }));
    standing->open.count_down();
    rig.finish();
    expect_rows(*standing, rows);
  }
}

TEST(a_long_pipeline_without_queues) {
  const ThreadStacks small(kStack);
  Rig rig;
  rig.chain(1'000, 5'000, "m");
  rig.scheduler.start({.thread_count = 1});
  rig.finish();
  expect_rows(rig.last_sink(), 1'000);
}

TEST(a_long_pipeline_of_texts_without_queues) {
  const ThreadStacks small(kStack);
  Rig rig;
  OperatorId previous = rig.add(source(0, 1'000));
  for (std::size_t index = 0; index < 5'000; ++index) {
    TestOperator spec = pass("allocates");
    static const rel_process plain = spec.process;
    spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) -> std::int64_t {
      return rel_allocate(context, 8) == nullptr ? REL_FAILED(0) : plain(in, n, out, capacity, state, context);
    };
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  rig.scheduler.connect(previous, rig.add(sink()));
  rig.scheduler.start({.thread_count = 1});
  rig.finish();
  expect_rows(rig.last_sink(), 1'000);
}

TEST(operators_that_give_more_than_they_take_with_queues) {
  for (const unsigned threads : {1U, 2U, 8U}) expand_and_shrink(1'000, "d", threads, 5'000);
}

TEST(operators_that_give_more_than_they_take_without_queues) { expand_and_shrink(2'000, "m", 1, 2'000); }

TEST(operators_that_give_more_than_they_take_with_some_queues) { expand_and_shrink(500, "mmmmdmm", 2, 2'000); }

REL_TEST_MAIN
