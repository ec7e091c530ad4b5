#include "rayelastic/aggregate.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "aggregate_step.hpp"
#include "rayelastic/keyed_state.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kBatch = 64;
constexpr std::array<std::string_view, 7> kNames = {"count", "sum", "min", "max", "mean", "first", "last"};  // as AggregateFunction

bool is_text(const Field& field) noexcept { return field.type == Type::String || field.type == Type::Binary; }

StringView& text_in(std::byte* record, const Field& field) noexcept { return *reinterpret_cast<StringView*>(record + field.offset); }

struct AggregateState {
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
  std::unique_ptr<KeyedState> table;
  std::vector<const Field*> key_fields;  // of the output
  std::vector<AggregateStep> steps;

  [[nodiscard]] std::string overflow(const AggregateStep& step) const {
    return "the sum of field '" + step.field->name + "' doesn't fit into int64; map the field to float first";
  }

  // A record of the key's aggregates; texts still point into the table.
  void write(const StringView& key, const std::byte* state, std::byte* record) const {
    std::memset(record, 0, output->record_size());
    table->extractor().restore(key, *output, key_fields, record);
    for (const AggregateStep& step : steps) {
      const Field& field = *step.output;
      const bool valid = step.result(step, state + step.state_offset, record + field.offset);
      if (field.validity < 0 || !valid) continue;
      const auto bit = static_cast<std::size_t>(field.validity);
      record[output->validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
    }
  }

  // Copies the long texts of `count` records to allocate(bytes): what the table owns may change while they are under way.
  template <typename Allocate>
  void detach_texts(std::byte* records, std::size_t count, Allocate&& allocate) const {
    if (!output->has_text()) return;
    const auto for_long_texts = [&](auto&& visit) {
      for (const Field& field : output->fields()) {
        if (!is_text(field)) continue;
        for (std::size_t i = 0; i < count; ++i) {
          StringView& text = text_in(records + i * output->record_size(), field);
          if (!text.is_inline()) visit(text);
        }
      }
    };
    std::size_t bytes = 0;
    for_long_texts([&bytes](const StringView& text) { bytes += text.length; });
    if (bytes == 0) return;
    char* next = allocate(bytes);
    for_long_texts([&next](StringView& text) {
      std::memcpy(next, text.pointer, text.length);
      text.pointer = std::exchange(next, next + text.length);
    });
  }
};

std::int64_t emit_all(AggregateState& aggregate, std::byte* out, std::size_t capacity, rel_context* context) {
  const std::size_t stride = aggregate.output->record_size();
  std::size_t written = 0;
  bool stopped = false;
  const auto chunk_for_run = [context](std::size_t bytes) {  // let go with the run, unlike context->allocate in a long call
    const ChunkRef chunk = Chunk::allocate(bytes);
    context->attach(chunk.get());
    return chunk->data();
  };
  aggregate.table->for_each([&](const StringView& key, const std::byte* state) {
    if (stopped) return;
    if (written == capacity) {
      aggregate.detach_texts(out, written, chunk_for_run);
      stopped = !context->flush(static_cast<std::int64_t>(written));
      written = 0;
      if (stopped) return;
    }
    aggregate.write(key, state, out + written++ * stride);
  });
  if (stopped) return REL_STOPPED;
  aggregate.detach_texts(out, written, chunk_for_run);
  return static_cast<std::int64_t>(written);
}

std::int64_t update_final(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  if (n == 0) return emit_all(aggregate, static_cast<std::byte*>(out), static_cast<std::size_t>(capacity), context);
  const auto* records = static_cast<const std::byte*>(in);
  const auto count = static_cast<std::size_t>(n);
  void* states[kBatch];
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t batch = std::min(kBatch, count - first);
    const std::byte* begin = records + first * aggregate.input->record_size();
    aggregate.table->lookup(begin, batch, states);
    for (const AggregateStep& step : aggregate.steps) {
      const std::ptrdiff_t failed = step.update(step, begin, batch, states);
      if (failed < 0) continue;
      context->fail(aggregate.overflow(step));
      return REL_FAILED(first + static_cast<std::size_t>(failed));
    }
  }
  return 0;
}

std::int64_t update_each(const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context* context) {
  auto& aggregate = *static_cast<AggregateState*>(state);
  const auto* records = static_cast<const std::byte*>(in);
  auto* target = static_cast<std::byte*>(out);
  const auto count = static_cast<std::size_t>(n);
  const std::size_t stride = aggregate.input->record_size();
  void* states[kBatch];
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t batch = std::min(kBatch, count - first);
    aggregate.table->lookup(records + first * stride, batch, states);
    for (std::size_t i = 0; i < batch; ++i, target += aggregate.output->record_size()) {
      for (const AggregateStep& step : aggregate.steps) {
        if (step.update(step, records + (first + i) * stride, 1, states + i) < 0) continue;
        context->fail(aggregate.overflow(step));
        return REL_FAILED(first + i);
      }
      aggregate.write(KeyedState::key_of(states[i]), static_cast<const std::byte*>(states[i]), target);
      aggregate.detach_texts(target, 1, [context](std::size_t bytes) { return static_cast<char*>(context->allocate(bytes)); });
    }
  }
  return n;
}

}  // namespace

AggregateFunction aggregate_function_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    throw std::invalid_argument("there is no aggregate '" + std::string(name) + "': count, sum, min, max, mean, first or last");
  return static_cast<AggregateFunction>(found - kNames.begin());
}

Type type_of_aggregate(AggregateFunction function, Type field) {
  switch (function) {
    case AggregateFunction::Count:
      return Type::Int64;
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::First:
    case AggregateFunction::Last:
      return field;
    case AggregateFunction::Sum:
    case AggregateFunction::Mean:
      break;
  }
  const bool is_float = field == Type::Float16 || field == Type::Float32 || field == Type::Float64;
  if (function == AggregateFunction::Sum && field == Type::Duration) return field;
  if (!is_float && field > Type::UInt64)
    throw std::invalid_argument(std::string(kNames[static_cast<std::size_t>(function)]) + " needs a number");
  return function == AggregateFunction::Sum && !is_float ? Type::Int64 : Type::Float64;
}

OperatorSpec make_aggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                            const std::vector<std::string>& keys, const std::vector<Aggregate>& aggregates, Emit emit) {
  const auto refuse = [&name](const std::string& why) { throw std::invalid_argument("operator '" + name + "': " + why); };
  const std::vector<Field>& results = output->fields();
  if (aggregates.empty()) refuse("nothing to aggregate");
  if (results.size() != keys.size() + aggregates.size())
    refuse("the output schema has to have the key fields, then one field per aggregate");

  auto state = std::make_shared<AggregateState>();
  std::size_t state_size = 0;
  std::vector<std::size_t> text_offsets;
  for (std::size_t i = 0; i < aggregates.size(); ++i) {
    const auto& [function, field_name] = aggregates[i];
    AggregateStep step;
    step.input = input.get();
    step.output = &results[keys.size() + i];
    step.field = field_name.empty() ? nullptr : input->find(field_name);
    if (step.field == nullptr && (!field_name.empty() || function != AggregateFunction::Count))
      refuse("there is no field '" + field_name + "' to aggregate");
    const Type type = step.field == nullptr ? Type::Int64 : step.field->type;
    Type expected = Type::Int64;
    try {
      expected = type_of_aggregate(function, type);
    } catch (const std::invalid_argument& problem) {
      refuse(std::string(problem.what()) + ", which field '" + field_name + "' is not");
    }
    if (step.output->type != expected) refuse("field '" + step.output->name + "' of the output schema has another type than its aggregate");
    if (function != AggregateFunction::Count && step.field->nullable && !step.output->nullable) {
      refuse("field '" + step.output->name + "' has to be nullable, because '" + field_name + "' is");
    }
    choose_code(step, function);
    step.state_offset = state_size;
    if (function != AggregateFunction::Count && is_text(*step.field)) text_offsets.push_back(state_size);
    state_size += state_size_of(function, type);
    state->steps.push_back(step);
  }

  const std::vector<std::byte> initial(state_size);
  try {
    state->table = std::make_unique<KeyedState>(input, keys, state_size, initial, text_offsets);
  } catch (const std::invalid_argument& problem) {
    refuse(problem.what());
  }
  for (AggregateStep& step : state->steps) step.table = state->table.get();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Field& key = *state->table->extractor().fields()[i];
    if (results[i].type != key.type || (key.nullable && !results[i].nullable))
      refuse("field '" + results[i].name + "' of the output schema can't hold key '" + keys[i] + "'");
    state->key_fields.push_back(&results[i]);
  }
  state->input = input;
  state->output = output;

  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = emit == Emit::Final ? update_final : update_each;
  spec.flags = emit == Emit::Final ? REL_ON_FINISH : REL_ONE_TO_ONE;
  spec.input = std::move(input);
  spec.output = std::move(output);
  spec.state = std::move(state);
  return spec;
}

KeyedState& table_of_aggregate(const OperatorSpec& spec) { return *static_cast<AggregateState*>(spec.state.get())->table; }

}  // namespace rayelastic
