// Epoch marks cut the streams of any graph in two: what an operator has taken at its mark is what those upstream had sent at theirs.
// Random graphs with forks and meetings, under all threading models, few threads and many, small queues; sources that end meanwhile.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pipeline.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/state/keyed_state.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::chrono::seconds kPatience{60};

struct Cut {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

// Takes rows by one port or two, in any order.
TestOperator taker(const std::string& name, bool two_ports, bool is_sink) {
  TestOperator spec = is_sink
                          ? TestOperator{.name = name, .flags = REL_SINK, .state = std::make_shared<Guarded>(), .inputs = {row_schema()}}
                          : pass(name, 0);
  if (is_sink)
    spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* state, rel_context*) -> std::int64_t {
      const Inside inside(*static_cast<Guarded*>(state));
      return 0;
    };
  if (two_ports) spec.inputs.push_back(row_schema());
  return spec;
}

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed)
      : dice_(seed), rig_({.queue_records = pick(2) == 0 ? 8U : 64U, .run_records = 64, .profile_period = {}}) {
    const std::size_t sources = 1 + pick(3);
    for (std::size_t index = 0; index < sources; ++index) {
      const bool ends = index > 0 && pick(3) == 0;
      sources_.push_back(rig_.add(source(static_cast<std::int64_t>(index), ends ? static_cast<std::int64_t>(pick(20'000)) : -1)));
    }
    const std::size_t middle = 1 + pick(6);
    for (std::size_t index = 0; index < middle; ++index) {
      TestOperator spec = pick(4) == 0 ? twice("twice" + std::to_string(index)) : taker("op" + std::to_string(index), pick(3) == 0, false);
      add(std::move(spec), 1 + pick(2));
    }
    for (OperatorId id = 0; id < rig_.specs.size(); ++id) {
      const bool taken = std::ranges::any_of(edges_, [id](const auto& edge) { return edge.first == id; });
      if (!taken) loose_.push_back(id);
    }
    const std::size_t sinks = 1 + pick(2);
    for (std::size_t index = 0; index < sinks; ++index) {
      const bool two_ports = pick(2) == 0;
      const OperatorId id = add(taker("sink" + std::to_string(index), two_ports, true), 1);
      if (index > 0) continue;
      for (const OperatorId from : loose_) connect(from, id, 0);
    }
    for (OperatorId id = 0; id < rig_.specs.size(); ++id) {
      if (std::ranges::find(sources_, id) == sources_.end()) stops_.push_back(id);
    }
  }

  void run(unsigned threads, std::int64_t epochs) {
    rig_.scheduler.stop_at_epochs(stops_);
    rig_.scheduler.start({.thread_count = threads});
    for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
      flow_on();
      epoch % 3 == 0 ? give_up(epoch) : cut(epoch);
    }
    for (const OperatorId id : sources_) rig_.scheduler.end_source(id);
    rig_.finish();
  }

 private:
  std::size_t pick(std::size_t below) { return dice_() % below; }

  OperatorId add(TestOperator spec, std::size_t inputs) {
    spec.model = static_cast<ThreadingModel>(pick(3));
    const std::size_t ports = spec.inputs.size();
    const OperatorId id = rig_.add(std::move(spec));
    for (std::size_t port = 0; port < ports; ++port) {
      std::vector<OperatorId> froms;
      for (std::size_t input = 0; input < inputs; ++input) {
        const OperatorId from = pick_upstream(id);
        if (std::ranges::find(froms, from) == froms.end()) froms.push_back(from);
      }
      for (const OperatorId from : froms) connect(from, id, port);
    }
    return id;
  }

  OperatorId pick_upstream(OperatorId below) {
    for (;;) {
      const OperatorId id = pick(below);
      if ((rig_.specs[id].flags & REL_SINK) == 0) return id;
    }
  }

  void connect(OperatorId from, OperatorId to, std::size_t port) {
    rig_.scheduler.connect(from, to, 0, port);
    edges_.emplace_back(from, to);
  }

  void flow_on() {
    const std::uint64_t before = rig_.scheduler.sample().operators[sources_[0]].tuples_out;
    while (rig_.scheduler.sample().operators[sources_[0]].tuples_out < before + 200) std::this_thread::yield();
  }

  void begin(std::int64_t epoch, std::vector<Cut>& cuts) {
    CHECK(rig_.scheduler.wait_sent(kPatience));
    CHECK_EQ(rig_.scheduler.hold(sources_, false, kPatience), "");
    cuts.resize(rig_.specs.size());
    for (const OperatorId id : sources_) cuts[id].out = rig_.scheduler.sample().operators[id].tuples_out;
    CHECK(rig_.scheduler.send_epoch(sources_, epoch));
  }

  void cut(std::int64_t epoch) {
    std::vector<Cut> cuts;
    begin(epoch, cuts);
    std::vector<OperatorId> left = stops_;
    while (!left.empty()) {
      const std::vector<OperatorId> there = rig_.scheduler.wait_epoch(left, epoch, kPatience);
      if (there.empty()) fail(__FILE__, __LINE__, "the mark doesn't come to " + rig_.specs[left.front()].name);
      for (const OperatorId id : there) {
        const Sample sample = rig_.scheduler.sample();
        cuts[id] = {sample.operators[id].tuples_in, sample.operators[id].tuples_out};
        std::erase(left, id);
      }
      rig_.scheduler.let_go(there);
    }
    for (const OperatorId id : stops_) {
      std::uint64_t sent = 0;
      for (const auto& [from, to] : edges_) sent += to == id ? cuts[from].out : 0;
      CHECK_EQ(cuts[id].in, sent);
    }
  }

  // Some are held at the mark, some have passed it on, some haven't seen it.
  void give_up(std::int64_t epoch) {
    std::vector<Cut> cuts;
    begin(epoch, cuts);
    if (pick(2) == 0) (void)rig_.scheduler.wait_epoch(stops_, epoch, kPatience);
    rig_.scheduler.abandon_epochs(epoch);
  }

  std::mt19937_64 dice_;
  std::vector<OperatorId> sources_, stops_, loose_;
  std::vector<std::pair<OperatorId, OperatorId>> edges_;
  Rig rig_;
};

void random_graphs(unsigned threads, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) RandomGraph(1000 * threads + seed).run(threads, 7);
}

}  // namespace

TEST(marks_cut_the_streams_of_random_graphs_with_one_thread) { random_graphs(1, 60); }
TEST(marks_cut_the_streams_of_random_graphs_with_two_threads) { random_graphs(2, 60); }
TEST(marks_cut_the_streams_of_random_graphs_with_eight_threads) { random_graphs(8, 40); }

// As when a mark comes over a link before the coordinator's call, which begins by giving up what was before.
TEST(who_is_held_at_a_mark_stays_when_older_ones_are_given_up) {
  Rig rig({.profile_period = {}});
  rig.chain(-1, 1, "m");
  rig.scheduler.stop_at_epochs({1});
  rig.scheduler.start({.thread_count = 1});
  for (std::int64_t epoch = 1; epoch <= 100; ++epoch) {
    CHECK(rig.scheduler.wait_sent(kPatience));
    CHECK_EQ(rig.scheduler.hold({0}, false, kPatience), "");
    CHECK(rig.scheduler.send_epoch({0}, epoch));
    rig.scheduler.abandon_epochs(epoch - 1);
    CHECK(!rig.scheduler.wait_epoch({1}, epoch, kPatience).empty());
    rig.scheduler.abandon_epochs(epoch - 1);
    // with patience: it isn't there for the moment in which its thread tries to enter it, and sees that it is held
    CHECK(!rig.scheduler.wait_epoch({1}, epoch, kPatience).empty());
    rig.scheduler.let_go({1});
  }
  rig.scheduler.stop(false);
}

TEST(who_is_held_at_a_mark_ends_when_all_stops) {
  Rig rig({.profile_period = {}});
  rig.chain(-1, 2, "md");
  rig.scheduler.stop_at_epochs({1, 2, 3});
  rig.scheduler.start({.thread_count = 1});
  CHECK_EQ(rig.scheduler.hold({0}, false, kPatience), "");
  CHECK(rig.scheduler.send_epoch({0}, 1));
  CHECK(!rig.scheduler.wait_epoch({1}, 1, kPatience).empty());
  rig.scheduler.stop(false);
  rig.check_exclusive();
}

// Nobody is held at the mark, and nobody has to let anything go: what was copied there is what the source had sent.
TEST(state_is_copied_at_marks_while_its_operator_goes_on) {
  const auto counted = std::make_shared<Schema>(
      std::vector<Field>{{.name = "stream", .type = Type::Int64, .format = "l"}, {.name = "n", .type = Type::Int64, .format = "l"}});
  const auto make = [&] {
    return make_aggregate("counts", row_schema(), counted, {"stream"}, {{AggregateFunction::Count, ""}}, Emit::Final);
  };
  TestOperator deal = pass("deal");  // among keys
  deal.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
    for (std::int64_t index = 0; index < n; ++index) {
      const std::int64_t sequence = static_cast<const Row*>(in)[index].sequence;
      static_cast<Row*>(out)[index] = {sequence * 7919 % 5000, sequence};
    }
    return n;
  };
  for (const ThreadingModel model : {ThreadingModel::Manual, ThreadingModel::Dynamic, ThreadingModel::Dedicated}) {
    Rig rig({.profile_period = {}});
    const OperatorId from = rig.add(source(0, -1));
    const OperatorId dealing = install(rig.scheduler, deal);
    const OperatorId counts = install(rig.scheduler, make(), {.model = model});
    const OperatorId last = install(rig.scheduler, sink());
    rig.scheduler.connect(from, dealing), rig.scheduler.connect(dealing, counts), rig.scheduler.connect(counts, last);
    rig.scheduler.stop_at_epochs({counts});
    rig.scheduler.start({.thread_count = 1});
    const auto sent = [&] { return rig.scheduler.sample().operators[from].tuples_out; };
    const auto flow_on = [&](std::uint64_t rows) {
      const std::uint64_t before = rig.scheduler.sample().operators[counts].tuples_in;
      CHECK(eventually([&] { return rig.scheduler.sample().operators[counts].tuples_in > before + rows; }));
    };
    for (std::int64_t epoch = 1; epoch <= 20; ++epoch) {
      flow_on(500);
      CHECK(rig.scheduler.wait_sent(kPatience));
      CHECK_EQ(rig.scheduler.hold({from}, false, kPatience), "");
      const std::uint64_t at = sent();
      CHECK(rig.scheduler.send_epoch({from}, epoch));
      CHECK_EQ(rig.scheduler.wait_epoch({counts}, epoch, kPatience).size(), 1U);
      if (epoch % 5 == 0) {  // nobody takes it
        rig.scheduler.abandon_epochs(epoch);
        CHECK(rig.scheduler.take_copy(counts, epoch) == nullptr);
        continue;
      }
      flow_on(500);
      const std::shared_ptr<StateCopy> copy = rig.scheduler.take_copy(counts, epoch);
      CHECK(copy != nullptr && rig.scheduler.take_copy(counts, epoch) == nullptr);
      const std::shared_ptr<Operator> there = make();
      while (const auto chunk = copy->next_chunk(1 << 14)) (void)there->state()->import_range(chunk->bytes);
      std::uint64_t rows = 0;
      table_of_aggregate(*there).for_each([&](const StringView&, const std::byte* state) {
        std::int64_t count;
        std::memcpy(&count, state, sizeof count);
        rows += static_cast<std::uint64_t>(count);
      });
      CHECK_EQ(rows, at);
    }
    rig.scheduler.stop(false);
  }
}

REL_TEST_MAIN
