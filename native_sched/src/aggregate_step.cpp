#include "aggregate_step.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "rayelastic/string_view.hpp"

namespace rayelastic {

namespace {

bool is_text(Type type) noexcept { return type == Type::String || type == Type::Binary; }

template <typename Value>
Value load(const std::byte* place) noexcept {
  Value value;
  std::memcpy(static_cast<void*>(&value), place, sizeof value);
  return value;
}

template <typename Value>
void store(std::byte* place, const Value& value) noexcept {
  std::memcpy(place, &value, sizeof value);
}

// IEEE 754 binary16, which C++20 has no type for.
struct Half {
  std::uint16_t bits;
  explicit operator double() const noexcept {
    const int exponent = bits >> 10 & 0x1f;
    const double fraction = bits & 0x3ff;
    double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    if (exponent == 0x1f) value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -value : value;
  }
};

template <typename Value>
constexpr bool kIsFloat = std::is_floating_point_v<Value> || std::is_same_v<Value, Half>;

template <typename Value>
constexpr std::size_t kValueBytes = sizeof(Value) > 8 ? sizeof(Value) : 8;

// Calls take(i, record, state) for the records whose field isn't null.
template <typename Take>
std::ptrdiff_t for_present(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states, Take&& take) {
  const std::size_t stride = step.input->record_size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    if (!step.input->is_valid(record, *step.field)) continue;
    if (!take(record + step.field->offset, static_cast<std::byte*>(states[i]) + step.state_offset)) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

std::ptrdiff_t count_tuples(const AggregateStep& step, const std::byte*, std::size_t count, void* const* states) {
  for (std::size_t i = 0; i < count; ++i) ++*reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(states[i]) + step.state_offset);
  return -1;
}

std::ptrdiff_t count_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [](const std::byte*, std::byte* state) {
    store(state, load<std::int64_t>(state) + 1);
    return true;
  });
}

template <typename Value>
std::ptrdiff_t sum_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [](const std::byte* field, std::byte* state) {
    const auto value = load<Value>(field);
    if constexpr (kIsFloat<Value>) {
      store(state, load<double>(state) + static_cast<double>(value));
    } else {
      std::int64_t sum;
      if (__builtin_add_overflow(load<std::int64_t>(state), value, &sum)) return false;
      store(state, sum);
    }
    store(state + 8, load<std::int64_t>(state + 8) + 1);
    return true;
  });
}

// Means of integers are sums of doubles, too: they don't overflow.
template <typename Value>
std::ptrdiff_t mean_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [](const std::byte* field, std::byte* state) {
    store(state, load<double>(state) + static_cast<double>(load<Value>(field)));
    store(state + 8, load<std::int64_t>(state + 8) + 1);
    return true;
  });
}

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
std::ptrdiff_t select_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* field, std::byte* state) {
    const auto value = load<Value>(field);
    std::byte* seen = state + kValueBytes<Value>;
    if (load<std::int64_t>(seen) == 0 || replaces<kFunction>(value, load<Value>(state))) {
      if constexpr (std::is_same_v<Value, StringView>) {
        step.table->keep_text(state, value.data(), value.length);
      } else {
        store(state, value);
      }
    }
    store(seen, load<std::int64_t>(seen) + 1);
    return true;
  });
}

bool result_of_count(const AggregateStep&, const std::byte* state, std::byte* target) {
  std::memcpy(target, state, 8);
  return true;
}

bool result_of_mean(const AggregateStep&, const std::byte* state, std::byte* target) {
  const auto count = load<std::int64_t>(state + 8);
  store(target, count == 0 ? 0.0 : load<double>(state) / static_cast<double>(count));
  return count != 0;
}

// Sums and selected values, in a field of the value's own size.
bool result_of_value(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const std::size_t size = size_of(step.output->type);
  std::memcpy(target, state, size);
  return load<std::int64_t>(state + (size > 8 ? size : 8)) != 0;
}

template <typename Value>
AggregateStep::Update code_for(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::Min:
      return select_values<AggregateFunction::Min, Value>;
    case AggregateFunction::Max:
      return select_values<AggregateFunction::Max, Value>;
    case AggregateFunction::First:
      return select_values<AggregateFunction::First, Value>;
    case AggregateFunction::Last:
      return select_values<AggregateFunction::Last, Value>;
    default:
      break;
  }
  if constexpr (std::is_same_v<Value, StringView>) {
    return nullptr;  // refused by type_of_aggregate
  } else {
    return function == AggregateFunction::Mean ? mean_values<Value> : sum_values<Value>;
  }
}

AggregateStep::Update code_for(Type type, AggregateFunction function) {
  switch (type) {
    case Type::Bool:
    case Type::UInt8:
      return code_for<std::uint8_t>(function);
    case Type::Int8:
      return code_for<std::int8_t>(function);
    case Type::Int16:
      return code_for<std::int16_t>(function);
    case Type::UInt16:
      return code_for<std::uint16_t>(function);
    case Type::Int32:
    case Type::Date32:
    case Type::Time32:
      return code_for<std::int32_t>(function);
    case Type::UInt32:
      return code_for<std::uint32_t>(function);
    case Type::UInt64:
      return code_for<std::uint64_t>(function);
    case Type::Int64:
    case Type::Date64:
    case Type::Time64:
    case Type::Timestamp:
    case Type::Duration:
      return code_for<std::int64_t>(function);
    case Type::Float16:
      return code_for<Half>(function);
    case Type::Float32:
      return code_for<float>(function);
    case Type::Float64:
      return code_for<double>(function);
    case Type::String:
    case Type::Binary:
      return code_for<StringView>(function);
  }
  return nullptr;
}

}  // namespace

std::size_t state_size_of(AggregateFunction function, Type field) noexcept {
  if (function == AggregateFunction::Count) return 8;
  return is_text(field) ? 24 : 16;
}

void choose_code(AggregateStep& step, AggregateFunction function) {
  if (function == AggregateFunction::Count) {
    step.update = step.field == nullptr ? count_tuples : count_values;
    step.result = result_of_count;
  } else {
    step.update = code_for(step.field->type, function);
    step.result = function == AggregateFunction::Mean ? result_of_mean : result_of_value;
  }
}

}  // namespace rayelastic
