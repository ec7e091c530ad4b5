// What one hop costs: by batch and payload, by reference and copied, of a manual call, and of finding work among many ports, each
// beside what the machine needs for the same (limits.hpp).
//
//   bench_hops [seconds=0.2] [rounds=5] [ports=10000]
//
// A hop is one queue between two threads: a source that writes a word of each record, a scheduler thread whose sink reads a word
// of each cache line. ports: the largest number of ports work is found among.
#include "limits.hpp"
#include "load.hpp"
#include "measure.hpp"
#include "rayelastic/queue/free_ports.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

namespace {

constexpr const char* kPerTuple = "ns/tuple";

void limits(double seconds, std::int64_t rounds) {
  const auto alone = [&](const char* key, const char* what, const char* unit, auto&& measure) {
    Rounds found;
    for (std::int64_t round = 0; round < rounds; ++round) found.limit.push_back(measure());
    print({.key = key, .what = what, .unit = unit, .limit_what = what, .rounds = found});
  };
  alone("limit.call", "indirect call that multiplies one record in place", "ns", [&] { return plain_calls({.run = 1}, 100, seconds); });
  alone("limit.cas", "cache line to the other core by compare-exchange", "ns", [&] { return ping_pong(seconds); });
  alone("limit.condition", "condition variable, there and back", "us", [&] { return condition_round_trip(seconds); });
  alone("limit.memcpy.128", "memcpy of 128 B in cache", "ns", [&] { return copying(128, seconds); });
  alone("limit.memcpy.16384", "memcpy of 16 KiB in cache", "ns", [&] { return copying(16384, seconds); });
}

Shape hop(const Load& load, bool deep_copy) {
  return {.operators = 0, .load = load, .models = all(ThreadingModel::Dynamic), .touch = true, .options = {.deep_copy = deep_copy}};
}

std::size_t capacity_of(const Shape& shape) { return Pipeline(shape).scheduler().sample().operators.back().queue_capacity; }

double hop_cost(const Shape& shape, double seconds) { return measure(shape, seconds).ns_per_tuple(); }

void hops_by_record(double seconds, std::int64_t rounds) {
  for (const std::size_t record : {16U, 128U, 1024U, 16384U}) {
    for (const std::int64_t batch : {1, 4, 16, 64, 256}) {
      const Load load{.record = record, .run = batch, .fill = false};
      const Shape shape = hop(load, false);
      const std::size_t capacity = capacity_of(shape);
      print({.key = "hop.record." + std::to_string(record) + "." + std::to_string(batch),
             .what = "hop, records of " + bytes_text(record) + ", runs of " + std::to_string(batch),
             .unit = kPerTuple,
             .limit_what = "raw SPSC ring",
             .rounds = alternate(rounds, [&] { return hop_cost(shape, seconds); }, [&] { return raw_ring(load, capacity, 1, seconds); })});
    }
  }
}

void hops_by_payload(double seconds, std::int64_t rounds) {
  for (const bool deep : {false, true}) {
    for (const std::size_t payload : {16U, 128U, 1024U, 16384U}) {
      for (const std::int64_t batch : {1, 4, 16, 64, 256}) {
        const Load load{.record = 24, .payload = payload, .run = batch, .fill = false};
        const Load bare{.record = 24, .run = batch, .fill = false};
        const Shape shape = hop(load, deep);
        const std::size_t capacity = capacity_of(shape);
        print({.key = std::string(deep ? "hop.copied." : "hop.payload.") + std::to_string(payload) + "." + std::to_string(batch),
               .what = "hop, " + bytes_text(payload) + (deep ? " copied" : " by reference") + ", runs of " + std::to_string(batch),
               .unit = kPerTuple,
               .limit_what = deep ? "raw SPSC ring of 24 B records, and a memcpy" : "raw SPSC ring of 24 B records",
               .rounds = alternate(
                   rounds, [&] { return hop_cost(shape, seconds); },
                   [&] { return raw_ring(bare, capacity, 1, seconds) + (deep ? copying(payload, seconds / 10) : 0); })});
      }
    }
  }
}

void payload_size(double seconds, std::int64_t rounds) {
  const auto with = [](std::size_t payload) { return hop({.record = 24, .payload = payload, .run = 64, .fill = false}, false); };
  print({.key = "hop.payload.ratio",
         .what = "hop, 16 KiB by reference, runs of 64",
         .unit = kPerTuple,
         .limit_what = "the same with 16 B",
         .rounds = alternate(rounds, [&] { return hop_cost(with(16384), seconds); }, [&] { return hop_cost(with(16), seconds); })});
}

void manual_hops(double seconds, std::int64_t rounds) {
  constexpr std::size_t kOperators = 100;
  for (const std::int64_t batch : {1, 64}) {
    const Load load{.run = batch, .fill = false};
    print({.key = "hop.manual." + std::to_string(batch),
           .what = "manual hop, 128 B, runs of " + std::to_string(batch),
           .unit = "ns/run",
           .limit_what = "plain indirect call",
           .rounds = alternate(
               rounds,
               [&] {
                 const Window window = measure(Shape{.operators = kOperators, .load = load}, seconds);
                 return window.cpu_ns_per_tuple() * static_cast<double>(batch) / (kOperators + 1);
               },
               [&] { return plain_calls(load, kOperators, seconds); })});
  }
}

// The free list alone: a port is taken and put back, as a worker does.
double take_and_put_back(std::size_t ports, double seconds) {
  std::vector<std::int64_t> items(ports);
  FreePorts<std::int64_t> list(ports);
  for (std::int64_t& item : items) list.push(&item);
  std::int64_t done = 0;
  const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (double took = 0;; took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start) {
    if (took > seconds) return 1e9 * took / static_cast<double>(done);
    for (int repeat = 0; repeat < 1000; ++repeat) {
      std::int64_t* item = list.pop();
      ++*item;
      list.push(item);
    }
    done += 1000;
  }
}

// The same, when nobody else can want it: two compare-exchanges on words of one's own.
double two_exchanges(double seconds) {
  alignas(64) std::atomic<std::uint64_t> first{0};
  alignas(64) std::atomic<std::uint64_t> second{0};
  std::int64_t done = 0;
  const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (double took = 0;; took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start) {
    if (took > seconds) return 1e9 * took / static_cast<double>(done);
    for (int repeat = 0; repeat < 1000; ++repeat) {
      for (std::atomic<std::uint64_t>* word : {&first, &second}) {
        std::uint64_t seen = word->load(std::memory_order_relaxed);
        (void)word->compare_exchange_strong(seen, seen + 1);
      }
    }
    done += 1000;
  }
}

constexpr std::size_t kFanOutQueue = 16;  // records; 10,000 queues of it fit the memory of a small machine

// A source with `ports` consumers, each of which gets every record: ns per visit of a port, from push to the operator's return.
double visits(std::size_t ports, double seconds) {
  auto load = std::make_shared<Load>(Load{.record = 16, .run = 1, .fill = false});
  const auto schema = schema_of(load->record);
  const auto totals = std::make_shared<std::vector<Count>>(ports);
  Scheduler scheduler({.queue_records = kFanOutQueue});
  const OperatorId from = add_function(scheduler, "source", REL_SOURCE, schema, {.process = make<16>, .state = load});
  for (std::size_t index = 0; index < ports; ++index) {
    scheduler.connect(
        from, add_function(scheduler, "count", REL_SINK, schema,
                           {.process = touch<16>, .state = std::shared_ptr<Count>(totals, &(*totals)[index])}, ThreadingModel::Dynamic));
  }
  const auto rows = [&] {
    std::int64_t sum = 0;
    for (const Count& each : *totals) sum += each.rows.load(std::memory_order_relaxed);
    return sum;
  };
  scheduler.start({.thread_count = 1});
  const auto begin = Clock::now();
  while (rows() < static_cast<std::int64_t>(ports * kFanOutQueue) && seconds_since(begin) < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::int64_t before = rows();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double cost = 1e9 * seconds_since(start) / static_cast<double>(std::max<std::int64_t>(rows() - before, 1));
  scheduler.stop(false);
  return cost;
}

void find_work(double seconds, std::int64_t rounds, std::size_t most) {
  for (const std::size_t ports : {10U, 100U, 1000U, 10000U}) {
    if (ports > most) continue;
    print({.key = "find." + std::to_string(ports),
           .what = "find work: take and put back one of " + std::to_string(ports) + " ports",
           .unit = "ns",
           .limit_what = "two compare-exchanges, own lines",
           .rounds = alternate(rounds, [&] { return take_and_put_back(ports, seconds / 2); }, [&] { return two_exchanges(seconds / 2); })});
  }
  for (const std::size_t ports : {10U, 100U, 1000U, 10000U}) {
    if (ports > most) continue;
    const Load load{.record = 16, .run = 1, .fill = false};
    print({.key = "visit." + std::to_string(ports),
           .what = "a tuple into each of " + std::to_string(ports) + " ports, and out",
           .unit = kPerTuple,
           .limit_what = "raw SPSC rings in turn",
           .rounds =
               alternate(rounds, [&] { return visits(ports, seconds); }, [&] { return raw_ring(load, kFanOutQueue, ports, seconds); })});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"seconds", 0.2}, {"rounds", 5}, {"ports", 10000}});
  const double seconds = settings.number("seconds");
  const std::int64_t rounds = settings.whole("rounds");
  limits(seconds, rounds);
  manual_hops(seconds, rounds);
  hops_by_record(seconds, rounds);
  hops_by_payload(seconds, rounds);
  payload_size(seconds, rounds);
  find_work(seconds, rounds, settings.size("ports"));
}
