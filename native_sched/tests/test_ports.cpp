// Operators with several ports: firing rules, back-pressure at stages, few threads, loops (P22, P33, P34, J02, J03). Conservation and
// order per stream and port, at 1, 2 and 8 threads, under all models that there are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "pipeline.hpp"
#include "rayelastic/string_view.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::int64_t kRows = 20'000;
constexpr unsigned kThreads[] = {1, 2, 8};
constexpr const char* kModels[] = {"m", "d", "t", "md", "dmt"};

void at_all(const std::function<void(unsigned threads, const char* models)>& body) {
  for (const unsigned threads : kThreads) {
    for (const char* models : kModels) body(threads, models);
  }
}

// A chain of operators behind `from`, whose rows come from its output port `output`.
OperatorId behind(Rig& rig, OperatorId from, std::size_t length, const char* models, std::size_t output = 0) {
  for (std::size_t index = 0; index < length; ++index) {
    OperatorSpec spec = pass("pass");
    spec.model = model_for(models, index);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(from, id, index == 0 ? output : 0);
    from = id;
  }
  return from;
}

// A conjunctive operator that sees that each port's rows come in order and in the counts that it asked for. Gives, for each firing,
// one row of the firing's number; what comes after a port's end is only counted.
struct Zip : Guarded {
  std::vector<Demand> demands;
  std::vector<std::int64_t> next;  // by port
  std::int64_t firings = 0;
  std::int64_t rest = 0;  // rows
  std::int64_t most = 0;  // rows of one port in one call
  std::atomic<bool> wrong{false};
};

OperatorSpec zip(std::vector<Demand> demands, std::string name = "zip") {
  auto state = std::make_shared<Zip>();
  state->demands = demands;
  state->next.resize(demands.size(), 0);
  OperatorSpec spec{.name = std::move(name),
                    .flags = REL_ON_FINISH,
                    .state = std::shared_ptr<Guarded>(state),
                    .input = row_schema(),
                    .output = row_schema()};
  spec.further_inputs.resize(demands.size() - 1, row_schema());
  spec.demands = std::move(demands);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Zip*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    const std::int64_t firings = rel_firings(context);
    if (firings < 0) {
      self.finished = true;
      return 0;
    }
    bool all = true;
    for (std::size_t port = 0; port < self.demands.size(); ++port) {
      std::int64_t count = -1;
      const auto* rows = static_cast<const Row*>(rel_staged(context, static_cast<std::int32_t>(port), &count));
      const Demand& demand = self.demands[port];
      all = all && count >= demand.count;
      if (count != rel_staged_count(context, static_cast<std::int32_t>(port)) || count > capacity) self.wrong = true;
      if (port == 0 && (count != n || (n > 0 && rows != in))) self.wrong = true;
      if (firings > 0 && (demand.kind == Demand::Kind::Exact ? count != firings * demand.count : count < demand.count)) self.wrong = true;
      for (std::int64_t index = 0; index < count; ++index) {
        if (rows[index].sequence != self.next[port]++) self.wrong = true;
      }
      if (firings == 0) self.rest += count;
      self.most = std::max(self.most, count);
    }
    if ((firings == 0 && all) || rel_staged(context, 99, nullptr) != nullptr) self.wrong = true;
    for (std::int64_t index = 0; index < firings; ++index) static_cast<Row*>(out)[index] = {0, self.firings++};
    return firings;
  };
  return spec;
}

Zip& zip_of(Rig& rig, OperatorId id) { return state_of<Zip>(rig.specs[id]); }

void expect_zipped(Rig& rig, OperatorId id, std::int64_t firings, const std::vector<std::int64_t>& rows) {
  const Zip& self = zip_of(rig, id);
  CHECK(!self.wrong.load());
  CHECK(self.finished.load());
  CHECK_EQ(self.firings, firings);
  CHECK_EQ(self.next.size(), rows.size());
  std::int64_t used = 0;
  for (std::size_t port = 0; port < rows.size(); ++port) {
    CHECK_EQ(self.next[port], rows[port]);
    used += firings * self.demands[port].count;
  }
  CHECK_EQ(self.rest, std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) - used);
}

Demand exact(std::int64_t count) { return {.count = count}; }
Demand at_least(std::int64_t count) { return {.count = count, .kind = Demand::Kind::AtLeast}; }

// One source with a chain for each port of the barrier, and a sink behind it.
OperatorId barrier(Rig& rig, const std::vector<Demand>& demands, const std::vector<std::int64_t>& rows, std::size_t length,
                   const char* models) {
  std::vector<OperatorId> ends;
  for (const std::int64_t count : rows) {
    const OperatorId from = rig.add(source(static_cast<std::int64_t>(ends.size()), count));
    ends.push_back(behind(rig, from, length, models));
  }
  OperatorSpec spec = zip(demands);
  spec.model = model_for(models, length);
  const OperatorId id = rig.add(std::move(spec));
  for (std::size_t port = 0; port < ends.size(); ++port) rig.scheduler.connect(ends[port], id, 0, port);
  OperatorSpec last = sink();
  last.model = model_for(models, length + 1);
  rig.scheduler.connect(id, rig.add(std::move(last)));
  return id;
}

void run_barrier(const std::vector<Demand>& demands, const std::vector<std::int64_t>& rows, std::int64_t firings, std::size_t length = 2,
                 SchedulerOptions options = {}) {
  at_all([&](unsigned threads, const char* models) {
    Rig rig(options);
    const OperatorId id = barrier(rig, demands, rows, length, models);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, id, firings, rows);
    expect_rows(rig.last_sink(), firings);
    CHECK(rig.scheduler.in_force().models[id] != ThreadingModel::Manual);
  });
}

// Even rows to output port 0, odd ones to port 1, in runs; each numbered anew.
OperatorSpec split() {
  OperatorSpec spec{.name = "split", .state = std::make_shared<Guarded>(), .input = row_schema(), .output = row_schema()};
  spec.further_outputs = {row_schema()};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    Row odd[64];
    std::int64_t odds = 0;
    std::int64_t evens = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      Row row = static_cast<const Row*>(in)[index];
      const bool is_odd = row.sequence % 2 != 0;
      row.sequence /= 2;
      if (!is_odd) {
        static_cast<Row*>(out)[evens++] = row;
        continue;
      }
      odd[odds++] = row;
      if (odds < 64) continue;
      if (rel_emit(context, 1, odd, odds) != 0) return REL_STOPPED;
      odds = 0;
    }
    if (rel_emit(context, 1, odd, odds) != 0) return REL_STOPPED;
    return evens;
  };
  return spec;
}

// Keeps one row of `of`, and numbers them anew.
OperatorSpec keep_one_of(std::int64_t of) {
  struct Keep : Guarded {
    std::int64_t of = 1;
    std::int64_t kept = 0;
  };
  auto state = std::make_shared<Keep>();
  state->of = of;
  OperatorSpec spec = pass("keep");
  spec.flags = REL_FILTER;
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Keep*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      if (row.sequence % self.of == 0) static_cast<Row*>(out)[made++] = {row.stream, self.kept++};
    }
    return made;
  };
  return spec;
}

// Two inputs of different records, taken as they come: rows, and wide rows that carry three of them.
struct Wide {
  Row rows[3];
};

std::shared_ptr<const Schema> wide_schema() {
  std::vector<Field> fields;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) fields.push_back({.name = name, .type = Type::Int64, .format = "l"});
  return std::make_shared<Schema>(fields);
}

OperatorSpec widen() {
  OperatorSpec spec{.name = "widen", .state = std::make_shared<Guarded>(), .input = row_schema(), .output = wide_schema()};
  spec.flags = REL_ONE_TO_ONE;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      for (std::int64_t part = 0; part < 3; ++part) static_cast<Wide*>(out)[index].rows[part] = {row.stream, 3 * row.sequence + part};
    }
    return n;
  };
  return spec;
}

OperatorSpec either() {
  OperatorSpec spec{
      .name = "either", .flags = REL_IN_PLACE, .state = std::make_shared<Guarded>(), .input = row_schema(), .output = row_schema()};
  spec.further_inputs = {wide_schema()};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    std::int64_t count = 0;
    if (rel_firings(context) != -1 || rel_staged(context, rel_port(context), &count) != in || count != n) return REL_FAILED(0);
    if (rel_port(context) == 0) {
      if (out != in) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
      return n;
    }
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      for (const Row row : static_cast<const Wide*>(in)[index].rows) {
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

// The head of a loop: what comes in at port 0 is new, what comes in at port 1 has gone round. A row leaves by output port 1 when it has
// gone round `rounds` times; `copies` of it go round else. Rows carry in `stream` how often they did.
struct Head : Guarded {
  std::int64_t rounds = 0;
  std::int64_t copies = 1;
  std::int64_t left = 0;
};

OperatorSpec head(std::int64_t rounds, std::int64_t copies = 1) {
  auto state = std::make_shared<Head>();
  state->rounds = rounds;
  state->copies = copies;
  OperatorSpec spec{.name = "head", .state = std::shared_ptr<Guarded>(state), .input = row_schema(), .output = row_schema()};
  spec.further_inputs = {row_schema()};
  spec.further_outputs = {row_schema()};
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
struct Tally : Guarded {
  std::map<std::int64_t, std::int64_t> rows;  // by sequence
  std::atomic<std::int64_t> count{0};
  std::int64_t stream = 0;
  std::atomic<bool> wrong{false};
};

OperatorSpec tally(std::int64_t stream) {
  auto state = std::make_shared<Tally>();
  state->stream = stream;
  OperatorSpec spec{.name = "tally", .flags = REL_SINK | REL_ON_FINISH, .state = std::shared_ptr<Guarded>(state), .input = row_schema()};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Tally*>(static_cast<Guarded*>(opaque));
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
OperatorId loop(Rig& rig, OperatorSpec head_spec, std::int64_t rows, std::size_t body, const char* models, std::int64_t rounds) {
  const OperatorId from = rig.add(source(0, rows));
  head_spec.model = model_for(models, 0);
  const OperatorId top = rig.add(std::move(head_spec));
  rig.scheduler.connect(from, top);
  const OperatorId end = behind(rig, top, body, models);
  rig.scheduler.connect(end, top, 0, 1, true);
  OperatorSpec last = tally(rounds);
  last.model = model_for(models, body + 1);
  rig.scheduler.connect(top, rig.add(std::move(last)), 1);
  return top;
}

void expect_tally(const Tally& end, std::int64_t rows, std::int64_t each) {
  CHECK(!end.wrong.load());
  CHECK(end.finished.load());
  CHECK_EQ(end.count.load(), rows * each);
  CHECK_EQ(static_cast<std::int64_t>(end.rows.size()), rows);
  CHECK(std::ranges::all_of(end.rows, [each](const auto& row) { return row.second == each; }));
}

}  // namespace

TEST(a_zip_takes_one_of_each) { run_barrier({exact(1), exact(1)}, {kRows, kRows}, kRows); }
TEST(a_zip_with_full_queues) { run_barrier({exact(1), exact(1)}, {kRows, kRows}, kRows, 2, {.queue_records = 8}); }
TEST(a_zip_takes_two_and_three) { run_barrier({exact(2), exact(3)}, {kRows, kRows / 2 * 3}, kRows / 2); }
TEST(a_zip_takes_more_than_a_run) { run_barrier({exact(700), exact(1)}, {7000, 10}, 10); }
TEST(a_conjunctive_operator_may_have_one_port) { run_barrier({exact(7)}, {kRows}, kRows / 7); }

TEST(a_zip_of_unequal_lengths_gets_the_rest_at_the_end) {
  run_barrier({exact(1), exact(1)}, {kRows, 5'000}, 5'000);
  run_barrier({exact(2), exact(3)}, {1'001, kRows}, 500);
  run_barrier({exact(1), exact(1)}, {0, kRows}, 0);
  run_barrier({exact(3), exact(3)}, {0, 0}, 0);
}

TEST(at_least_takes_all_that_is_there) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    const std::vector<std::int64_t> rows = {kRows, 600};
    const OperatorId id = barrier(rig, {at_least(5), exact(2)}, rows, 1, models);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    const Zip& self = zip_of(rig, id);
    CHECK(!self.wrong.load() && self.finished.load());
    CHECK_EQ(self.next[0], rows[0]);
    CHECK_EQ(self.next[1], rows[1]);
    CHECK(self.firings > 0 && self.firings <= 300);
    expect_rows(rig.last_sink(), self.firings);
  });
}

TEST(a_barrier_of_five_ports) {
  run_barrier(std::vector<Demand>(5, exact(1)), std::vector<std::int64_t>(5, 4'000), 4'000, 5, {.queue_records = 16});
}

TEST(barriers_in_a_row) {
  at_all([](unsigned threads, const char* models) {
    constexpr std::int64_t kEach = 3'000;
    Rig rig({.queue_records = 16});
    CHECK_EQ(rig.scheduler.minimum_threads(), 1U);
    OperatorId previous = barrier(rig, {exact(1), exact(1), exact(1)}, {kEach, kEach, kEach}, 2, models);
    for (int step = 0; step < 3; ++step) {
      const OperatorId other = behind(rig, rig.add(source(step, kEach)), 2, models);
      const OperatorId id = rig.add(zip({exact(1), exact(1)}));
      rig.scheduler.connect(behind(rig, previous, 2, models), id);
      rig.scheduler.connect(other, id, 0, 1);
      previous = id;
    }
    const OperatorId end = rig.add(sink());
    rig.scheduler.connect(previous, end);
    CHECK_EQ(rig.scheduler.minimum_threads(), 4U);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_rows(rig.last_sink(), kEach);
    expect_zipped(rig, previous, kEach, {kEach, kEach});
  });
}

TEST(two_outputs_split_and_joined) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    OperatorSpec spec = split();
    spec.model = model_for(models, 1);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(rig.add(source(0, 2 * kRows)), id);
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, id, 2, models), join);
    rig.scheduler.connect(behind(rig, id, 1, models, 1), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, kRows, {kRows, kRows});
    expect_rows(rig.last_sink(), kRows);
  });
}

TEST(a_diamond_with_a_filter_on_one_side) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    const OperatorId top = behind(rig, rig.add(source(0, kRows)), 1, models);
    OperatorSpec spec = keep_one_of(4);
    spec.model = model_for(models, 2);
    const OperatorId filter = rig.add(std::move(spec));
    rig.scheduler.connect(top, filter);
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, filter, 1, models), join);
    rig.scheduler.connect(behind(rig, top, 2, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, kRows / 4, {kRows / 4, kRows});
    expect_rows(rig.last_sink(), kRows / 4);
  });
}

TEST(a_diamond_that_keeps_too_much_back_fails) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16, .loop_bytes = 64 * 1024});
    const OperatorId top = behind(rig, rig.add(source(0, -1)), 1, models);
    const OperatorId filter = rig.add(keep_one_of(1'000'000'000));
    rig.scheduler.connect(top, filter);
    const OperatorId join = rig.add(zip({exact(2), exact(1)}));
    rig.scheduler.connect(filter, join);
    rig.scheduler.connect(behind(rig, top, 1, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = rig.scheduler.failure();
    CHECK(failure.has_value());
    CHECK_EQ(failure->operator_name, "zip");
    CHECK(failure->message.find("loop_bytes") != std::string::npos);
    rig.scheduler.stop(false);
  });
}

TEST(a_fast_stream_waits_for_a_slow_one) {
  at_all([](unsigned threads, const char* models) {
    // The second source gives a row only after the first one can't go on: were its rows kept instead, it would never be blocked.
    struct Slow : Guarded {
      const Scheduler* scheduler = nullptr;
      std::int64_t sent = 0;
    };
    auto slow = std::make_shared<Slow>();
    OperatorSpec spec{.name = "slow", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(slow), .output = row_schema()};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Slow*>(static_cast<Guarded*>(opaque));
      if (self.sent == 0 && !eventually([&] { return self.scheduler->sample().sleeps > 0 || context->stopping(); })) return REL_FAILED(0);
      *static_cast<Row*>(out) = {1, self.sent++};
      if (self.sent == 2'000) rel_finish(context);
      return 1;
    };
    Rig rig({.queue_records = 64, .loop_bytes = 1'000});
    slow->scheduler = &rig.scheduler;
    const OperatorId join = rig.add(zip({exact(1), exact(1)}));
    rig.scheduler.connect(behind(rig, rig.add(source(0, kRows)), 2, models), join);
    rig.scheduler.connect(behind(rig, rig.add(spec), 2, models), join, 0, 1);
    rig.scheduler.connect(join, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_zipped(rig, join, 2'000, {kRows, 2'000});
    CHECK(zip_of(rig, join).most <= 256);
  });
}

TEST(a_disjunctive_join_of_two_schemas) {
  at_all([](unsigned threads, const char* models) {
    for (const std::size_t queue_records : {16U, 1024U}) {
      Rig rig({.queue_records = queue_records});
      OperatorSpec spec = either();
      spec.model = model_for(models, 0);
      const OperatorId join = rig.add(std::move(spec));
      for (std::int64_t stream = 0; stream < 2; ++stream)
        rig.scheduler.connect(behind(rig, rig.add(source(stream, kRows)), 2, models), join);  // a union at port 0
      for (std::int64_t stream = 2; stream < 4; ++stream) {
        const OperatorId wide = rig.add(widen());
        rig.scheduler.connect(behind(rig, rig.add(source(stream, kRows)), 1, models), wide);
        rig.scheduler.connect(wide, join, 0, 1);
      }
      rig.scheduler.connect(join, rig.add(sink()));
      rig.scheduler.start({.thread_count = threads});
      rig.finish();
      expect_rows(rig.last_sink(), 8 * kRows);
      CHECK_EQ(rig.last_sink().next.size(), 4U);
    }
  });
}

TEST(models_and_threads_change_under_load) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const unsigned threads : kThreads) {
      std::mt19937_64 random(seed);
      Rig rig({.queue_records = seed == 1 ? 16U : 256U});
      OperatorSpec wide = widen();
      const OperatorId join = rig.add(either());
      const OperatorId wide_id = rig.add(wide);
      rig.scheduler.connect(behind(rig, rig.add(source(0, -1)), 3, "md"), join);
      rig.scheduler.connect(behind(rig, rig.add(source(1, -1)), 2, "md"), wide_id);
      rig.scheduler.connect(wide_id, join, 0, 1);
      const OperatorId end = rig.add(sink());
      rig.scheduler.connect(join, end);
      // Beside it, a split that is zipped again.
      const OperatorId halves = rig.add(split());
      rig.scheduler.connect(behind(rig, rig.add(source(2, -1)), 1, "md"), halves);
      const OperatorId both = rig.add(zip({exact(1), exact(1)}));
      rig.scheduler.connect(behind(rig, halves, 2, "md"), both);
      rig.scheduler.connect(behind(rig, halves, 1, "md", 1), both, 0, 1);
      const OperatorId other_end = rig.add(sink("other"));
      rig.scheduler.connect(both, other_end);
      rig.scheduler.start({.thread_count = threads});
      Sink& rows = state_of<Sink>(rig.specs[end]);
      Sink& others = state_of<Sink>(rig.specs[other_end]);
      constexpr ThreadingModel kAll[] = {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated};
      for (int step = 0; step < 15; ++step) {
        const std::int64_t until = rows.rows.load() + 300;
        const std::int64_t until_other = others.rows.load() + 300;
        CHECK(eventually([&] { return rows.rows.load() >= until && others.rows.load() >= until_other; }));
        Desired desired{.thread_count = 1 + static_cast<unsigned>(random() % threads)};
        for (OperatorId id = 0; id < rig.specs.size(); ++id) desired.models[id] = kAll[random() % 3];
        (void)rig.scheduler.apply(desired);
      }
      rig.scheduler.stop(true);
      CHECK(!rig.scheduler.failure().has_value());
      rig.check_exclusive();
      std::int64_t made[3] = {};
      for (const OperatorSpec& spec : rig.specs) {
        if ((spec.flags & REL_SOURCE) != 0) made[state_of<Source>(spec).stream] = state_of<Source>(spec).next;
      }
      expect_rows(rows, made[0] + 3 * made[1]);
      const Zip& zipped = zip_of(rig, both);
      CHECK(!zipped.wrong.load() && zipped.finished.load());
      CHECK_EQ(zipped.next[0], (made[2] + 1) / 2);
      CHECK_EQ(zipped.next[1], made[2] / 2);
      CHECK_EQ(others.rows.load(), made[2] / 2);
    }
  }
}

TEST(stop_ends_whoever_waits_for_a_firing) {
  at_all([](unsigned threads, const char* models) {
    // A source that gives nothing, until it is stopped.
    OperatorSpec silent{.name = "silent", .flags = REL_SOURCE, .state = std::make_shared<Guarded>(), .output = row_schema()};
    silent.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      static_cast<Guarded*>(opaque)->finished.wait(false);
      return 0;
    };
    silent.interrupt = [](void* opaque) {
      static_cast<Guarded*>(opaque)->finished = true;
      static_cast<Guarded*>(opaque)->finished.notify_all();
    };
    for (const bool drain : {false, true}) {
      silent.state = std::make_shared<Guarded>();
      Rig rig({.queue_records = 16});
      const OperatorId join = rig.add(zip({exact(1), exact(1)}));
      const OperatorId from = rig.add(source(0, -1));
      rig.scheduler.connect(behind(rig, from, 3, models), join);
      rig.scheduler.connect(behind(rig, rig.add(silent), 2, models), join, 0, 1);
      rig.scheduler.connect(join, rig.add(sink()));
      rig.scheduler.start({.thread_count = threads});
      CHECK(eventually([&] { return rig.scheduler.sample().operators[join].queued > 0 && rig.scheduler.sample().sleeps > 0; }));
      rig.scheduler.stop(drain);
      CHECK(!rig.scheduler.failure().has_value());
      CHECK(!zip_of(rig, join).wrong.load());
      if (drain) expect_zipped(rig, join, 0, {state_of<Source>(rig.specs[from]).next, 0});
    }
  });
}

// All that the barrier lacks comes into queues while the one thread that was asked for waits for room in front of the barrier; and no
// source helps: they give a row only when the one before has been taken, or when a thread sleeps.
TEST(one_thread_is_replaced_while_it_waits) {
  struct Gentle : Guarded {
    const Scheduler* scheduler = nullptr;
    OperatorId behind = 0;
    bool last = false;
    std::int64_t sent = 0;
  };
  const auto gentle = [](const Scheduler& scheduler, bool last) {
    auto state = std::make_shared<Gentle>();
    state->scheduler = &scheduler;
    state->last = last;
    OperatorSpec spec{.name = "gentle", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(state), .output = row_schema()};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Gentle*>(static_cast<Guarded*>(opaque));
      const bool may = eventually([&] {
        if (context->stopping()) return true;
        const Sample sample = self.scheduler->sample();
        return self.last ? sample.sleeps > 0 : sample.operators[self.behind].queued == 0;
      });
      if (!may) return REL_FAILED(0);
      if (self.last) rel_finish(context);
      const std::int64_t count = self.last ? 10 : 1;
      for (std::int64_t index = 0; index < count; ++index) static_cast<Row*>(out)[index] = {0, self.sent++};
      return count;
    };
    return spec;
  };
  for (const bool conjunctive : {true, false}) {
    Rig rig({.queue_records = 16, .run_records = 64});
    const OperatorId fast = rig.add(gentle(rig.scheduler, false));
    const OperatorId first = behind(rig, fast, 1, "d");
    state_of<Gentle>(rig.specs[fast]).behind = first;
    const OperatorId slow = behind(rig, rig.add(gentle(rig.scheduler, true)), 2, "d");
    const OperatorId id = rig.add(zip({exact(1), exact(1)}));
    // Once in front of the barrier, once behind another one that waits.
    const OperatorId between = conjunctive ? rig.add(zip({exact(1)}, "between")) : behind(rig, first, 1, "m");
    if (conjunctive) rig.scheduler.connect(first, between);
    rig.scheduler.connect(between, id);
    rig.scheduler.connect(slow, id, 0, 1);
    rig.scheduler.connect(id, rig.add(sink()));
    rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return rig.last_sink().rows.load() == 10; }));
    rig.scheduler.stop(true);
    rig.check_exclusive();
    expect_zipped(rig, id, 10, {state_of<Gentle>(rig.specs[fast]).sent, 10});
  }
}

TEST(replaced_threads_go_when_they_are_needed_no_more) {
  for (const char* models : {"d", "md"}) {
    Rig rig({.queue_records = 16});
    const OperatorId join = barrier(rig, {exact(1), exact(1), exact(1)}, {-1, -1, 2'000}, 4, models);
    rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return rig.last_sink().rows.load() == 2'000; }));
    // The third port has ended: nobody waits for a firing any more.
    CHECK(eventually([&] {
      const InForce now = rig.scheduler.in_force();
      return now.thread_count == 1 && now.unsuspended == 0;
    }));
    rig.scheduler.stop(true);
    CHECK(!zip_of(rig, join).wrong.load());
    CHECK_EQ(zip_of(rig, join).firings, 2'000);
  }
}

TEST(a_gate_is_opened_by_another_operator) {
  // The gate holds its thread in user code until the key has seen a row at its second port, which comes only after the gate has been
  // entered. In front of the gate queues fill, so that other threads wait for the one inside.
  using namespace std::chrono_literals;
  for (const unsigned threads : kThreads) {
    auto open = std::make_shared<std::atomic<bool>>(false);
    struct Door : Guarded {
      std::shared_ptr<std::atomic<bool>> open;
      std::atomic<bool> entered{false};
      std::int64_t sent = 0;
    };
    auto door = std::make_shared<Door>();
    door->open = open;
    Rig rig({.queue_records = 16, .profile_period = 1ms, .stuck_after = 20ms});
    OperatorSpec gate = pass("gate");
    gate.state = std::shared_ptr<Guarded>(door);
    gate.model = ThreadingModel::Dynamic;
    gate.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      self.entered = true;
      self.entered.notify_all();
      self.open->wait(false);
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
      return n;
    };
    OperatorSpec key{.name = "key", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(door), .input = row_schema()};
    key.further_inputs = {row_schema()};
    key.model = ThreadingModel::Dynamic;
    key.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      if (rel_port(context) == 1) {
        self.open->store(true);
        self.open->notify_all();
      }
      return 0;
    };
    const OperatorId gate_id = rig.add(gate);
    const OperatorId key_id = rig.add(key);
    rig.scheduler.connect(behind(rig, rig.add(source(0, 5'000)), 4, "d"), gate_id);
    rig.scheduler.connect(gate_id, rig.add(sink()));
    const OperatorId end = rig.specs.size() - 1;
    rig.scheduler.connect(behind(rig, rig.add(source(1, 5'000)), 4, "d"), key_id);
    OperatorSpec opener{.name = "opener", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(door), .output = row_schema()};
    opener.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Door*>(static_cast<Guarded*>(opaque));
      self.entered.wait(false);
      *static_cast<Row*>(out) = {2, self.sent++};
      if (self.sent == 5'000) rel_finish(context);
      return 1;
    };
    rig.scheduler.connect(behind(rig, rig.add(opener), 4, "d"), key_id, 0, 1);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_rows(state_of<Sink>(rig.specs[end]), 5'000);
  }
}

TEST(each_row_goes_round_a_loop) {
  at_all([](unsigned threads, const char* models) {
    for (const std::size_t body : {0U, 1U, 4U}) {
      Rig rig({.queue_records = 16});
      const OperatorId top = loop(rig, head(5), 3'000, body, models, 5);
      rig.scheduler.start({.thread_count = threads});
      rig.finish();
      CHECK_EQ(state_of<Head>(rig.specs[top]).left, 3'000);
      CHECK(rig.scheduler.sample().operators[top].final);
      expect_tally(state_of<Tally>(rig.specs.back()), 3'000, 1);
    }
  });
}

TEST(a_loop_that_makes_more_of_each_row) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    (void)loop(rig, head(4, 3), 300, 2, models, 4);
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    expect_tally(state_of<Tally>(rig.specs.back()), 300, 81);
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
    CHECK(!state_of<Tally>(rig.specs.back()).finished.load());
  });
}

// Rows go round by one of two ways, which feed the head apart; and the second way by two edges that meet again inside the loop.
TEST(several_feedback_edges_into_one_head) {
  at_all([](unsigned threads, const char* models) {
    Rig rig({.queue_records = 32});
    OperatorSpec halves = split();  // halves a row's number each time: by its binary digits it goes the one way or the other
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
    CHECK_EQ(state_of<Tally>(rig.specs.back()).count.load(), expected);
    CHECK(!state_of<Tally>(rig.specs.back()).wrong.load());
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
    OperatorSpec slow = pass("slow");
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
    expect_tally(state_of<Tally>(rig.specs.back()), 40, 1);
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
    Tally& end = state_of<Tally>(rig.specs.back());
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
  OperatorSpec last = pass("drops");
  last.process = [](const void*, std::int64_t, void*, std::int64_t, void*, rel_context*) -> std::int64_t { return 0; };
  const OperatorId from = rig.add(source(0, kRows));
  OperatorSpec top = pass("top");
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
    OperatorSpec spec{.name = "words", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(std::make_shared<Words>()), .output = schema};
    spec.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
      auto& self = *static_cast<Words*>(static_cast<Guarded*>(opaque));
      for (int index = 0; index < 50; ++index) {
        const std::string word = Words::word(self.made++);
        void* memory = rel_allocate(context, static_cast<std::int64_t>(word.size()));
        std::memcpy(memory, word.data(), word.size());
        static_cast<StringView*>(out)[index] = StringView(static_cast<const char*>(memory), static_cast<std::uint32_t>(word.size()));
      }
      if (self.made == 5'000) rel_finish(context);
      return 50;
    };
    return spec;
  };
  at_all([&](unsigned threads, const char* models) {
    Rig rig({.queue_records = 16});
    // Round the loop twice, by a count of the head's calls per record: port 0 sends it in, port 1 lets it out by its output port 1.
    OperatorSpec round{.name = "round", .state = std::make_shared<Guarded>(), .input = schema, .output = schema};
    round.further_inputs = {schema};
    round.further_outputs = {schema};
    round.model = model_for(models, 0);
    round.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context* context) -> std::int64_t {
      if (rel_port(context) == 1) return rel_emit(context, 1, in, n) == 0 ? 0 : REL_STOPPED;
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(StringView));
      return n;
    };
    const OperatorId top = rig.add(round);
    rig.scheduler.connect(rig.add(maker()), top);
    OperatorSpec body{.name = "body", .state = std::make_shared<Guarded>(), .input = schema, .output = schema};
    body.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(StringView));
      return n;
    };
    body.model = model_for(models, 1);
    const OperatorId middle = rig.add(body);
    rig.scheduler.connect(top, middle);
    rig.scheduler.connect(middle, top, 0, 1, true);
    OperatorSpec both{.name = "both", .flags = REL_SINK, .input = schema};
    both.state = std::shared_ptr<Guarded>(std::make_shared<Words>());
    both.further_inputs = {schema};
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

TEST(a_failure_in_a_firing_is_a_value) {
  at_all([](unsigned threads, const char* models) {
    Rig rig;
    const OperatorId id = barrier(rig, {exact(1), exact(1)}, {-1, -1}, 1, models);
    Rig failing;
    for (OperatorId each = 0; each < rig.specs.size(); ++each) {
      OperatorSpec spec = rig.specs[each];
      if (each == id) {
        spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void*, rel_context* context) -> std::int64_t {
          for (std::int64_t index = 0; index < n; ++index) {
            if (static_cast<const Row*>(in)[index].sequence < 1'000) continue;
            rel_fail(context, "no more");
            return REL_FAILED(index);
          }
          return 0;
        };
      }
      (void)failing.add(std::move(spec));
    }
    // source, pass, source, pass, zip, sink: as barrier() has added them
    failing.scheduler.connect(0, 1);
    failing.scheduler.connect(2, 3);
    failing.scheduler.connect(1, 4, 0, 0);
    failing.scheduler.connect(3, 4, 0, 1);
    failing.scheduler.connect(4, 5);
    failing.scheduler.start({.thread_count = threads});
    CHECK(failing.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = failing.scheduler.failure();
    CHECK(failure.has_value());
    CHECK_EQ(failure->operator_name, "zip");
    CHECK_EQ(failure->message, "no more");
    CHECK_EQ(reinterpret_cast<const Row*>(failure->record.data())->sequence, 1'000);
    failing.scheduler.stop(false);
  });
}

TEST(contradictions_are_refused) {
  const auto refused = [](const std::function<void(Scheduler&)>& build, const std::string& part) {
    Scheduler scheduler;
    std::string message;
    try {
      build(scheduler);
      scheduler.start({});
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    scheduler.stop(false);
    if (message.find(part) == std::string::npos) fail(__FILE__, __LINE__, "not refused for '" + part + "' but: " + message);
  };
  refused([](Scheduler& s) { s.add_operator(zip({exact(0), exact(1)})); }, "one record of each port");
  refused(
      [](Scheduler& s) {
        OperatorSpec spec = zip({exact(1), exact(1)});
        spec.demands.pop_back();
        s.add_operator(spec);
      },
      "a demand for each");
  refused(
      [](Scheduler& s) {
        OperatorSpec spec = either();
        spec.further_inputs.push_back(nullptr);
        s.add_operator(spec);
      },
      "without schema");
  refused(
      [](Scheduler& s) {
        OperatorSpec spec = source(0, 1);
        spec.demands = {exact(1)};
        s.add_operator(spec);
      },
      "no input ports");
  refused([](Scheduler& s) { s.connect(s.add_operator(source(0, 1)), s.add_operator(sink()), 1); }, "no output port 1");
  refused([](Scheduler& s) { s.connect(s.add_operator(source(0, 1)), s.add_operator(sink()), 0, 1); }, "no input port 1");
  refused([](Scheduler& s) { s.connect(s.add_operator(source(0, 1)), s.add_operator(either()), 0, 1); }, "another size");
  refused([](Scheduler& s) { s.connect(s.add_operator(source(0, 1)), s.add_operator(either())); }, "feeds its input port 1");
  const auto looped = [](Scheduler& s, OperatorSpec first, OperatorSpec second, bool feedback) {
    const OperatorId from = s.add_operator(source(0, 1));
    const OperatorId top = s.add_operator(std::move(first));
    const OperatorId body = s.add_operator(std::move(second));
    s.connect(from, top);
    s.connect(top, body);
    s.connect(body, top, 0, 0, feedback);
    s.connect(body, s.add_operator(sink()));
    return std::pair(top, body);
  };
  refused([&](Scheduler& s) { looped(s, pass("a"), pass("b"), false); }, "feedback = true");
  refused([&](Scheduler& s) { looped(s, zip({exact(1)}), pass("b"), true); }, "can't be the head");
  refused([&](Scheduler& s) { looped(s, pass("a"), zip({exact(1)}), true); }, "conjunctive and can't stand in");
  refused([&](Scheduler& s) { looped(s, pass("a"), pass("b", REL_ON_FINISH), true); }, "end-of-input call");
  refused([&](Scheduler& s) { s.connect(s.add_operator(source(1, 1)), looped(s, pass("a"), pass("b"), true).second); }, "elsewhere than");
  refused(
      [&](Scheduler& s) {
        const auto [top, body] = looped(s, pass("a"), pass("b"), true);
        s.connect(body, body, 0, 0, true);
      },
      "a loop inside");
  refused(
      [](Scheduler& s) {
        const OperatorId first = s.add_operator(source(0, 1));
        const OperatorId second = s.add_operator(source(1, 1));
        const OperatorId join = s.add_operator(either());
        const OperatorId other = s.add_operator(sink());
        const OperatorId wide = s.add_operator(widen());
        s.connect(first, join);
        s.connect(second, wide);
        s.connect(wide, join, 0, 1);
        s.connect(first, other);
        s.connect(second, join, 0, 0, true);
        s.connect(join, other);
      },
      "no loop");
}

TEST(an_output_port_that_is_not_there_is_a_failure) {
  Rig rig;
  OperatorSpec spec = pass("lost");
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void*, rel_context* context) -> std::int64_t {
    return rel_emit(context, 3, in, n) == 0 ? 0 : REL_STOPPED;
  };
  const OperatorId id = rig.add(spec);
  rig.scheduler.connect(rig.add(source(0, 10)), id);
  rig.scheduler.connect(id, rig.add(sink()));
  rig.scheduler.start({});
  CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
  CHECK(rig.scheduler.failure().has_value());
  CHECK(rig.scheduler.failure()->message.find("output port 3") != std::string::npos);
}

REL_TEST_MAIN
