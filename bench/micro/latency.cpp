// How long a tuple waits for an idle PE: from its submission to the call of an operator asleep behind a queue, and one tuple every
// millisecond through 10 operators, beside waking a plain thread from a futex at the same pace.
//
//   bench_latency [samples=1000] [rounds=5]
#include <algorithm>
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

constexpr std::chrono::microseconds kIdleGap{500};  // long enough for every thread to have gone to sleep
constexpr std::chrono::microseconds kTrickleGap{1000};

struct Paced {
  std::chrono::microseconds gap;
  std::int64_t left = 0;
  Clock::time_point next = Clock::now();
};

struct Arrivals {
  std::vector<double> microseconds;
};

std::shared_ptr<const Schema> stamp_schema() {
  return std::make_shared<Schema>(std::vector<Field>{{.name = "sent", .type = Type::Int64, .format = "l"}});
}

std::int64_t send_one(const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) {
  auto& paced = *static_cast<Paced*>(opaque);
  paced.next = std::max(paced.next + paced.gap, Clock::now());
  std::this_thread::sleep_until(paced.next);
  *static_cast<std::int64_t*>(out) = nanoseconds_now();
  if (--paced.left == 0) rel_finish(context);
  return 1;
}

std::int64_t pass_on(const void*, std::int64_t n, void*, std::int64_t, void*, rel_context*) { return n; }

std::int64_t arrive(const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) {
  const std::int64_t now = nanoseconds_now();
  for (std::int64_t index = 0; index < n; ++index) {
    static_cast<Arrivals*>(opaque)->microseconds.push_back(1e-3 * static_cast<double>(now - static_cast<const std::int64_t*>(in)[index]));
  }
  return 0;
}

// us from the source to the sink, one value a tuple, through `operators` and a sink of one model.
std::vector<double> latencies(std::size_t operators, ThreadingModel model, unsigned threads, std::chrono::microseconds gap,
                              std::int64_t samples) {
  const auto schema = stamp_schema();
  const auto arrivals = std::make_shared<Arrivals>();
  arrivals->microseconds.reserve(static_cast<std::size_t>(samples));
  Scheduler scheduler;
  OperatorId previous = add_function(scheduler, "paced", REL_SOURCE, schema,
                                     {.process = send_one, .state = std::make_shared<Paced>(Paced{.gap = gap, .left = samples})});
  for (std::size_t index = 0; index <= operators; ++index) {
    const OperatorId id = index == operators
                              ? add_function(scheduler, "arrive", REL_SINK, schema, {.process = arrive, .state = arrivals}, model)
                              : add_function(scheduler, "pass", REL_ONE_TO_ONE | REL_IN_PLACE, schema, {.process = pass_on}, model);
    scheduler.connect(previous, id);
    previous = id;
  }
  scheduler.start({.thread_count = threads});
  (void)scheduler.wait_for(std::chrono::hours(1));
  scheduler.stop(true);
  return arrivals->microseconds;
}

struct Share {
  const char* key;
  const char* what;
  double share;
};
constexpr Share kShares[] = {{"p50", "p50", 0.5}, {"p99", "p99", 0.99}, {"max", "max", 1.0}};

template <class Ours>
void report(const std::string& key, const std::string& what, std::chrono::microseconds gap, std::int64_t samples, std::int64_t rounds,
            Ours&& ours) {
  std::vector<std::vector<double>> found, limits;
  for (std::int64_t round = 0; round < rounds; ++round) {
    limits.push_back(wake_ups(static_cast<std::size_t>(samples), gap));
    found.push_back(ours());
  }
  for (const Share& each : kShares) {
    Row row{.key = key + "." + each.key, .what = what + ", " + each.what, .unit = "us", .limit_what = "a thread woken from a futex"};
    for (std::size_t round = 0; round < found.size(); ++round) {
      row.rounds.ours.push_back(percentile(found[round], each.share));
      row.rounds.limit.push_back(percentile(limits[round], each.share));
    }
    print(row);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"samples", 1000}, {"rounds", 5}});
  const std::int64_t samples = settings.whole("samples");
  const std::int64_t rounds = settings.whole("rounds");
  report("wake", "wake-up from idle to first tuple executed", kIdleGap, samples, rounds,
         [&] { return latencies(0, ThreadingModel::Dynamic, 1, kIdleGap, samples); });
  report("trickle.manual", "a tuple a millisecond, 10 manual operators", kTrickleGap, samples, rounds,
         [&] { return latencies(10, ThreadingModel::Manual, 1, kTrickleGap, samples); });
  report("trickle.dynamic", "a tuple a millisecond, 10 dynamic operators", kTrickleGap, samples, rounds,
         [&] { return latencies(10, ThreadingModel::Dynamic, 2, kTrickleGap, samples); });
}
