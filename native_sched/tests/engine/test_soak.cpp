// R5's soak: 16 scheduler threads on whatever cores there are, random graphs of chains, fan-outs and unions, a port switched every 50 ms
// and threads suspended or woken every 20 ms by a driver. Every sink checks every stream: nothing lost, doubled, reordered.
//
//   test_soak [tuples=1000000] [seed=1]
//
// tuples: rows that the sources make, over all graphs. The driver is paced by the clock; nothing that is checked is.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kThreads = 16;
constexpr std::int64_t kGraphs = 5;
constexpr std::chrono::milliseconds kBetweenThreadCounts{20};
constexpr std::chrono::milliseconds kBetweenSwitches{50};
constexpr std::chrono::seconds kPatience{120};  // without a single row at any sink: it hangs

struct Totals {
  std::int64_t made = 0;
  std::int64_t arrived = 0;
  std::uint64_t hops = 0;
  std::uint64_t switches = 0;
  std::uint64_t thread_counts = 0;
};

ThreadingModel any_model(std::mt19937_64& random) { return static_cast<ThreadingModel>(random() % 3); }

// A random graph in which each sink is reached by one way from each source that it serves, so that it can check the order.
class Graph {
 public:
  Graph(std::mt19937_64& random, std::int64_t rows) : rig_({.queue_records = std::size_t{16} << random() % 7, .max_threads = kThreads}) {
    const std::size_t sources = 1 + random() % 4;
    for (std::size_t stream = 0; stream < sources; ++stream) {
      counts_.push_back(rows / static_cast<std::int64_t>(sources));
      ends_.push_back({rig_.add(source(static_cast<std::int64_t>(stream), counts_.back())), {stream}});
    }
    const std::size_t steps = 6 + random() % 18;
    for (std::size_t step = 0; step < steps; ++step) grow(random);
    for (const End& end : ends_) {
      const OperatorId id = put(random, sink("sink" + std::to_string(end.at)), {end.at});
      sinks_.push_back({id, end.streams});
    }
  }

  void run(std::mt19937_64& random, Totals& totals) {
    rig_.scheduler.start({.thread_count = kThreads});
    auto next_switch = Clock::now() + kBetweenSwitches;
    auto moved = Clock::now();
    for (std::int64_t arrived = 0; !rig_.scheduler.wait_for(kBetweenThreadCounts);) {
      Desired desired{.thread_count = 1 + static_cast<unsigned>(random() % kThreads)};
      if (Clock::now() >= next_switch) {
        desired.models[random() % rig_.specs.size()] = any_model(random);
        next_switch += kBetweenSwitches;
        ++totals.switches;
      }
      (void)rig_.scheduler.apply(desired);
      ++totals.thread_counts;
      if (const std::int64_t now = this->arrived(); now != arrived) {
        arrived = now;
        moved = Clock::now();
      } else if (Clock::now() - moved > kPatience) {
        std::printf("no row has arrived for %" PRId64 " s: it hangs\n", std::int64_t{kPatience.count()});
        std::abort();  // with its threads as they are
      }
    }
    rig_.finish();
    for (const auto& operator_sample : rig_.scheduler.sample().operators) totals.hops += operator_sample.tuples_in;
    for (const auto& [id, streams] : sinks_) {
      std::int64_t expected = 0;
      Sink& end = state_of<Sink>(rig_.specs[id]);
      for (const std::size_t stream : streams) {
        expected += counts_[stream];
        CHECK_EQ(end.next[static_cast<std::int64_t>(stream)], counts_[stream]);
      }
      expect_rows(end, expected);
      totals.arrived += expected;
    }
    for (const std::int64_t count : counts_) totals.made += count;
  }

  [[nodiscard]] std::size_t operators() const { return rig_.specs.size(); }

 private:
  struct End {
    OperatorId at;
    std::vector<std::size_t> streams;
  };

  OperatorId put(std::mt19937_64& random, TestOperator spec, const std::vector<OperatorId>& inputs) {
    spec.model = any_model(random);
    const OperatorId id = rig_.add(std::move(spec));
    for (const OperatorId input : inputs) rig_.scheduler.connect(input, id);
    return id;
  }

  // Makes a chain longer, or joins two that share no stream, or lets one go two ways.
  void grow(std::mt19937_64& random) {
    const std::size_t one = random() % ends_.size();
    const std::size_t other = random() % ends_.size();
    const auto apart = [&] {
      return std::ranges::none_of(ends_[one].streams,
                                  [&](std::size_t stream) { return std::ranges::count(ends_[other].streams, stream) > 0; });
    };
    switch (random() % 3) {
      case 0:
        if (one != other && apart()) {
          const OperatorId id = put(random, pass("union"), {ends_[one].at, ends_[other].at});
          ends_[one].at = id;
          ends_[one].streams.insert(ends_[one].streams.end(), ends_[other].streams.begin(), ends_[other].streams.end());
          ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(other));
          return;
        }
        [[fallthrough]];
      case 1:
        if (ends_.size() < 5) {
          const End end = ends_[one];
          ends_[one].at = put(random, pass("left"), {end.at});
          ends_.push_back({put(random, pass("right"), {end.at}), end.streams});
          return;
        }
        [[fallthrough]];
      default:
        ends_[one].at = put(random, pass("pass"), {ends_[one].at});
    }
  }

  [[nodiscard]] std::int64_t arrived() const {
    std::int64_t rows = 0;
    for (const auto& [id, streams] : sinks_) rows += state_of<Sink>(rig_.specs[id]).rows.load();
    return rows;
  }

  Rig rig_;
  std::vector<std::int64_t> counts_;  // by source
  std::vector<End> ends_;
  std::vector<std::pair<OperatorId, std::vector<std::size_t>>> sinks_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t tuples = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 1'000'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto start = Clock::now();
  Totals totals;
  try {
    for (std::int64_t index = 0; index < kGraphs; ++index) {
      std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(index));
      Graph graph(random, tuples / kGraphs);
      graph.run(random, totals);
      std::printf("graph %" PRId64 ": %zu operators; so far %" PRId64 " tuples made, %" PRId64 " checked at sinks\n", index,
                  graph.operators(), totals.made, totals.arrived);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::printf("FAILED, seed %" PRIu64 ": %s\n", seed, error.what());
    return EXIT_FAILURE;
  }
  std::printf("ok: %" PRId64 " tuples made, %" PRId64 " checked at sinks, %" PRIu64
              " operator-tuples, none lost, doubled or reordered; %" PRIu64 " port switches, %" PRIu64 " thread counts, seed %" PRIu64
              ", %.1f s\n",
              totals.made, totals.arrived, totals.hops, totals.switches, totals.thread_counts, seed,
              std::chrono::duration<double>(Clock::now() - start).count());
  return EXIT_SUCCESS;
}
