// Pipelines of 10, 100, 1,000 operators of 1 and 100 FLOPs: manual, all dynamic, a thread an operator, and the best of a few queues, each
// beside plain calls of the same functions or beside one another; context switches; 16 KiB by reference, and copied as the papers'
// engine did (C000-3, C000-6, C002-3). findings 2 has the anchors.
//
//   bench_native_pipeline [seconds=0.5] [rounds=5] [operators=0] [cost=1] [record=128] [payload=0] [threads=2]
//                         [run=256] [deep_copy=0]
//
// operators > 0: that one pipeline alone, instead of the set.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "limits.hpp"
#include "load.hpp"
#include "measure.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

namespace {

constexpr const char* kTuples = "tuples/s";

struct Effort {
  double seconds;
  std::int64_t rounds;
};

// Tuples a second that one core gets through plain calls of the operators' functions, without source, sink and engine.
double calls_rate(const Shape& shape, double seconds) {
  Load load = shape.load;
  load.run = std::min<std::int64_t>(load.run, static_cast<std::int64_t>(std::max<std::size_t>(16384 / load.record, 64)));
  return 1e9 * static_cast<double>(load.run) / plain_calls(load, shape.operators, seconds) / static_cast<double>(shape.operators);
}

std::string note_of(const std::vector<Window>& windows) {
  double seconds = 0, cpu = 0, voluntary = 0, involuntary = 0;
  for (const Window& window : windows) {
    seconds += window.seconds;
    cpu += window.cpu;
    voluntary += static_cast<double>(window.switches.voluntary);
    involuntary += static_cast<double>(window.switches.involuntary);
  }
  char text[112];
  std::snprintf(text, sizeof text, "cores: %.2f; context switches/s: %.0f voluntary, %.0f involuntary", cpu / seconds, voluntary / seconds,
                involuntary / seconds);
  return text;
}

// One row of tuples a second beside `limit`, with the cores and the context switches of our side.
template <class Limit>
void rate_row(Row row, const Shape& shape, const Effort& effort, Limit&& limit, const std::string& note = {}) {
  std::vector<Window> windows;
  row.unit = kTuples;
  row.rounds = alternate(
      effort.rounds,
      [&] {
        windows.push_back(measure(shape, effort.seconds));
        return windows.back().rate();
      },
      limit);
  row.note = note_of(windows) + (note.empty() ? "" : "; " + note);
  print(row);
}

Shape manual(const Shape& shape) {
  Shape one = shape;
  one.models = all(ThreadingModel::Manual);
  one.threads = 1;
  return one;
}

// Threads that are started meanwhile stay on the first core that this process may use.
class OneCore {
 public:
  OneCore() {
    (void)sched_getaffinity(0, sizeof all_, &all_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all_)) CPU_SET(core, &one);
    }
    (void)sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { (void)sched_setaffinity(0, sizeof all_, &all_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t all_;
};

// Few queues at equal distances, and the threads to serve them, by short looks.
Shape best_placement(const Shape& shape, unsigned threads, double seconds, std::string& placement) {
  Shape best = manual(shape);
  double most = measure(best, seconds).rate();
  placement = "no queue";
  for (const std::size_t queues : {1U, 2U, 3U, 4U, 7U, 9U}) {
    for (unsigned workers = 1; workers <= threads && workers <= queues; ++workers) {
      Shape tried = shape;
      tried.models = every(shape.operators, queues);
      tried.threads = workers;
      const double rate = measure(tried, seconds).rate();
      if (rate <= most) continue;
      most = rate;
      best = tried;
      placement = std::to_string(queues) + (queues == 1 ? " queue, " : " queues, ") + std::to_string(workers) + " scheduler thread" +
                  (workers == 1 ? "" : "s");
    }
  }
  return best;
}

std::string name_of(const Shape& shape) {
  std::string name =
      std::to_string(shape.operators) + " operators, " + std::to_string(shape.load.cost) + " FLOP" + (shape.load.cost == 1 ? ", " : "s, ");
  name += shape.load.payload > 0 ? bytes_text(shape.load.payload) + (shape.options.deep_copy ? " copied" : " by reference")
                                 : bytes_text(shape.load.record);
  return name;
}

std::string key_of(const Shape& shape) {
  return "pipeline." + std::to_string(shape.operators) + "." + std::to_string(shape.load.cost) + "." +
         std::to_string(shape.load.payload > 0 ? shape.load.payload : shape.load.record) + (shape.options.deep_copy ? ".copied" : "");
}

void manual_row(const Shape& shape, const Effort& effort) {
  rate_row({.key = key_of(shape) + ".manual", .what = name_of(shape) + ", manual", .limit_what = "plain calls"}, manual(shape), effort,
           [&] { return calls_rate(shape, effort.seconds / 2); });
}

void dynamic_row(const Shape& shape, unsigned threads, const Effort& effort) {
  Shape dynamic = shape;
  dynamic.models = all(ThreadingModel::Dynamic);
  dynamic.threads = threads;
  rate_row({.key = key_of(shape) + ".dynamic." + std::to_string(threads),
            .what = name_of(shape) + ", all dynamic, threads: " + std::to_string(threads),
            .limit_what = "all manual"},
           dynamic, effort, [&] { return measure(manual(shape), effort.seconds).rate(); });
}

// What a second scheduler thread brings where every operator has a queue. With one, the source's thread helps already.
void second_thread_row(const Shape& shape, const Effort& effort) {
  Shape one = shape;
  one.models = all(ThreadingModel::Dynamic);
  one.threads = 1;
  Shape two = one;
  two.threads = 2;
  std::vector<Window> with_one, with_two;
  const auto rate_of = [&](const Shape& measured, std::vector<Window>& windows) {
    windows.push_back(measure(measured, effort.seconds));
    return windows.back().rate();
  };
  Row row{.key = key_of(shape) + ".second", .what = name_of(shape) + ", all dynamic, two threads", .unit = kTuples, .limit_what = "one"};
  row.rounds = alternate(effort.rounds, [&] { return rate_of(two, with_two); }, [&] { return rate_of(one, with_one); });
  row.note = note_of(with_two) + "; one thread: " + note_of(with_one);
  print(row);
}

// What a second core brings them: one scheduler thread and the source that helps it, on all cores and on the first one alone.
void second_core_row(const Shape& shape, const Effort& effort) {
  Shape dynamic = shape;
  dynamic.models = all(ThreadingModel::Dynamic);
  dynamic.threads = 1;
  rate_row({.key = key_of(shape) + ".core", .what = name_of(shape) + ", all dynamic, one thread", .limit_what = "on one core"}, dynamic,
           effort, [&] {
             const OneCore alone;
             return measure(dynamic, effort.seconds).rate();
           });
}

void dedicated_row(const Shape& shape, const Effort& effort) {
  Shape dedicated = shape;
  dedicated.models = all(ThreadingModel::Dedicated);
  rate_row({.key = key_of(shape) + ".dedicated", .what = name_of(shape) + ", a thread an operator (C002-3)", .limit_what = "all manual"},
           dedicated, effort, [&] { return measure(manual(shape), effort.seconds).rate(); });
}

void best_row(const Shape& shape, unsigned threads, const Effort& effort) {
  std::string placement;
  const Shape best = best_placement(shape, threads, effort.seconds / 2, placement);
  rate_row(
      {.key = key_of(shape) + ".best", .what = name_of(shape) + ", best placement", .limit_what = "one thread"}, best, effort,
      [&] { return measure(manual(shape), effort.seconds).rate(); }, placement);
}

void one_pipeline(const Shape& shape, unsigned threads, const Effort& effort) {
  manual_row(shape, effort);
  for (unsigned count = 1; count <= threads; ++count) dynamic_row(shape, count, effort);
  if (shape.operators == 1000) {
    second_thread_row(shape, effort);
    second_core_row(shape, effort);
  }
  best_row(shape, threads, effort);
  dedicated_row(shape, effort);
}

// The papers' collapse: payloads copied at every queue. C000-3: up to 22 times; C000-6: all dynamic falls below manual. Queues are
// short, so that a pipeline full of copies fits the memory: the papers' 1,000 slots a port would be 1.6 GB.
void collapse(std::int64_t cost, const Effort& effort) {
  constexpr std::size_t kSlots = 64;
  const Shape copied{.operators = 100,
                     .load = {.cost = cost, .record = 24, .payload = 16384, .run = kSlots},
                     .models = all(ThreadingModel::Dynamic),
                     .threads = 2,
                     .options = {.queue_records = kSlots, .deep_copy = true}};
  Shape by_reference = copied;
  by_reference.options.deep_copy = false;
  Shape small = by_reference;
  small.load.payload = 16;
  const std::string end = "collapse." + std::to_string(cost);
  rate_row({.key = "pipeline." + end, .what = name_of(copied) + ", all dynamic (C000-3, C000-6)", .limit_what = "all manual"}, copied,
           effort, [&] { return measure(manual(copied), effort.seconds).rate(); });
  rate_row({.key = "pipeline.no_" + end, .what = name_of(by_reference) + ", all dynamic", .limit_what = "the same with 16 B"}, by_reference,
           effort, [&] { return measure(small, effort.seconds).rate(); });
}

// One queue in the middle of expensive operators: both its sides have work all the time. A run takes 0.2 s with 100 of them, and
// counts at its end.
void halves_row(const Shape& shape, const Effort& effort) {
  const double seconds = std::max(8 * effort.seconds, 2.0);
  Shape halves = shape;
  halves.models = every(shape.operators, 1);
  halves.threads = 1;
  double cores = 0;
  Row row{.key = key_of(shape) + ".halves", .what = name_of(shape) + ", one queue", .unit = kTuples, .limit_what = "all manual"};
  row.rounds = alternate(
      effort.rounds,
      [&] {
        const Window window = measure(halves, seconds);
        cores += window.cpu / window.seconds / static_cast<double>(effort.rounds);
        return window.rate();
      },
      [&] { return measure(manual(shape), seconds).rate(); });
  char text[32];
  std::snprintf(text, sizeof text, "cores: %.2f", cores);
  row.note = text;
  print(row);
}

// C002-3: more than 10 M context switches with a thread an operator, 160,000 with scheduler threads.
void switches(const Shape& shape, const Effort& effort) {
  const auto count = [&](ThreadingModel model) {
    Shape one = shape;
    one.models = all(model);
    one.threads = 2;
    const Window window = measure(one, effort.seconds);
    return static_cast<double>(window.switches.voluntary + window.switches.involuntary) / window.seconds;
  };
  print({.key = "pipeline.switches",
         .what = name_of(shape) + ", all dynamic, 2 threads (C002-3)",
         .unit = "switches/s",
         .limit_what = "a thread an operator",
         .rounds =
             alternate(effort.rounds, [&] { return count(ThreadingModel::Dynamic); }, [&] { return count(ThreadingModel::Dedicated); })});
}

void all_pipelines(unsigned threads, const Effort& effort) {
  for (const std::size_t operators : {10U, 100U, 1000U}) one_pipeline({.operators = operators}, threads, effort);
  const Shape dear{.operators = 100, .load = {.cost = 100}};
  one_pipeline(dear, threads, effort);
  Shape payload = dear;
  payload.load.record = 24;
  payload.load.payload = 16384;
  manual_row(payload, effort);
  best_row(payload, threads, effort);
  for (const std::size_t operators : {10U, 100U}) halves_row({.operators = operators, .load = {.cost = 10'000}}, effort);
  switches(dear, effort);
  for (const std::int64_t cost : {1, 100}) collapse(cost, effort);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv,
                          {{"seconds", 0.5},
                           {"rounds", 5},
                           {"operators", 0},
                           {"cost", 1},
                           {"record", 128},
                           {"payload", 0},
                           {"threads", 2},
                           {"run", 256},
                           {"deep_copy", 0}});
  const Effort effort{settings.number("seconds"), settings.whole("rounds")};
  const auto threads = static_cast<unsigned>(settings.whole("threads"));
  if (settings.whole("operators") == 0) {
    all_pipelines(threads, effort);
    return EXIT_SUCCESS;
  }
  one_pipeline({.operators = settings.size("operators"),
                .load = {.cost = settings.whole("cost"),
                         .record = settings.size("record"),
                         .payload = settings.size("payload"),
                         .run = settings.whole("run")},
                .options = {.deep_copy = settings.whole("deep_copy") != 0}},
               threads, effort);
}
