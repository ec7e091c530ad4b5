// One aggregate as code over the records of a batch and the state records of their keys. The state of an aggregate is a few bytes of
// fixed layout; what may grow (a text, a set of values, a sketch) is in its first 16 bytes, like a text, in rooms that the step is given.
// So whoever keeps such records can copy, merge, export and import all aggregates alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/text_rooms.hpp"
#include "record/numbers.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

struct AggregateStep {
  // Takes in `count` records, record i for states[i]; the index of a record whose sum overflows, or -1.
  using Update = std::ptrdiff_t (*)(const AggregateStep&, const std::byte* records, std::size_t count, void* const* states);
  // Adds the state of later records. False: a sum overflows.
  using Merge = bool (*)(const AggregateStep&, std::byte* into, const std::byte* later);
  // Writes the value of a state to a field; what is null is zeroed. Texts point into the state.
  using Result = bool (*)(const AggregateStep&, const std::byte* state, std::byte* target);

  Update update = nullptr;  // null, with merge: a result of an earlier step's state
  Merge merge = nullptr;
  Result result = nullptr;  // true if the value isn't null
  Aggregate aggregate = {};
  const Schema* input = nullptr;
  const Field* field = nullptr;  // null for a count of tuples
  const Field* weight = nullptr;
  std::optional<TimeField> time = {};  // of First and Last: the event time by which they go
  const Field* output = nullptr;
  TextRooms* rooms = nullptr;
  std::shared_ptr<KeyExtractor> value = {};  // of Distinct: equal values have equal bytes
  std::size_t state_offset = 0;
  double unit = 1;  // of a decimal: what its last digit is worth
};

// Bytes of state that an aggregate needs, a multiple of 8, and whether the first 16 are a text (or what is kept like one).
struct StateNeed {
  std::size_t bytes = 0;
  bool text = false;
};
[[nodiscard]] StateNeed need_of(AggregateFunction function, Type field) noexcept;
// What the text of a state has to be like when it comes from outside; empty: anything.
[[nodiscard]] TextCheck check_of(const Aggregate& aggregate, Type field);
// Fills in update, merge and result. The functions are in three files, by what they keep: a selected value, sums, something that grows.
void choose_code(AggregateStep& step);
void choose_selection(AggregateStep& step);
void choose_sums(AggregateStep& step);
void choose_collection(AggregateStep& step);

// Calls take(record, state) for the records whose field isn't null until it says false: the index of that record, or -1.
template <typename Take>
std::ptrdiff_t for_present(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states, Take&& take) {
  const std::size_t stride = step.input->record_size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    if (!step.input->is_valid(record, *step.field)) continue;
    if (!take(record, static_cast<std::byte*>(states[i]) + step.state_offset)) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

// The same with the value of a number field, as a double: take(value, state).
template <typename Take>
std::ptrdiff_t for_numbers(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states, Take&& take) {
  return for_present(step, records, count, states, [&step, &take](const std::byte* record, std::byte* state) {
    take(number_at(step.field->type, record + step.field->offset), state);
    return true;
  });
}

}  // namespace rayelastic
