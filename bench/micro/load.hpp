// The load of the scheduler's benchmarks: a pipeline of operators that multiply, with a source and a sink that cost as little as the
// question allows. What an operator does is what a compiled function does: the record's size, and a cost of one FLOP, are the
// compiler's constants. Knows no measure but that of a running pipeline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/operator/function.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic::bench {

// Records {value: double[, payload: binary][, padding]}.
inline std::shared_ptr<const Schema> schema_of(std::size_t record, std::size_t payload = 0) {
  std::vector<Field> fields{{.name = "value", .type = Type::Float64, .format = "g"}};
  if (payload > 0) fields.push_back({.name = "payload", .type = Type::Binary, .format = "z"});
  for (std::size_t bytes = payload > 0 ? 24 : 8; bytes + 8 <= record; bytes += 8) {
    fields.push_back({.name = "pad" + std::to_string(bytes), .type = Type::Int64, .format = "l"});
  }
  return std::make_shared<Schema>(std::move(fields));
}

struct Load {
  std::int64_t cost = 1;
  std::size_t record = 128;
  std::size_t payload = 0;
  std::int64_t run = 256;  // longest run of the source
  bool fill = true;        // the source writes whole records, not only what changes
  double next = 0;
};

// As a source of fields would, word by word: a memset of such a size is compiled to `rep stos`, which takes 10 ns to get going.
template <std::size_t kRecord>
void clear(std::byte* record) {
  if constexpr (kRecord > 256) {
    std::memset(record, 0, kRecord);
  } else {
    auto* word = reinterpret_cast<std::uint64_t*>(record);
    for (std::size_t index = 0; index < kRecord / sizeof *word; ++index) word[index] = 0;
  }
}

// One fresh chunk a run carries the payload of all its records.
template <std::size_t kRecord>
std::int64_t make(const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) {
  auto& load = *static_cast<Load*>(opaque);
  const std::size_t payload = load.payload;
  const bool fill = load.fill;
  auto* at = static_cast<std::byte*>(out);
  StringView text;
  if (payload > 0) {
    ChunkRef chunk = Chunk::allocate(payload);
    std::memset(chunk->data(), 'x', std::min<std::size_t>(payload, 64));
    text = StringView(chunk->data(), static_cast<std::uint32_t>(payload));
    context->attach(chunk.get());
  }
  const std::int64_t made = std::min(capacity, load.run);
  double next = load.next;
  for (std::int64_t index = 0; index < made; ++index, at += kRecord) {
    if (fill) clear<kRecord>(at);
    std::memcpy(at, &next, sizeof next);
    if (payload > 0) std::memcpy(at + sizeof next, &text, sizeof text);
    next += 1;
  }
  load.next = next;
  return made;
}

// `kCost` dependent multiplications; 0: as many as the state says.
template <std::size_t kRecord, std::int64_t kCost>
std::int64_t multiply(const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) {
  constexpr double kFactor = 1.0000000001;
  const std::int64_t cost = kCost == 0 ? static_cast<const Load*>(opaque)->cost : kCost;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t index = 0; index < n; ++index, from += kRecord, to += kRecord) {
    double value = 0;
    std::memcpy(&value, from, sizeof value);
    for (std::int64_t round = 0; round < cost; ++round) value *= kFactor;
    if (from != to) std::memcpy(to, from, kRecord);
    std::memcpy(to, &value, sizeof value);
  }
  return n;
}

struct Count {
  std::atomic<std::int64_t> rows{0};
  double check = 0;

  void add(double value, std::int64_t n) {
    check += value;
    rows.store(rows.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

inline std::int64_t count(const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) {
  double value = 0;
  std::memcpy(&value, in, sizeof value);
  static_cast<Count*>(opaque)->add(value, n);
  return 0;
}

// Reads a word of every cache line of every record: what was moved has to arrive.
template <std::size_t kRecord>
std::int64_t touch(const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) {
  const auto* at = static_cast<const std::byte*>(in);
  double sum = 0;
  for (const std::byte* const end = at + static_cast<std::size_t>(n) * kRecord; at != end; at += kRecord) {
    for (std::size_t line = 0; line < kRecord; line += 64) {
      double value = 0;
      std::memcpy(&value, at + line, sizeof value);
      sum += value;
    }
  }
  static_cast<Count*>(opaque)->add(sum, n);
  return 0;
}

// The functions for a size of record.
struct Functions {
  rel_process make = nullptr;
  rel_process multiply_once = nullptr;
  rel_process multiply_often = nullptr;
  rel_process touch = nullptr;
};

template <std::size_t kRecord>
constexpr Functions functions_for_size() {
  return {make<kRecord>, multiply<kRecord, 1>, multiply<kRecord, 0>, touch<kRecord>};
}

inline Functions functions_of(std::size_t record) {
  switch (record) {
    case 8:
      return functions_for_size<8>();
    case 16:
      return functions_for_size<16>();
    case 24:
      return functions_for_size<24>();
    case 64:
      return functions_for_size<64>();
    case 128:
      return functions_for_size<128>();
    case 256:
      return functions_for_size<256>();
    case 1024:
      return functions_for_size<1024>();
    case 16384:
      return functions_for_size<16384>();
    default:
      give_up("no functions for records of " + std::to_string(record) + " bytes");
  }
}

using Models = std::function<ThreadingModel(std::size_t)>;  // of operator 0, 1, ...; the sink comes last

inline Models all(ThreadingModel model) {
  return [model](std::size_t) { return model; };
}

// Few queues, so that they and the source's thread have equal shares of `operators`; the sink belongs to the last share.
inline Models every(std::size_t operators, std::size_t queues) {
  return [operators, queues](std::size_t index) {
    const std::size_t share = operators / (queues + 1);
    return index > 0 && index < operators && share > 0 && index % share == 0 && index / share <= queues ? ThreadingModel::Dynamic
                                                                                                        : ThreadingModel::Manual;
  };
}

struct Shape {
  std::size_t operators = 100;
  Load load = {};
  Models models = all(ThreadingModel::Manual);
  unsigned threads = 1;
  bool touch = false;  // by the sink
  SchedulerOptions options = {};
};

// What a pipeline did in some time.
struct Window {
  std::int64_t rows = 0;
  double seconds = 0;
  double cpu = 0;
  ContextSwitches switches = {};

  [[nodiscard]] double rate() const { return static_cast<double>(rows) / seconds; }
  [[nodiscard]] double ns_per_tuple() const { return 1e9 * seconds / static_cast<double>(std::max<std::int64_t>(rows, 1)); }
  [[nodiscard]] double cpu_ns_per_tuple() const { return 1e9 * cpu / static_cast<double>(std::max<std::int64_t>(rows, 1)); }
};

// An operator of one function, where a benchmark needs no more.
inline OperatorId add_function(Scheduler& scheduler, std::string name, std::uint32_t flags, const std::shared_ptr<const Schema>& schema,
                               Function function, ThreadingModel model = ThreadingModel::Manual) {
  const auto ports = [&](std::uint32_t none) { return (flags & none) != 0 ? Schemas{} : Schemas{schema}; };
  return scheduler.add_operator(
      std::make_shared<FunctionOperator>(std::move(name), ports(REL_SOURCE), ports(REL_SINK), flags, std::move(function)),
      {.model = model});
}

// A source without end, operators, a sink: runs from construction to destruction.
class Pipeline {
 public:
  explicit Pipeline(const Shape& shape) : load_(std::make_shared<Load>(shape.load)), scheduler_(shape.options) {
    const auto schema = schema_of(shape.load.record, shape.load.payload);
    load_->record = schema->record_size();
    const Functions functions = functions_of(load_->record);
    OperatorId previous = add_function(scheduler_, "source", REL_SOURCE, schema, {.process = functions.make, .state = load_});
    for (std::size_t index = 0; index < shape.operators; ++index) {
      const OperatorId id = add_function(
          scheduler_, "multiply", REL_ONE_TO_ONE | REL_IN_PLACE, schema,
          {.process = shape.load.cost == 1 ? functions.multiply_once : functions.multiply_often, .state = load_}, shape.models(index));
      scheduler_.connect(previous, id);
      previous = id;
    }
    const OperatorId end = add_function(scheduler_, "count", REL_SINK, schema,
                                        {.process = shape.touch ? functions.touch : count, .state = total_}, shape.models(shape.operators));
    scheduler_.connect(previous, end);
    scheduler_.start({.thread_count = shape.threads});
  }
  ~Pipeline() { scheduler_.stop(false); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] std::int64_t rows() const { return total_->rows.load(std::memory_order_relaxed); }

  // Waits until the queues had their fill once, at most `limit` seconds: what comes before says nothing (findings 4).
  void fill(double limit = 20) {
    std::int64_t room = 1;
    for (const OperatorSample& each : scheduler_.sample().operators) {
      if (each.model != ThreadingModel::Manual) room += static_cast<std::int64_t>(each.queue_capacity);
    }
    const auto start = Clock::now();
    while (rows() < room && seconds_since(start) < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  [[nodiscard]] Window measure(double seconds) {
    const std::int64_t before = rows();
    const double cpu = cpu_seconds();
    const ContextSwitches switches = context_switches();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    Window window{.rows = rows() - before, .seconds = seconds_since(start), .cpu = cpu_seconds() - cpu};
    const ContextSwitches after = context_switches();
    window.switches = {after.voluntary - switches.voluntary, after.involuntary - switches.involuntary};
    return window;
  }

 private:
  const std::shared_ptr<Load> load_;
  const std::shared_ptr<Count> total_ = std::make_shared<Count>();
  Scheduler scheduler_;  // last: its threads use what is above
};

inline Window measure(const Shape& shape, double seconds) {
  Pipeline pipeline(shape);
  pipeline.fill();
  return pipeline.measure(seconds);
}

}  // namespace rayelastic::bench
