#include "rayelastic/operators/aggregate/aggregate.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
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
constexpr std::array<std::string_view, 13> kNames = {"count",         "sum",    "min",      "max",     "mean",     "first", "last",
                                                     "weighted_mean", "stddev", "distinct", "largest", "quantile", "top"};

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

using MakeGroups = std::function<std::unique_ptr<Groups>()>;

class AggregateOperator : public Operator {
 public:
  AggregateOperator(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, std::uint32_t flags,
                    MakeGroups make_groups)
      : Operator(std::move(name), {std::move(input)}, {std::move(output)}, flags),
        make_groups_(std::move(make_groups)),
        groups_(make_groups_()) {
    const std::span<const Field* const> keys = table().extractor().fields();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Field& field = schema().fields()[i];
      if (field.type != keys[i]->type || (keys[i]->nullable && !field.nullable))
        throw std::invalid_argument("field '" + field.name + "' of the output schema can't hold key '" + keys[i]->name + "'");
      key_fields_.push_back(&field);
    }
  }

  [[nodiscard]] StateTable* state() override { return &table(); }
  [[nodiscard]] KeyedState& table() const noexcept { return *groups_->table; }

 protected:
  [[nodiscard]] const Schema& schema() const noexcept { return *outputs().front(); }  // of the output
  [[nodiscard]] Groups& groups() const noexcept { return *groups_; }
  [[nodiscard]] std::unique_ptr<Groups> make_groups() const { return make_groups_(); }

  // A record of the key's aggregates; texts still point into the table. False: a user's code fails.
  [[nodiscard]] bool write(const StringView& key, const std::byte* state, std::byte* record) const {
    std::memset(record, 0, schema().record_size());
    table().extractor().restore(key, schema(), key_fields_, record);
    return groups_->accumulators.write(state, record);
  }

  [[nodiscard]] std::int64_t fail(std::size_t index, rel_context* context) const {
    context->fail(groups_->accumulators.problem());
    return REL_FAILED(index);
  }

  // 0, or REL_FAILED.
  [[nodiscard]] std::int64_t update(const std::byte* records, std::int64_t n, rel_context* context) {
    const std::ptrdiff_t failed = groups_->update(records, static_cast<std::size_t>(n));
    return failed < 0 ? 0 : fail(static_cast<std::size_t>(failed), context);
  }

  [[nodiscard]] std::int64_t emit_all(std::byte* out, std::int64_t capacity, rel_context* context) {
    const std::size_t stride = schema().record_size();
    std::size_t written = 0;
    bool stopped = false;
    bool failed = false;
    const auto chunk_for_run = [context](std::size_t bytes) {  // freed with the run, unlike context->allocate in a long call
      const ChunkRef chunk = Chunk::allocate(bytes);
      context->attach(chunk.get());
      return chunk->data();
    };
    table().for_each([&](const StringView& key, const std::byte* state) {
      if (stopped || failed) return;
      if (written == static_cast<std::size_t>(capacity)) {
        detach_texts(schema(), out, written, chunk_for_run);
        groups_->accumulators.settle();
        stopped = !context->flush(static_cast<std::int64_t>(written));
        written = 0;
        if (stopped) return;
      }
      failed = !write(key, state, out + written++ * stride);
    });
    if (stopped) return REL_STOPPED;
    if (failed) return fail(0, context);
    detach_texts(schema(), out, written, chunk_for_run);
    groups_->accumulators.settle();
    return static_cast<std::int64_t>(written);
  }

 private:
  const MakeGroups make_groups_;
  const std::unique_ptr<Groups> groups_;
  std::vector<const Field*> key_fields_;  // of the output
};

// Emits at the end. Takes partial runs, if the order is nothing to its functions.
class FinalAggregate final : public AggregateOperator {
 public:
  FinalAggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, MakeGroups make_groups)
      : AggregateOperator(std::move(name), std::move(input), std::move(output), REL_ON_FINISH, std::move(make_groups)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    return overflowed_ ? fail(0, context) : update(in, n, context);
  }
  std::int64_t finish(std::byte* out, std::int64_t capacity, rel_context* context) override {
    return merge_partial() ? emit_all(out, capacity, context) : fail(0, context);
  }
  bool on_mark(Mark, rel_context* context) override {
    if (!merge_partial()) (void)fail(0, context);
    return true;
  }

  [[nodiscard]] bool takes_partial_runs() const override { return groups().accumulators.in_any_order(); }
  std::int64_t process_partial(const std::byte* in, std::int64_t n, std::string& problem) override {
    if (partial_ == nullptr) partial_ = make_groups();
    const std::ptrdiff_t failed = partial_->update(in, static_cast<std::size_t>(n));
    if (failed < 0) return n;
    problem = partial_->accumulators.problem();
    return REL_FAILED(failed);
  }
  [[nodiscard]] bool has_partial_room() const override { return partial_ == nullptr || partial_->table->size() < kMostPartialKeys; }
  void settle() override {
    if (!merge_partial()) throw StateError(groups().accumulators.problem());
  }

 private:
  // Nobody is in process_partial. False: a sum overflows, now or when it was called before.
  [[nodiscard]] bool merge_partial() {
    const std::unique_ptr<Groups> partial = std::move(partial_);
    overflowed_ = (partial != nullptr && !groups().merge(*partial)) || overflowed_;
    return !overflowed_;
  }

  std::unique_ptr<Groups> partial_;  // null: there was no partial run since the last mark
  bool overflowed_ = false;          // the state is wrong: every call fails from now on
};

// Emits what each run comes to, and forgets it.
class RunAggregate final : public AggregateOperator {
 public:
  RunAggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, MakeGroups make_groups)
      : AggregateOperator(std::move(name), std::move(input), std::move(output), 0, std::move(make_groups)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    const std::int64_t failed = update(in, n, context);
    if (failed != 0) return failed;
    const std::int64_t emitted = emit_all(out, capacity, context);
    table().for_each([this](const StringView&, std::byte* state) { of_run_.push_back(state); });
    // The last one first: the place that is free last is taken first, so the next run's keys are in order again.
    while (!of_run_.empty()) {
      table().remove(of_run_.back());
      of_run_.pop_back();
    }
    return emitted;
  }
  [[nodiscard]] StateTable* state() override { return nullptr; }

 private:
  std::vector<void*> of_run_;  // states to be forgotten
};

// Emits the aggregates of a record's key for each record.
class UpdateAggregate final : public AggregateOperator {
 public:
  UpdateAggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, MakeGroups make_groups)
      : AggregateOperator(std::move(name), std::move(input), std::move(output), REL_ONE_TO_ONE, std::move(make_groups)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t, rel_context* context) override {
    Accumulators& accumulators = groups().accumulators;
    const auto count = static_cast<std::size_t>(n);
    const std::size_t stride = inputs().front()->record_size();
    void* states[kBatch];
    table().begin_run(context->watermark(), count);
    for (std::size_t first = 0; first < count; first += kBatch) {
      const std::size_t batch = std::min(kBatch, count - first);
      table().lookup(in + first * stride, batch, states);
      for (std::size_t i = 0; i < batch; ++i, out += schema().record_size()) {
        if (accumulators.update(in + (first + i) * stride, 1, states + i) >= 0 ||
            !write(KeyedState::key_of(states[i]), static_cast<const std::byte*>(states[i]), out))
          return fail(first + i, context);
        detach_texts(schema(), out, 1, [context](std::size_t bytes) { return static_cast<char*>(context->allocate(bytes)); });
        accumulators.settle();
      }
    }
    table().publish();
    return n;
  }
};

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
    case AggregateFunction::Top:
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

std::shared_ptr<Operator> make_aggregate(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                                         const std::vector<std::string>& keys, const std::vector<Aggregate>& aggregates, Emit emit,
                                         const TimeToLive& ttl) try {
  if (emit == Emit::Run && ttl.ticks != 0) throw std::invalid_argument("aggregates of a run have no time to live");
  MakeGroups make = [=] { return std::make_unique<Groups>(input, output, keys, aggregates, ttl); };
  if (emit == Emit::Final) return std::make_shared<FinalAggregate>(name, std::move(input), std::move(output), std::move(make));
  if (emit == Emit::Update) return std::make_shared<UpdateAggregate>(name, std::move(input), std::move(output), std::move(make));
  return std::make_shared<RunAggregate>(name, std::move(input), std::move(output), std::move(make));
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

KeyedState& table_of_aggregate(Operator& op) { return dynamic_cast<AggregateOperator&>(op).table(); }

}  // namespace rayelastic
