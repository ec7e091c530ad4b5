// Loops of feedback edges (P34, J03): every row goes round as often as it should, and a loop ends when it is empty, at 1, 2 and 8 threads,
// under all models that there are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <random>

#include "rayelastic/record/string_view.hpp"
#include "several_ports.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

// The head of a loop: what comes in at port 0 is new, what comes in at port 1 has gone round. A row leaves by output port 1 when it has
// gone round `rounds` times; `copies` of it go round else. Rows carry in `stream` how often they did.
struct Head : Guarded {
  std::int64_t rounds = 0;
  std::int64_t copies = 1;
  std::int64_t left = 0;
};

TestOperator head(std::int64_t rounds, std::int64_t copies = 1) {
  auto state = std::make_shared<Head>();
  state->rounds = rounds;
  state->copies = copies;
  TestOperator spec{.name = "head", .state = std::shared_ptr<Guarded>(state), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.inputs.push_back(row_schema());
  spec.outputs.push_back(row_schema());
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Head*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      Row row = static_cast<const Row*>(in)[index];
      if (rel_port(context) == 1) ++row.stream;
      if (row.stream == self.rounds) {
        ++self.left;
        if (rel_emit(context, 1, &row, 1) != 0) return REL_STOPPED;
        continue;
      }
      for (std::int64_t copy = 0; copy < self.copies; ++copy) {
        if (made == capacity) {
          if (rel_flush(context, made) != 0) return REL_STOPPED;
          made = 0;
        }
        static_cast<Row*>(out)[made++] = row;
      }
    }
    return made;
  };
  return spec;
}

// Counts rows by sequence, and notices any that comes after the end.
struct Ended : Guarded {
  std::map<std::int64_t, std::int64_t> rows;  // by sequence
  std::atomic<std::int64_t> count{0};
  std::int64_t stream = 0;
  std::atomic<bool> wrong{false};
};

TestOperator tally(std::int64_t stream) {
  auto state = std::make_shared<Ended>();
  state->stream = stream;
  TestOperator spec{.name = "tally", .flags = REL_SINK | REL_ON_FINISH, .state = std::shared_ptr<Guarded>(state), .inputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Ended*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    if (self.finished) self.wrong = true;
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      if (row.stream != self.stream) self.wrong = true;
      ++self.rows[row.sequence];
    }
    self.count += n;
    if (n == 0) self.finished = true;
    return 0;
  };
  return spec;
}

// source -> head -> body -> back to port 1 of the head; output port 1 of the head -> tally. The id of the head.
OperatorId loop(Rig& rig, TestOperator head_spec, std::int64_t rows, std::size_t body, const char* models, std::int64_t rounds) {
  const OperatorId from = rig.add(source(0, rows));
  head_spec.model = model_for(models, 0);
  const OperatorId top = rig.add(std::move(head_spec));
  rig.scheduler.connect(from, top);
  const OperatorId end = behind(rig, top, body, models);
  rig.scheduler.connect(end, top, 0, 1, true);
  TestOperator last = tally(rounds);
  last.model = model_for(models, body + 1);
  rig.scheduler.connect(top, rig.add(std::move(last)), 1);
  return top;
}

void expect_tally(const Ended& end, std::int64_t rows, std::int64_t each) {
  CHECK(!end.wrong.load());
  CHECK(end.finished.load());
  CHECK_EQ(end.count.load(), rows * each);
  CHECK_EQ(static_cast<std::int64_t>(end.rows.size()), rows);
  CHECK(std::ranges::all_of(end.rows, [each](const auto& row) { return row.second == each; }));
}

}  // namespace

TEST(each_row_goes_round_a_loop) {
  at_all([](unsigned threads, const char* models) {
    for (const std::size_t body : {0U, 1U, 4U}) {
      Rig rig({.queue_records = 16});
      const OperatorId top = loop(rig, head(5), 3'000, body, models, 5);
      rig.scheduler.start({.thread_count = threads});
      rig.finish();
      CHECK_EQ(state_of<Head>(rig.specs[top]).left, 3'000);
      CHECK(rig.scheduler.sample().operators[top].final);
      expect_tally(state_of<Ended>(rig.specs.back()), 3'000, 1);
    }
  });
}

TEST(a_loop_that_makes_more_of_each_row) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    (void)loop(rig, head(4, 3), 300, 2, models, 4);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_tally(state_of<Ended>(rig.specs.back()), 300, 81);
  });
}

TEST(a_loop_beyond_its_bytes_fails) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16, .loop_bytes = 100'000});
    (void)loop(rig, head(1'000, 2), 1'000, 2, models, 1'000);
    rig.scheduler.start({.thread_count = threads});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = rig.scheduler.failure();
    CHECK(failure.has_value());
    CHECK_EQ(failure->operator_name, "head");
    CHECK(failure->message.find("loop_bytes") != std::string::npos);
    rig.scheduler.stop(false);
    CHECK(!state_of<Ended>(rig.specs.back()).finished.load());
  });
}

// Rows go round by one of two ways, which feed the head apart; and the second way by two edges that meet again inside the loop.
TEST(several_feedback_edges_into_one_head) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 32});
    TestOperator halves = split();  // halves a row's number each time: by its binary digits it goes the one way or the other
    halves.model = model_for(models, 1);
    const OperatorId from = rig.add(source(0, 2'000));
    const OperatorId top = rig.add(head(6));
    rig.scheduler.connect(from, top);
    const OperatorId ways = rig.add(std::move(halves));
    rig.scheduler.connect(behind(rig, top, 1, models), ways);
    rig.scheduler.connect(behind(rig, ways, 2, models), top, 0, 1, true);
    const OperatorId meeting = behind(rig, ways, 1, models, 1);
    const OperatorId joined = rig.add(pass("joined"));
    rig.scheduler.connect(meeting, joined);  // every row twice from here: by itself and behind another operator
    rig.scheduler.connect(behind(rig, meeting, 1, models), joined);
    rig.scheduler.connect(joined, top, 0, 1, true);
    rig.scheduler.connect(top, rig.add(tally(6)), 1);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    // A row of number s ends as one row, twice for each 1 among the six lowest binary digits of s.
    std::int64_t expected = 0;
    for (unsigned sequence = 0; sequence < 2'000; ++sequence) expected += std::int64_t{1} << std::popcount(sequence & 63U);
    CHECK_EQ(state_of<Head>(rig.specs[top]).left, expected);
    CHECK_EQ(state_of<Ended>(rig.specs.back()).count.load(), expected);
    CHECK(!state_of<Ended>(rig.specs.back()).wrong.load());
  });
}

// A source that waits for the sink: the loop is empty between its rows, and more than once. Final only after the last one is out.
TEST(a_loop_ends_only_when_it_is_empty) {
  at_all([](unsigned threads, const char* models) {
    // The last operator of the body keeps each row until the head's input has ended and probes are on their way.
    struct Slow : Guarded {
      std::int64_t calls = 0;
    };
    Rig rig({.queue_records = 16});
    const OperatorId from = rig.add(source(0, 40));
    const OperatorId top = rig.add(head(50));
    rig.scheduler.connect(from, top);
    TestOperator slow = pass("slow");
    slow.state = std::shared_ptr<Guarded>(std::make_shared<Slow>());
    slow.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      auto& self = *static_cast<Slow*>(static_cast<Guarded*>(opaque));
      const Inside inside(self);
      for (std::int64_t turn = ++self.calls % 4; turn > 0; --turn) std::this_thread::yield();
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
      return n;
    };
    slow.model = model_for(models, 1);
    const OperatorId body = rig.add(std::move(slow));
    rig.scheduler.connect(top, body);
    rig.scheduler.connect(behind(rig, body, 3, models), top, 0, 1, true);
    rig.scheduler.connect(top, rig.add(tally(50)), 1);
    rig.scheduler.start({.thread_count = threads});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    rig.finish();
    expect_tally(state_of<Ended>(rig.specs.back()), 40, 1);
    const Sample sample = rig.scheduler.sample();
    CHECK(sample.operators[top].final && sample.operators[body].final);
    CHECK_EQ(sample.operators[body].tuples_in, 40U * 50U);
  });
}

TEST(models_change_while_rows_go_round) {
  for (const unsigned threads : kThreads) {
    std::mt19937_64 random(threads);
    Rig rig({.queue_records = 32});
    const OperatorId top = loop(rig, head(7), -1, 3, "md", 7);
    rig.scheduler.start({.thread_count = threads});
    Ended& end = state_of<Ended>(rig.specs.back());
    for (int step = 0; step < 15; ++step) {
      const std::int64_t until = end.count.load() + 300;
      CHECK(eventually([&] { return end.count.load() >= until; }));
      Desired desired{.thread_count = 1 + static_cast<unsigned>(random() % threads)};
      for (OperatorId id = 0; id < rig.specs.size(); ++id) desired.models[id] = static_cast<ThreadingModel>(random() % 3);
      (void)rig.scheduler.apply(desired);
    }
    rig.scheduler.stop(true);
    CHECK(!rig.scheduler.failure().has_value());
    rig.check_exclusive();
    CHECK_EQ(state_of<Head>(rig.specs[top]).left, state_of<Source>(rig.specs.front()).next);
    expect_tally(end, state_of<Source>(rig.specs.front()).next, 1);
  }
}

TEST(a_loop_without_exit_ends_too) {
  Rig rig;
  TestOperator last = pass("drops");
  last.process = [](const void*, std::int64_t, void*, std::int64_t, void*, rel_context*) -> std::int64_t { return 0; };
  const OperatorId from = rig.add(source(0, kRows));
  TestOperator top = pass("top");
  top.flags = 0;
  const OperatorId id = rig.add(top);
  const OperatorId drops = rig.add(last);
  rig.scheduler.connect(from, id);
  rig.scheduler.connect(id, drops);
  rig.scheduler.connect(drops, id, 0, 0, true);  // into the port that the source feeds, too
  rig.scheduler.start({});
  rig.finish();
  CHECK_EQ(rig.scheduler.sample().operators[drops].tuples_in, static_cast<std::uint64_t>(kRows));
}

TEST(texts_live_as_long_as_stages_and_loops_keep_them) {
  // Texts made by the source, kept by stages behind a slow partner and by the spill of a loop.
  const auto schema = std::make_shared<Schema>(std::vector<Field>{{.name = "text", .type = Type::String, .format = "u"}});
  struct Words : Guarded {
    std::int64_t made = 0;
    std::int64_t seen[2] = {};
    std::atomic<bool> wrong{false};
    static std::string word(std::int64_t number) { return "a text that is long enough not to be inline, number " + std::to_string(number); }
  };
  const auto maker = [&schema] {
    TestOperator spec{
        .name = "words", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(std::make_shared<Words>()), .outputs = {schema}};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Words*>(static_cast<Guarded*>(opaque));
      const std::int64_t count = std::min({std::int64_t{50}, capacity, 5'000 - self.made});  // runs are as short as the work asks for
      for (std::int64_t index = 0; index < count; ++index) {
        const std::string word = Words::word(self.made++);
        void* memory = rel_allocate(context, static_cast<std::int64_t>(word.size()));
        std::memcpy(memory, word.data(), word.size());
        static_cast<StringView*>(out)[index] = StringView(static_cast<const char*>(memory), static_cast<std::uint32_t>(word.size()));
      }
      if (self.made == 5'000) rel_finish(context);
      return count;
    };
    return spec;
  };
  at_all([&](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    // Round the loop twice, by a count of the head's calls per record: port 0 sends it in, port 1 lets it out by its output port 1.
    TestOperator round{.name = "round", .state = std::make_shared<Guarded>(), .inputs = {schema}, .outputs = {schema}};
    round.inputs.push_back(schema);
    round.outputs.push_back(schema);
    round.model = model_for(models, 0);
    round.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context* context) -> std::int64_t {
      if (rel_port(context) == 1) return rel_emit(context, 1, in, n) == 0 ? 0 : REL_STOPPED;
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(StringView));
      return n;
    };
    const OperatorId top = rig.add(round);
    rig.scheduler.connect(rig.add(maker()), top);
    TestOperator body{.name = "body", .state = std::make_shared<Guarded>(), .inputs = {schema}, .outputs = {schema}};
    body.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(StringView));
      return n;
    };
    body.model = model_for(models, 1);
    const OperatorId middle = rig.add(body);
    rig.scheduler.connect(top, middle);
    rig.scheduler.connect(middle, top, 0, 1, true);
    TestOperator both{.name = "both", .flags = REL_SINK, .inputs = {schema}};
    both.state = std::shared_ptr<Guarded>(std::make_shared<Words>());
    both.inputs.push_back(schema);
    both.demands = {exact(3), at_least(1)};
    both.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Words*>(static_cast<Guarded*>(opaque));
      for (std::int32_t port = 0; port < 2; ++port) {
        std::int64_t count = 0;
        const auto* texts = static_cast<const StringView*>(rel_staged(context, port, &count));
        for (std::int64_t index = 0; index < count; ++index) {
          if (texts[index].view() != Words::word(self.seen[port]++)) self.wrong = true;
        }
      }
      return 0;
    };
    const OperatorId end = rig.add(both);
    rig.scheduler.connect(top, end, 1);
    rig.scheduler.connect(rig.add(maker()), end, 0, 1);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    const auto& seen = state_of<Words>(rig.specs[end]);
    CHECK(!seen.wrong.load());
    CHECK_EQ(seen.seen[0], 5'000);
    CHECK_EQ(seen.seen[1], 5'000);
  });
}

REL_TEST_MAIN
