// Min, max, first, last. The state is a value of 8 bytes (16 for texts, decimals and UUIDs), then the number of values that weren't null.
// First and last that count nulls (Aggregate::first is 1) have in its place whether there is a value, a null, or nothing: so the fields of a
// record, each kept by an aggregate of its own, stay those of one record. So have those that go by event time, and its ticks behind that.
#include <cmath>

#include "operators/aggregate/aggregate_step.hpp"
#include "rayelastic/record/string_view.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

namespace {

template <typename Value>
constexpr bool kIsFloat = std::is_floating_point_v<Value> || std::is_same_v<Value, Half>;

template <typename Value>
constexpr std::size_t kValueBytes = sizeof(Value) > 8 ? sizeof(Value) : 8;

template <AggregateFunction kFunction, typename Value>
bool replaces(const Value& fresh, const Value& kept) noexcept {
  if constexpr (kFunction == AggregateFunction::First) return false;
  if constexpr (kFunction == AggregateFunction::Last) return true;
  if constexpr (kFunction == AggregateFunction::Min || kFunction == AggregateFunction::Max) {
    constexpr bool kMin = kFunction == AggregateFunction::Min;
    if constexpr (std::is_same_v<Value, StringView>) {
      return kMin ? fresh.view() < kept.view() : kept.view() < fresh.view();  // by bytes, which is by code points
    } else if constexpr (kIsFloat<Value>) {
      const auto a = static_cast<double>(fresh);
      const auto b = static_cast<double>(kept);
      return std::isnan(b) || (kMin ? a < b : a > b);  // NaN only if there is nothing else, as in Arrow
    } else {
      return kMin ? fresh < kept : fresh > kept;
    }
  }
}

template <AggregateFunction kFunction, typename Value>
void select(const AggregateStep& step, const std::byte* from, std::byte* state, std::int64_t values) {
  const auto value = load<Value>(from);
  std::byte* seen = state + kValueBytes<Value>;
  if (load<std::int64_t>(seen) == 0 || replaces<kFunction>(value, load<Value>(state))) {
    if constexpr (std::is_same_v<Value, StringView>) {
      step.rooms->assign(*reinterpret_cast<StringView*>(state), value.data(), value.length);
    } else {
      store(state, value);
    }
  }
  store(seen, load<std::int64_t>(seen) + values);
}

template <AggregateFunction kFunction, typename Value>
std::ptrdiff_t update(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    select<kFunction, Value>(step, record + step.field->offset, state, 1);
    return true;
  });
}

template <AggregateFunction kFunction, typename Value>
bool merge(const AggregateStep& step, std::byte* into, const std::byte* later) {
  const auto values = load<std::int64_t>(later + kValueBytes<Value>);
  if (values > 0) select<kFunction, Value>(step, later, into, values);
  return true;
}

enum Held : std::int64_t { kNothing, kValue, kNull };

template <AggregateFunction kFunction, typename Value>
void hold(const AggregateStep& step, const std::byte* from, std::byte* state, Held what) {
  std::byte* held = state + kValueBytes<Value>;
  if (kFunction == AggregateFunction::First && load<std::int64_t>(held) != kNothing) return;
  const Value value = what == kValue ? load<Value>(from) : Value{};
  if constexpr (std::is_same_v<Value, StringView>) {
    step.rooms->assign(*reinterpret_cast<StringView*>(state), value.data(), value.length);
  } else {
    store(state, value);
  }
  store<std::int64_t>(held, what);
}

template <AggregateFunction kFunction, typename Value>
std::ptrdiff_t update_with_nulls(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  const std::size_t stride = step.input->record_size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    const Held what = step.input->is_valid(record, *step.field) ? kValue : kNull;
    hold<kFunction, Value>(step, record + step.field->offset, static_cast<std::byte*>(states[i]) + step.state_offset, what);
  }
  return -1;
}

template <AggregateFunction kFunction, typename Value>
bool merge_with_nulls(const AggregateStep& step, std::byte* into, const std::byte* later) {
  const auto held = load<std::int64_t>(later + kValueBytes<Value>);
  if (held != kNothing) hold<kFunction, Value>(step, later, into, held == kValue ? kValue : kNull);
  return true;
}

// By event time: in the order of times, those of equal times as they come. The time stands behind what is held.
template <AggregateFunction kFunction, typename Value>
void hold_by_time(const AggregateStep& step, const std::byte* from, std::byte* state, Held what, std::int64_t at) {
  std::byte* kept = state + kValueBytes<Value> + sizeof(std::int64_t);
  std::byte* held = state + kValueBytes<Value>;
  const auto before = load<std::int64_t>(kept);
  const bool replaced = kFunction == AggregateFunction::First ? at < before : at >= before;
  if (load<std::int64_t>(held) != kNothing && !replaced) return;
  store<std::int64_t>(held, kNothing);  // so that a first value is replaced, too
  hold<kFunction, Value>(step, from, state, what);
  store(kept, at);
}

template <AggregateFunction kFunction, typename Value>
std::ptrdiff_t update_by_time(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  const std::size_t stride = step.input->record_size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    const Held what = step.input->is_valid(record, *step.field) ? kValue : kNull;
    if (what == kNull && !counts_nulls(step.aggregate)) continue;
    auto* state = static_cast<std::byte*>(states[i]) + step.state_offset;
    hold_by_time<kFunction, Value>(step, record + step.field->offset, state, what, step.time->of(record));
  }
  return -1;
}

template <AggregateFunction kFunction, typename Value>
bool merge_by_time(const AggregateStep& step, std::byte* into, const std::byte* later) {
  const auto held = load<std::int64_t>(later + kValueBytes<Value>);
  if (held == kNothing) return true;
  const auto at = load<std::int64_t>(later + kValueBytes<Value> + sizeof(std::int64_t));
  hold_by_time<kFunction, Value>(step, later, into, held == kValue ? kValue : kNull, at);
  return true;
}

bool result_with_nulls(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const std::size_t size = size_of(step.output->type);
  std::memcpy(target, state, size);
  return load<std::int64_t>(state + (size > 8 ? size : 8)) == kValue;
}

// In a field of the value's own size.
bool result(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const std::size_t size = size_of(step.output->type);
  std::memcpy(target, state, size);
  return load<std::int64_t>(state + (size > 8 ? size : 8)) != 0;
}

template <AggregateFunction kFunction>
void choose(AggregateStep& step) {
  const auto choose_type = [&step]<typename Value>(Value) {
    step.update = update<kFunction, Value>;
    step.merge = merge<kFunction, Value>;
    if constexpr (kFunction == AggregateFunction::First || kFunction == AggregateFunction::Last) {
      if (!counts_nulls(step.aggregate) && !step.time.has_value()) return;
      step.update = step.time.has_value() ? update_by_time<kFunction, Value> : update_with_nulls<kFunction, Value>;
      step.merge = step.time.has_value() ? merge_by_time<kFunction, Value> : merge_with_nulls<kFunction, Value>;
      step.result = result_with_nulls;
    }
  };
  if (is_text(step.field->type)) {
    choose_type(StringView());
  } else if (step.field->type == Type::Decimal128) {
    choose_type(Decimal());
  } else if (step.field->type == Type::Uuid) {
    choose_type(Uuid());
  } else {
    constexpr std::byte kZero[8] = {};
    visit_number(step.field->type, kZero, choose_type);
  }
}

}  // namespace

void choose_selection(AggregateStep& step) {
  step.result = result;
  switch (step.aggregate.function) {
    case AggregateFunction::Min:
      return choose<AggregateFunction::Min>(step);
    case AggregateFunction::Max:
      return choose<AggregateFunction::Max>(step);
    case AggregateFunction::First:
      return choose<AggregateFunction::First>(step);
    default:
      return choose<AggregateFunction::Last>(step);
  }
}

}  // namespace rayelastic
