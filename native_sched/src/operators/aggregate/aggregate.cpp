#include "rayelastic/operators/aggregate/aggregate.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "operators/aggregate/accumulators.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kBatch = 64;
constexpr std::size_t kMostPartialKeys = 1 << 16;  // a table of more isn't in a core's cache, and merging it is a pause
constexpr std::array<std::string_view, 12> kNames = {"count", "sum",           "min",    "max",      "mean",    "first",
                                                     "last",  "weighted_mean", "stddev", "distinct", "largest", "quantile"};

// A table by key, and the code that works on its states.
struct Groups {
  Groups(std::shared_ptr<const Schema> input, const std::shared_ptr<const Schema>& output, const std::vector<std::string>& keys,
         const std::vector<Aggregate>& aggregates, const TimeToLive& ttl)
      : accumulators(input, output, keys.size(), aggregates) {
    table = std::make_unique<KeyedState>(std::move(input), keys, accumulators.state_size(), accumulators.initial(),
                                         accumulators.text_offsets(), ttl);
    accumulators.keep_in(table->texts());
    table->check_texts(accumulators.text_checks());
  }

  // The index of a record whose sum overflows, or -1; accumulators.problem() tells.
  [[nodiscard]] std::ptrdiff_t update(const std::byte* records, std::size_t count) {
    void* states[kBatch];
    const std::size_t stride = table->extractor().schema().record_size();
    for (std::size_t first = 0; first < count; first += kBatch) {
      const std::size_t batch = std::min(kBatch, count - first);
      const std::byte* begin = records + first * stride;
      table->lookup(begin, batch, states);
      const std::ptrdiff_t failed = accumulators.update(begin, batch, states);
      if (failed >= 0) return static_cast<std::ptrdiff_t>(first) + failed;
    }
    table->publish();
    return -1;
  }

  // Adds the groups of another one; false: a sum overflows.
  [[nodiscard]] bool merge(const Groups& other) {
    StringView keys[kBatch];
    const std::byte* states[kBatch];
    void* into[kBatch];
    bool fits = true;
    std::size_t batch = 0;
    const auto merge_batch = [&] {
      table->lookup_keys(keys, batch, into);
      for (std::size_t i = 0; i < batch; ++i) fits = accumulators.merge(static_cast<std::byte*>(into[i]), states[i]) && fits;
      batch = 0;
    };
    other.table->for_each([&](const StringView& key, const std::byte* state) {
      keys[batch] = key;
      states[batch] = state;
      if (++batch == kBatch) merge_batch();
    });
    merge_batch();
    table->publish();
    return fits;
  }

  Accumulators accumulators;
  std::unique_ptr<KeyedState> table;
};

struct AggregateState {
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
  std::function<std::unique_ptr<Groups>()> make_groups;
  std::unique_ptr<Groups> groups = {};
  std::unique_ptr<Groups> partial = {};       // see OperatorSpec::partial; null: nothing was taken since the last mark
  std::vector<const Field*> key_fields = {};  // of the output
  std::vector<void*> of_run = {};             // states to be forgotten, with Emit::Run
  bool overflowed = false;                    // what was taken in is wrong: every call fails from now on

  // A record of the key's aggregates; texts still point into the table. False: a user's code fails.
  [[nodiscard]] bool write(const StringView& key, const std::byte* state, std::byte* record) const {
    std::memset(record, 0, output->record_size());
    groups->table->extractor().restore(key, *output, key_fields, record);
    return groups->accumulators.write(state, record);
  }

  // Nobody is in update_partial. False: a sum overflows, now or when it was called before.
  [[nodiscard]] bool take_in_partial() {
    const std::unique_ptr<Groups> taken = std::move(partial);
    overflowed = (taken != nullptr && !groups->merge(*taken)) || overflowed;
    return !overflowed;
  }
};

std::int64_t update_partial(const void* in, std::int64_t n, void* state, std::string& problem) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  if (aggregate.partial == nullptr) aggregate.partial = aggregate.make_groups();
  const std::ptrdiff_t failed = aggregate.partial->update(static_cast<const std::byte*>(in), static_cast<std::size_t>(n));
  if (failed < 0) return n;
  problem = aggregate.partial->accumulators.problem();
  return REL_FAILED(failed);
}

bool has_partial_room(void* state) {
  const auto& aggregate = *static_cast<AggregateState*>(state);
  return aggregate.partial == nullptr || aggregate.partial->table->size() < kMostPartialKeys;
}

bool marked(void* state, Mark, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  if (!aggregate.take_in_partial()) context->fail(aggregate.groups->accumulators.problem());
  return true;
}

void settle(void* state) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  if (!aggregate.take_in_partial()) throw StateError(aggregate.groups->accumulators.problem());
}

std::int64_t emit_all(AggregateState& aggregate, std::byte* out, std::size_t capacity, rel_context* context) {
  if (!aggregate.take_in_partial()) {
    context->fail(aggregate.groups->accumulators.problem());
    return REL_FAILED(0);
  }
  const std::size_t stride = aggregate.output->record_size();
  std::size_t written = 0;
  bool stopped = false;
  bool failed = false;
  const auto chunk_for_run = [context](std::size_t bytes) {  // let go with the run, unlike context->allocate in a long call
    const ChunkRef chunk = Chunk::allocate(bytes);
    context->attach(chunk.get());
    return chunk->data();
  };
  aggregate.groups->table->for_each([&](const StringView& key, const std::byte* state) {
    if (stopped || failed) return;
    if (written == capacity) {
      detach_texts(*aggregate.output, out, written, chunk_for_run);
      aggregate.groups->accumulators.settle();
      stopped = !context->flush(static_cast<std::int64_t>(written));
      written = 0;
      if (stopped) return;
    }
    failed = !aggregate.write(key, state, out + written++ * stride);
  });
  if (stopped) return REL_STOPPED;
  if (failed) {
    context->fail(aggregate.groups->accumulators.problem());
    return REL_FAILED(0);
  }
  detach_texts(*aggregate.output, out, written, chunk_for_run);
  aggregate.groups->accumulators.settle();
  return static_cast<std::int64_t>(written);
}

// 0, or REL_FAILED.
std::int64_t take_in(AggregateState& aggregate, const std::byte* records, std::size_t count, rel_context* context) {
  const std::ptrdiff_t failed = aggregate.overflowed ? 0 : aggregate.groups->update(records, count);
  if (failed < 0) return 0;
  context->fail(aggregate.groups->accumulators.problem());
  return REL_FAILED(failed);
}

std::int64_t update_final(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  if (n == 0) return emit_all(aggregate, static_cast<std::byte*>(out), static_cast<std::size_t>(capacity), context);
  return take_in(aggregate, static_cast<const std::byte*>(in), static_cast<std::size_t>(n), context);
}

std::int64_t update_run(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  const std::int64_t failed = take_in(aggregate, static_cast<const std::byte*>(in), static_cast<std::size_t>(n), context);
  if (failed != 0) return failed;
  const std::int64_t given = emit_all(aggregate, static_cast<std::byte*>(out), static_cast<std::size_t>(capacity), context);
  aggregate.of_run.clear();
  aggregate.groups->table->for_each([&aggregate](const StringView&, std::byte* one) { aggregate.of_run.push_back(one); });
  // The last one first: the place that is free last is taken first, so the next run's keys are in order again.
  while (!aggregate.of_run.empty()) {
    aggregate.groups->table->remove(aggregate.of_run.back());
    aggregate.of_run.pop_back();
  }
  return given;
}

std::int64_t update_each(const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  auto& [accumulators, table] = *aggregate.groups;
  const auto* records = static_cast<const std::byte*>(in);
  auto* target = static_cast<std::byte*>(out);
  const auto count = static_cast<std::size_t>(n);
  const std::size_t stride = aggregate.input->record_size();
  void* states[kBatch];
  table->begin_run(context->watermark(), count);
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t batch = std::min(kBatch, count - first);
    table->lookup(records + first * stride, batch, states);
    for (std::size_t i = 0; i < batch; ++i, target += aggregate.output->record_size()) {
      if (accumulators.update(records + (first + i) * stride, 1, states + i) >= 0 ||
          !aggregate.write(KeyedState::key_of(states[i]), static_cast<const std::byte*>(states[i]), target)) {
        context->fail(accumulators.problem());
        return REL_FAILED(first + i);
      }
      detach_texts(*aggregate.output, target, 1, [context](std::size_t bytes) { return static_cast<char*>(context->allocate(bytes)); });
      aggregate.groups->accumulators.settle();
    }
  }
  table->publish();
  return n;
}

}  // namespace

AggregateFunction aggregate_function_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<AggregateFunction>(found - kNames.begin());
  std::string known;
  for (const std::string_view each : kNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw std::invalid_argument("there is no aggregate '" + std::string(name) + "', only " + known);
}

Type type_of_aggregate(AggregateFunction function, Type field) {
  const auto needs = [function](bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string(kNames[static_cast<std::size_t>(function)]) + " needs " + what);
  };
  const bool number = is_float(field) || field <= Type::UInt64;
  switch (function) {
    case AggregateFunction::Count:
    case AggregateFunction::Distinct:
      return Type::Int64;
    case AggregateFunction::Largest:
      needs(!is_text(field), "a number or a time");
      return field;
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::First:
    case AggregateFunction::Last:
      return field;
    case AggregateFunction::Sum:
      if (field == Type::Duration || field == Type::Decimal128) return field;
      needs(number, "a number");
      return is_float(field) ? Type::Float64 : Type::Int64;
    case AggregateFunction::Mean:
      needs(number || field == Type::Decimal128, "a number");
      return Type::Float64;
    default:
      needs(number, "a number");
      return Type::Float64;
  }
}

OperatorSpec make_aggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                            const std::vector<std::string>& keys, const std::vector<Aggregate>& aggregates, Emit emit,
                            const TimeToLive& ttl) try {
  if (emit != Emit::Update && ttl.ticks != 0) throw std::invalid_argument("aggregates at the end have no time to live");
  auto state = std::make_shared<AggregateState>(
      AggregateState{input, output, [=] { return std::make_unique<Groups>(input, output, keys, aggregates, ttl); }});
  state->groups = state->make_groups();
  KeyedState& table = *state->groups->table;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Field& key = *table.extractor().fields()[i];
    const Field& field = output->fields()[i];
    if (field.type != key.type || (key.nullable && !field.nullable))
      throw std::invalid_argument("field '" + field.name + "' of the output schema can't hold key '" + keys[i] + "'");
    state->key_fields.push_back(&field);
  }

  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = emit == Emit::Final ? update_final : emit == Emit::Update ? update_each : update_run;
  if (emit == Emit::Final) spec.flags = REL_ON_FINISH;
  if (emit == Emit::Update) spec.flags = REL_ONE_TO_ONE;
  if (emit == Emit::Final && state->groups->accumulators.in_any_order()) {
    spec.partial = update_partial;
    spec.has_partial_room = has_partial_room;
    spec.settle = settle;
    spec.marked = marked;
  }
  spec.input = std::move(input);
  spec.output = std::move(output);
  if (emit != Emit::Run) spec.store = std::shared_ptr<StateTable>(state, &table);
  spec.state = std::move(state);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

KeyedState& table_of_aggregate(const OperatorSpec& spec) { return *static_cast<AggregateState*>(spec.state.get())->groups->table; }

}  // namespace rayelastic
