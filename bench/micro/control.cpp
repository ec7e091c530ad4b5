// What control costs: switching the model of 1 and of 1,000 ports under full load with 16 threads, starting and stopping a graph of
// 2,305 operators (C000-15), and the processor time of an idle PE of 1,000 ports.
//
//   bench_control [rounds=5] [idle_seconds=3] [switches=5]
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "limits.hpp"
#include "load.hpp"
#include "measure.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

namespace {

constexpr std::size_t kOperators = 1000;
constexpr unsigned kThreads = 16;
constexpr double kLongSwitch = 60;  // seconds; then it has failed

// us until the answer of apply() says that all of `ports` have the model.
double switch_time(Scheduler& scheduler, const std::vector<OperatorId>& ports, ThreadingModel model) {
  Desired desired{.thread_count = kThreads};
  for (const OperatorId port : ports) desired.models[port] = model;
  const auto start = Clock::now();
  for (;;) {
    const InForce answer = scheduler.apply(desired);
    const double took = seconds_since(start);
    if (std::all_of(ports.begin(), ports.end(), [&](OperatorId port) { return answer.models[port] == model; })) return 1e6 * took;
    if (took > kLongSwitch) give_up("a port hasn't switched in a minute");
  }
}

// To and fro, in one pipeline that runs at full speed meanwhile.
void switching(const char* key, const std::string& what, const std::vector<OperatorId>& ports, std::int64_t times, std::int64_t rounds) {
  Row to_manual{.key = std::string(key) + ".manual",
                .what = what + ", dynamic to manual",
                .unit = "us",
                .limit_what = "condition variable, there and back"};
  Row to_dynamic = to_manual;
  to_dynamic.key = std::string(key) + ".dynamic";
  to_dynamic.what = what + ", manual to dynamic";
  for (std::int64_t round = 0; round < rounds; ++round) {
    const double limit = condition_round_trip(0.1);
    to_manual.rounds.limit.push_back(limit);
    to_dynamic.rounds.limit.push_back(limit);
    Pipeline pipeline({.operators = kOperators, .models = all(ThreadingModel::Dynamic), .threads = kThreads});
    pipeline.fill();
    std::vector<double> away, back;
    for (std::int64_t time = 0; time < times; ++time) {
      away.push_back(switch_time(pipeline.scheduler(), ports, ThreadingModel::Manual));
      back.push_back(switch_time(pipeline.scheduler(), ports, ThreadingModel::Dynamic));
    }
    to_manual.rounds.ours.push_back(percentile(away, 0.5));
    to_dynamic.rounds.ours.push_back(percentile(back, 0.5));
  }
  print(to_manual);
  print(to_dynamic);
}

// C000-15: 8 sources, 41 branches of 7 operators behind each, one sink that all of them feed.
constexpr std::size_t kSources = 8;
constexpr std::size_t kBranches = 41;
constexpr std::size_t kLength = 7;
static_assert(kSources + kSources * kBranches * kLength + 1 == 2305);

struct Times {
  double start = 0;
  double stop = 0;
};

// ms of start() and of stop(drain), with tuples on their way to the sink in between.
Times large_graph(ThreadingModel model, unsigned threads) {
  const auto load = std::make_shared<Load>();
  const auto total = std::make_shared<Count>();
  const auto schema = schema_of(load->record);
  const Functions functions = functions_of(load->record);
  Scheduler scheduler;
  const OperatorId sink = add_function(scheduler, "count", REL_SINK, schema, {.process = count, .state = total}, ThreadingModel::Dynamic);
  for (std::size_t source = 0; source < kSources; ++source) {
    const OperatorId from = add_function(scheduler, "source" + std::to_string(source), REL_SOURCE, schema,
                                         {.process = functions.make, .state = std::make_shared<Load>()});
    for (std::size_t branch = 0; branch < kBranches; ++branch) {
      OperatorId previous = from;
      for (std::size_t index = 0; index < kLength; ++index) {
        const OperatorId id = add_function(scheduler, "multiply", REL_ONE_TO_ONE | REL_IN_PLACE, schema,
                                           {.process = functions.multiply_once, .state = load}, model);
        scheduler.connect(previous, id);
        previous = id;
      }
      scheduler.connect(previous, sink);
    }
  }
  Times times;
  auto begin = Clock::now();
  scheduler.start({.thread_count = threads});
  times.start = 1e3 * seconds_since(begin);
  while (total->rows.load() < 10'000) std::this_thread::yield();
  begin = Clock::now();
  scheduler.stop(true);
  times.stop = 1e3 * seconds_since(begin);
  if (const auto failure = scheduler.failure()) give_up(failure->operator_name + ": " + failure->message);
  return times;
}

double plain_threads(std::size_t count) {
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < count; ++index) threads.emplace_back([] {});
  for (std::thread& thread : threads) thread.join();
  return 1e3 * seconds_since(start);
}

void start_and_stop(std::int64_t rounds) {
  for (const bool dynamic : {false, true}) {
    Row start{.key = std::string("graph.2305.start.") + (dynamic ? "dynamic" : "manual"),
              .what = std::string("start of 2,305 operators, ") + (dynamic ? "all dynamic" : "manual") + " (C000-15)",
              .unit = "ms",
              .limit_what = "starting and joining as many threads"};
    Row stop = start;
    stop.key = std::string("graph.2305.stop.") + (dynamic ? "dynamic" : "manual");
    stop.what = std::string("drain and stop of 2,305 operators, ") + (dynamic ? "all dynamic" : "manual") + " (C000-15)";
    for (std::int64_t round = 0; round < rounds; ++round) {
      const double limit = plain_threads(kSources + kThreads);
      const Times times = large_graph(dynamic ? ThreadingModel::Dynamic : ThreadingModel::Manual, kThreads);
      start.rounds.ours.push_back(times.start);
      stop.rounds.ours.push_back(times.stop);
      start.rounds.limit.push_back(limit);
      stop.rounds.limit.push_back(limit);
    }
    print(start);
    print(stop);
  }
}

// A source that waits to be interrupted.
class Silent final : public Operator {
 public:
  explicit Silent(std::shared_ptr<const Schema> schema) : Operator("silent", {}, {std::move(schema)}, REL_SOURCE) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte*, std::int64_t, rel_context* context) override {
    over_.wait(false);
    context->finish();
    return 0;
  }
  void interrupt() override {
    over_ = true;
    over_.notify_all();
  }

 private:
  std::atomic<bool> over_{false};
};

// % of a core that a PE of `kOperators` queued operators takes while nothing comes.
double idle_share(double seconds) {
  const auto schema = schema_of(128);
  const auto load = std::make_shared<Load>();
  Scheduler scheduler;
  OperatorId previous = scheduler.add_operator(std::make_shared<Silent>(schema));
  for (std::size_t index = 0; index < kOperators; ++index) {
    const bool last = index + 1 == kOperators;
    const OperatorId id = last ? add_function(scheduler, "count", REL_SINK, schema, {.process = count, .state = std::make_shared<Count>()},
                                              ThreadingModel::Dynamic)
                               : add_function(scheduler, "multiply", REL_ONE_TO_ONE | REL_IN_PLACE, schema,
                                              {.process = functions_of(128).multiply_once, .state = load}, ThreadingModel::Dynamic);
    scheduler.connect(previous, id);
    previous = id;
  }
  scheduler.start({.thread_count = kThreads});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double cpu = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double share = 100 * (cpu_seconds() - cpu) / seconds;
  scheduler.stop(false);
  return share;
}

// The same of a thread that wakes up 100 times a second, as a profiler has to.
double ticking_share(double seconds) {
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return 100 * (cpu_seconds() - cpu) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"rounds", 5}, {"idle_seconds", 3}, {"switches", 5}});
  const std::int64_t rounds = settings.whole("rounds");
  const double idle = settings.number("idle_seconds");
  std::vector<OperatorId> ports;
  for (OperatorId id = 1; id <= kOperators; ++id) ports.push_back(id);
  switching("switch.1", "switch 1 port of 1,000 under load, 16 threads", {kOperators / 2}, settings.whole("switches"), rounds);
  switching("switch.1000", "switch 1,000 ports under load, 16 threads", ports, settings.whole("switches"), rounds);
  start_and_stop(rounds);
  print(
      {.key = "idle",
       .what = "idle PE of 1,000 ports, 16 threads",
       .unit = "% of a core",
       .limit_what = "a thread that ticks at 100 Hz",
       .rounds = alternate(std::min<std::int64_t>(rounds, 3), [&] { return idle_share(idle); }, [&] { return ticking_share(idle / 3); })});
}
