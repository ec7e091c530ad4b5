// Count, sum, mean, weighted mean, standard deviation: a number or three that values are added to.
//   count: the number alone. sum, mean: the sum (int64 or double, of decimals 128 bits), number of values. weighted mean: sum of products, sum of weights,
//   number of values. standard deviation: number of values, mean, sum of squared distances from it (Welford; merged as by Chan et al.).
#include <charconv>
#include <cmath>
#include <limits>

#include "operators/aggregate/aggregate_step.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

namespace {

template <typename Value>
constexpr bool kIsFloat = std::is_floating_point_v<Value> || std::is_same_v<Value, Half>;

template <typename Value>
void add(std::byte* place, Value value) noexcept {
  store(place, static_cast<Value>(load<Value>(place) + value));
}

std::ptrdiff_t count_tuples(const AggregateStep& step, const std::byte*, std::size_t count, void* const* states) {
  for (std::size_t i = 0; i < count; ++i) add<std::int64_t>(static_cast<std::byte*>(states[i]) + step.state_offset, 1);
  return -1;
}

std::ptrdiff_t count_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [](const std::byte*, std::byte* state) {
    add<std::int64_t>(state, 1);
    return true;
  });
}

bool merge_counts(const AggregateStep&, std::byte* into, const std::byte* later) {
  add(into, load<std::int64_t>(later));
  return true;
}

bool result_of_count(const AggregateStep&, const std::byte* state, std::byte* target) {
  std::memcpy(target, state, 8);
  return true;
}

template <typename Value>
std::ptrdiff_t sum_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    const auto value = load<Value>(record + step.field->offset);
    if constexpr (kIsFloat<Value>) {
      add(state, static_cast<double>(value));
    } else {
      std::int64_t sum;
      if (__builtin_add_overflow(load<std::int64_t>(state), value, &sum)) return false;
      store(state, sum);
    }
    add<std::int64_t>(state + 8, 1);
    return true;
  });
}

bool merge_integer_sums(const AggregateStep&, std::byte* into, const std::byte* later) {
  std::int64_t sum;
  if (__builtin_add_overflow(load<std::int64_t>(into), load<std::int64_t>(later), &sum)) return false;
  store(into, sum);
  add(into + 8, load<std::int64_t>(later + 8));
  return true;
}

// Means of integers are sums of doubles, too: they don't overflow.
template <typename Value>
std::ptrdiff_t sum_doubles(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    add(state, static_cast<double>(load<Value>(record + step.field->offset)));
    add<std::int64_t>(state + 8, 1);
    return true;
  });
}

bool merge_double_sums(const AggregateStep&, std::byte* into, const std::byte* later) {
  add(into, load<double>(later));
  add(into + 8, load<std::int64_t>(later + 8));
  return true;
}

constexpr WholeNumber128 least_beyond_38_digits() {
  WholeNumber128 power = 1;
  for (int i = 0; i < 38; ++i) power *= 10;
  return power;
}

// False: it has more than 38 digits.
bool add_decimal(std::byte* state, WholeNumber128 value, std::int64_t values) {
  constexpr WholeNumber128 kLeastBeyond = least_beyond_38_digits();
  WholeNumber128 sum;
  if (__builtin_add_overflow(load<Decimal>(state).number(), value, &sum) || sum >= kLeastBeyond || sum <= -kLeastBeyond) return false;
  store(state, Decimal(sum));
  add<std::int64_t>(state + sizeof(Decimal), values);
  return true;
}

std::ptrdiff_t sum_decimals(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    return add_decimal(state, load<Decimal>(record + step.field->offset).number(), 1);
  });
}

bool merge_decimal_sums(const AggregateStep&, std::byte* into, const std::byte* later) {
  return add_decimal(into, load<Decimal>(later).number(), load<std::int64_t>(later + sizeof(Decimal)));
}

bool result_of_decimal_sum(const AggregateStep&, const std::byte* state, std::byte* target) {
  std::memcpy(target, state, sizeof(Decimal));
  return load<std::int64_t>(state + sizeof(Decimal)) != 0;
}

bool result_of_decimal_mean(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const auto count = load<std::int64_t>(state + sizeof(Decimal));
  const auto sum = static_cast<long double>(load<Decimal>(state).number());
  store(target, count == 0 ? 0.0 : static_cast<double>(sum / static_cast<long double>(count) * static_cast<long double>(step.unit)));
  return count != 0;
}

// "d:38,2": 2 digits behind the point.
double unit_of(const std::string& format) {
  const std::size_t comma = format.find(',');
  int scale = 0;
  if (comma != std::string::npos) (void)std::from_chars(format.data() + comma + 1, format.data() + format.size(), scale);
  return std::pow(10.0, -scale);
}

bool result_of_sum(const AggregateStep&, const std::byte* state, std::byte* target) {
  std::memcpy(target, state, 8);
  return load<std::int64_t>(state + 8) != 0;
}

bool result_of_mean(const AggregateStep&, const std::byte* state, std::byte* target) {
  const auto count = load<std::int64_t>(state + 8);
  store(target, count == 0 ? 0.0 : load<double>(state) / static_cast<double>(count));
  return count != 0;
}

std::ptrdiff_t weigh(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    if (!step.input->is_valid(record, *step.weight)) return true;
    const double weight = number_at(step.weight->type, record + step.weight->offset);
    add(state, number_at(step.field->type, record + step.field->offset) * weight);
    add(state + 8, weight);
    add<std::int64_t>(state + 16, 1);
    return true;
  });
}

bool merge_weighted(const AggregateStep&, std::byte* into, const std::byte* later) {
  add(into, load<double>(later));
  add(into + 8, load<double>(later + 8));
  add(into + 16, load<std::int64_t>(later + 16));
  return true;
}

bool result_of_weighted_mean(const AggregateStep&, const std::byte* state, std::byte* target) {
  const bool some = load<std::int64_t>(state + 16) != 0;
  const auto weights = load<double>(state + 8);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  store(target, !some ? 0.0 : weights == 0 ? kNone : load<double>(state) / weights);
  return some;
}

std::ptrdiff_t spread(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_numbers(step, records, count, states, [](double value, std::byte* state) {
    add<std::int64_t>(state, 1);
    const double distance = value - load<double>(state + 8);
    add(state + 8, distance / static_cast<double>(load<std::int64_t>(state)));
    add(state + 16, distance * (value - load<double>(state + 8)));
  });
}

bool merge_spread(const AggregateStep&, std::byte* into, const std::byte* later) {
  const auto few = static_cast<double>(load<std::int64_t>(into));
  const auto more = static_cast<double>(load<std::int64_t>(later));
  if (more == 0) return true;
  const double distance = load<double>(later + 8) - load<double>(into + 8);
  add(into, load<std::int64_t>(later));
  add(into + 8, distance * more / (few + more));
  add(into + 16, load<double>(later + 16) + distance * distance * few * more / (few + more));
  return true;
}

bool result_of_stddev(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const double freedom = static_cast<double>(load<std::int64_t>(state)) - step.aggregate.first;
  store(target, freedom > 0 ? std::sqrt(load<double>(state + 16) / freedom) : 0.0);
  return freedom > 0;
}

}  // namespace

void choose_sums(AggregateStep& step) {
  constexpr std::byte kZero[8] = {};
  const bool sums = step.aggregate.function == AggregateFunction::Sum;
  if (step.field != nullptr && step.field->type == Type::Decimal128 && (sums || step.aggregate.function == AggregateFunction::Mean)) {
    step.update = sum_decimals;
    step.merge = merge_decimal_sums;
    step.result = sums ? result_of_decimal_sum : result_of_decimal_mean;
    step.unit = unit_of(step.field->format);
    return;
  }
  switch (step.aggregate.function) {
    case AggregateFunction::Count:
      step.update = step.field == nullptr ? count_tuples : count_values;
      step.merge = merge_counts;
      step.result = result_of_count;
      return;
    case AggregateFunction::WeightedMean:
      step.update = weigh;
      step.merge = merge_weighted;
      step.result = result_of_weighted_mean;
      return;
    case AggregateFunction::Stddev:
      step.update = spread;
      step.merge = merge_spread;
      step.result = result_of_stddev;
      return;
    case AggregateFunction::Mean:
      visit_number(step.field->type, kZero, [&step]<typename Value>(Value) { step.update = sum_doubles<Value>; });
      step.merge = merge_double_sums;
      step.result = result_of_mean;
      return;
    default:
      visit_number(step.field->type, kZero, [&step]<typename Value>(Value) {
        step.update = sum_values<Value>;
        step.merge = kIsFloat<Value> ? merge_double_sums : merge_integer_sums;
      });
      step.result = result_of_sum;
  }
}

}  // namespace rayelastic
