// A pipeline of N operators of c dependent multiplications each, all manual or all dynamic: tuples/s and ns per hop (findings 2 has the
// anchors). Payloads are referred to, not copied, unless deep_copy is asked for.
//
//   bench_native_pipeline [operators=100] [cost=1] [payload=0] [record=128] [threads=2] [run=256] [seconds=1] [in_place=1] [deep_copy=0]
//
// payload > 0: records carry a string view of that many bytes, one fresh chunk per run. record: bytes of a record, 8 to 256.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rayelastic/scheduler.hpp"
#include "rayelastic/string_view.hpp"

using namespace rayelastic;

namespace {

struct Load {
  std::int64_t cost = 1;
  std::size_t record = 0;
  std::size_t payload = 0;
  std::int64_t run = 0;  // longest run of the source
  std::int64_t next = 0;
};

struct Count {
  std::atomic<std::uint64_t> rows{0};
  std::uint64_t check = 0;
};

std::shared_ptr<const Schema> schema_of(std::size_t record, std::size_t payload) {
  std::vector<Field> fields{{.name = "value", .type = Type::Int64, .format = "l"}};
  if (payload > 0) fields.push_back({.name = "payload", .type = Type::Binary, .format = "z"});
  for (std::size_t bytes = payload > 0 ? 24 : 8; bytes + 8 <= record; bytes += 8) {
    fields.push_back({.name = "pad" + std::to_string(bytes), .type = Type::Int64, .format = "l"});
  }
  return std::make_shared<Schema>(std::move(fields));
}

std::int64_t make(const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) {
  auto& load = *static_cast<Load*>(opaque);
  auto* at = static_cast<std::byte*>(out);
  StringView text;
  if (load.payload > 0) {
    ChunkRef chunk = Chunk::allocate(load.payload);
    std::memset(chunk->data(), 'x', std::min<std::size_t>(load.payload, 64));
    text = StringView(chunk->data(), static_cast<std::uint32_t>(load.payload));
    context->attach(chunk.get());
  }
  capacity = std::min(capacity, load.run);
  for (std::int64_t index = 0; index < capacity; ++index, at += load.record) {
    std::memset(at, 0, load.record);
    const double value = static_cast<double>(load.next) + 1;
    std::memcpy(at, &value, sizeof value);
    if (load.payload > 0) std::memcpy(at + 8, &text, sizeof text);
    ++load.next;
  }
  return capacity;
}

template <std::size_t kRecord, std::int64_t kCost>
std::int64_t multiply(const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) {
  const std::int64_t cost = kCost > 0 ? kCost : static_cast<const Load*>(opaque)->cost;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  if (from != to) std::memcpy(to, from, kRecord * static_cast<std::size_t>(n));
  for (std::int64_t index = 0; index < n; ++index, to += kRecord) {
    double value = 0;
    std::memcpy(&value, to, sizeof value);
    for (std::int64_t round = 0; round < cost; ++round) value = value * 1.0000001;
    std::memcpy(to, &value, sizeof value);
  }
  return n;
}
template <std::size_t R> rel_process mul(std::int64_t cost) { return cost == 1 ? multiply<R, 1> : multiply<R, 0>; }

rel_process multiply_for(std::size_t record, std::int64_t cost) {
  switch (record) {
    case 8: return mul<8>(cost);
    case 16: return mul<16>(cost);
    case 24: return mul<24>(cost);
    case 64: return mul<64>(cost);
    case 128: return mul<128>(cost);
    case 256: return mul<256>(cost);
    default: return nullptr;
  }
}

std::int64_t count(const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) {
  auto& sum = *static_cast<Count*>(opaque);
  std::int64_t value = 0;
  std::memcpy(&value, in, sizeof value);
  sum.check ^= static_cast<std::uint64_t>(value);
  sum.rows.store(sum.rows.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(n), std::memory_order_relaxed);
  return 0;
}

struct Settings {
  std::map<std::string, std::string> values;
  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t standard) const {
    const auto found = values.find(name);
    return found == values.end() ? standard : std::strtoll(found->second.c_str(), nullptr, 10);
  }
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double tuples_per_second(const Settings& settings, ThreadingModel model, unsigned threads, std::size_t payload) {
  const auto operators = static_cast<std::size_t>(settings.number("operators", 100));
  auto load = std::make_shared<Load>();
  const auto schema = schema_of(static_cast<std::size_t>(settings.number("record", payload > 0 ? 24 : 128)), payload);
  load->cost = settings.number("cost", 1);
  load->record = schema->record_size();
  load->payload = payload;
  load->run = settings.number("run", 256);
  auto total = std::make_shared<Count>();

  SchedulerOptions options;
  options.deep_copy = settings.number("deep_copy", 0) != 0;
  options.queue_records = static_cast<std::size_t>(settings.number("queue", 1024));
  Scheduler scheduler(options);
  OperatorId previous = scheduler.add_operator({.name = "source", .process = make, .flags = REL_SOURCE, .state = load, .output = schema});
  const std::uint32_t flags = REL_ONE_TO_ONE | (settings.number("in_place", 1) != 0 ? std::uint32_t{REL_IN_PLACE} : 0U);
  for (std::size_t index = 0; index < operators; ++index) {
    const OperatorId id = scheduler.add_operator({.name = "multiply",
                                                  .process = multiply_for(load->record, load->cost),
                                                  .flags = flags,
                                                  .state = load,
                                                  .input = schema,
                                                  .output = schema,
                                                  .model = model});
    scheduler.connect(previous, id);
    previous = id;
  }
  const OperatorId end =
      scheduler.add_operator({.name = "count", .process = count, .flags = REL_SINK, .state = total, .input = schema, .model = model});
  scheduler.connect(previous, end);
  scheduler.start({.thread_count = threads});

  // Measured once the pipeline is full (findings 4).
  const std::uint64_t filled = operators * options.queue_records;
  using Clock = std::chrono::steady_clock;
  const auto limit = Clock::now() + std::chrono::seconds(20);
  while (total->rows.load(std::memory_order_relaxed) < filled && Clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::uint64_t before = total->rows.load();
  const double cpu_before = cpu_seconds();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(1000 * settings.number("seconds", 1)));
  const std::uint64_t rows = total->rows.load() - before;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double cpu = cpu_seconds() - cpu_before;
  const Sample sample = scheduler.sample();
  scheduler.stop(false);
  const double rate = static_cast<double>(rows) / seconds;
  std::printf(
      "%-7s threads %u  payload %6zu  record %4zu  %12.0f tuples/s  %7.2f ns (%6.2f ns of CPU) per tuple and hop   %llu reschedules, %llu "
      "sleeps\n",
      model == ThreadingModel::Manual    ? "manual"
      : model == ThreadingModel::Dynamic ? "dynamic"
                                         : "own",
      threads, payload, load->record, rate, rate == 0 ? 0.0 : 1e9 / rate / static_cast<double>(operators + 1),
      rows == 0 ? 0.0 : 1e9 * cpu / static_cast<double>(rows) / static_cast<double>(operators + 1),
      static_cast<unsigned long long>(sample.reschedules), static_cast<unsigned long long>(sample.sleeps));
  std::fflush(stdout);
  return rate;
}

// The same functions on the same runs without an engine: what a hop costs is the difference.
void direct_calls(const Settings& settings) {
  const auto schema = schema_of(static_cast<std::size_t>(settings.number("record", 128)), 0);
  Load load{.cost = settings.number("cost", 1), .record = schema->record_size()};
  const auto run = std::min<std::int64_t>(settings.number("run", 256), static_cast<std::int64_t>(16384 / load.record));
  const std::vector<rel_process> operators(static_cast<std::size_t>(settings.number("operators", 100)), multiply_for(load.record, load.cost));
  std::vector<double> records(static_cast<std::size_t>(run) * load.record / 8, 1.0);
  std::uint64_t calls = 0;
  const double start = cpu_seconds();
  double cpu = 0;
  while (cpu < 0.3) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      for (const rel_process process : operators) process(records.data(), run, records.data(), run, &load, nullptr);
    }
    calls += 10 * operators.size();
    cpu = cpu_seconds() - start;
  }
  std::printf("direct calls in place: %.2f ns of CPU per tuple and hop, %.1f per run of %lld\n",
              1e9 * cpu / static_cast<double>(calls) / static_cast<double>(run), 1e9 * cpu / static_cast<double>(calls),
              static_cast<long long>(run));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    const std::size_t sign = argument.find('=');
    if (sign == std::string::npos) {
      std::fprintf(stderr, "expected name=value, not '%s'\n", argument.c_str());
      return EXIT_FAILURE;
    }
    settings.values[argument.substr(0, sign)] = argument.substr(sign + 1);
  }
  const auto payload = static_cast<std::size_t>(settings.number("payload", 0));
  std::printf("%lld operators of cost %lld\n", static_cast<long long>(settings.number("operators", 100)),
              static_cast<long long>(settings.number("cost", 1)));
  direct_calls(settings);
  const double manual = tuples_per_second(settings, ThreadingModel::Manual, 1, payload);
  double dynamic = 0;
  for (unsigned threads = 1; threads <= static_cast<unsigned>(settings.number("threads", 2)); ++threads) {
    dynamic = std::max(dynamic, tuples_per_second(settings, ThreadingModel::Dynamic, threads, payload));
  }
  std::printf("all dynamic / all manual: %.2f\n", dynamic / manual);
  return EXIT_SUCCESS;
}
