// Distinct values, largest values, quantiles: what grows with the values, in one flat piece of memory kept like a text.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "operators/aggregate/aggregate_step.hpp"
#include "operators/aggregate/quantile_sketch.hpp"
#include "operators/aggregate/value_set.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

namespace {

StringView& text_of(std::byte* state) noexcept { return *reinterpret_cast<StringView*>(state); }
const StringView& text_of(const std::byte* state) noexcept { return *reinterpret_cast<const StringView*>(state); }

std::ptrdiff_t collect(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    StringView value;
    step.value->extract(record, 1, &value);
    value_set::insert(text_of(state), *step.rooms, value);
    return true;
  });
}

bool merge_sets(const AggregateStep& step, std::byte* into, const std::byte* later) {
  value_set::merge(text_of(into), *step.rooms, text_of(later));
  return true;
}

bool result_of_set(const AggregateStep&, const std::byte* state, std::byte* target) {
  store(target, static_cast<std::int64_t>(value_set::size(text_of(state))));
  return true;
}

// The largest values, as ordered bits, from the largest on; room for all of them from the start: 8 bytes how many, then they.
void keep_largest(const AggregateStep& step, std::byte* state, std::uint64_t value) {
  StringView& kept = text_of(state);
  const auto ranks = static_cast<std::size_t>(step.aggregate.second);
  const std::size_t bytes = 8 + ranks * 8;
  if (kept.length == 0) std::memset(step.rooms->resize(kept, static_cast<std::uint32_t>(bytes)), 0, bytes);
  auto* size = reinterpret_cast<std::uint64_t*>(const_cast<char*>(kept.pointer));
  std::uint64_t* begin = size + 1;
  std::uint64_t* end = begin + *size;
  if (*size == ranks && value <= end[-1]) return;
  std::uint64_t* place = std::lower_bound(begin, end, value, std::greater<>());
  if (*size < ranks) {
    ++*size;
    ++end;
  }
  std::copy_backward(place, end - 1, end);
  *place = value;
}

std::ptrdiff_t rank_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    const std::byte* place = record + step.field->offset;
    const Type type = step.field->type;
    if (!is_float(type) || !std::isnan(number_at(type, place))) keep_largest(step, state, ordered_bits(type, place));
    return true;
  });
}

bool merge_ranks(const AggregateStep& step, std::byte* into, const std::byte* later) {
  const StringView& kept = text_of(later);
  if (kept.length == 0) return true;
  const auto* size = reinterpret_cast<const std::uint64_t*>(kept.pointer);
  for (std::uint64_t i = 0; i < *size; ++i) keep_largest(step, into, size[1 + i]);
  return true;
}

bool result_of_rank(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const StringView& kept = text_of(state);
  const auto rank = static_cast<std::uint64_t>(step.aggregate.first);
  const auto* size = reinterpret_cast<const std::uint64_t*>(kept.length == 0 ? nullptr : kept.pointer);
  if (size == nullptr || rank >= *size) return false;
  restore_ordered(step.output->type, size[1 + rank], target);
  return true;
}

std::ptrdiff_t sketch_values(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_numbers(step, records, count, states, [&step](double value, std::byte* state) {
    if (!std::isnan(value)) quantile_sketch::insert(text_of(state), *step.rooms, value, step.aggregate.second);
  });
}

bool merge_sketches(const AggregateStep& step, std::byte* into, const std::byte* later) {
  quantile_sketch::merge(text_of(into), *step.rooms, text_of(later));
  return true;
}

bool result_of_sketch(const AggregateStep& step, const std::byte* state, std::byte* target) {
  const StringView& sketch = text_of(state);
  const bool some = sketch.length > 0;
  const double none = step.output->nullable ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  store(target, some ? quantile_sketch::quantile(sketch, step.aggregate.first, step.aggregate.second) : none);
  return some;
}

bool are_ranks(const StringView& bytes, std::size_t ranks) {
  if (bytes.length == 0) return true;
  if (bytes.length != 8 + ranks * 8) return false;
  std::vector<std::uint64_t> kept(1 + ranks);
  std::memcpy(kept.data(), bytes.data(), bytes.length);
  return kept[0] > 0 && kept[0] <= ranks &&
         std::is_sorted(kept.begin() + 1, kept.begin() + 1 + static_cast<std::ptrdiff_t>(kept[0]), std::greater<>());
}

}  // namespace

TextCheck check_of(const Aggregate& aggregate, Type field) {
  const auto refuse_unless = [](bool whole) {
    if (!whole) throw StateError("exported state has a damaged set, list or sketch of values");
  };
  switch (aggregate.function) {
    case AggregateFunction::Distinct:
      return [=](const StringView& bytes) { refuse_unless(value_set::is_whole(bytes)); };
    case AggregateFunction::Largest:
      return [=, ranks = static_cast<std::size_t>(aggregate.second)](const StringView& bytes) { refuse_unless(are_ranks(bytes, ranks)); };
    case AggregateFunction::Quantile:
      return [=, error = aggregate.second](const StringView& bytes) { refuse_unless(quantile_sketch::is_whole(bytes, error)); };
    default:
      return check_of_texts(field);
  }
}

void choose_collection(AggregateStep& step) {
  switch (step.aggregate.function) {
    case AggregateFunction::Distinct:
      step.update = collect;
      step.merge = merge_sets;
      step.result = result_of_set;
      return;
    case AggregateFunction::Largest:
      step.update = rank_values;
      step.merge = merge_ranks;
      step.result = result_of_rank;
      return;
    default:
      step.update = sketch_values;
      step.merge = merge_sketches;
      step.result = result_of_sketch;
  }
}

}  // namespace rayelastic
