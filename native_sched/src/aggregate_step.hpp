// One aggregate as code over the records of a batch and the state records of their keys. A state is a value of 8 bytes (16 for
// texts), then the number of values that weren't null; of a count it is the number alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rayelastic/aggregate.hpp"
#include "rayelastic/keyed_state.hpp"

namespace rayelastic {

struct AggregateStep {
  // Takes in `count` records, record i for states[i]; the index of a record whose sum overflows, or -1.
  using Update = std::ptrdiff_t (*)(const AggregateStep&, const std::byte* records, std::size_t count, void* const* states);
  // Writes the value of a state to a field; what is null is zeroed. Texts point into the state.
  using Result = bool (*)(const AggregateStep&, const std::byte* state, std::byte* target);

  Update update = nullptr;
  Result result = nullptr;  // true if the value isn't null
  const Schema* input = nullptr;
  const Field* field = nullptr;  // null for a count of tuples
  const Field* output = nullptr;
  KeyedState* table = nullptr;  // which keeps texts
  std::size_t state_offset = 0;
};

// Bytes of state that an aggregate needs, a multiple of 8.
[[nodiscard]] std::size_t state_size_of(AggregateFunction function, Type field) noexcept;
// Fills in update and result.
void choose_code(AggregateStep& step, AggregateFunction function);

}  // namespace rayelastic
