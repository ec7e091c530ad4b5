// The common part of all windows: the aggregates and their state records, the keys, and the emitted records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/output_writer.hpp"
#include "operators/aggregate/accumulators.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"

namespace rayelastic {

class WindowCore {
 public:
  static constexpr std::size_t kBatch = 64;  // keys looked up at once

  // Fields of the output before the aggregates: the keys, then `bounds` (start, end, corrected). Throws std::invalid_argument.
  WindowCore(std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, const std::vector<std::string>& keys,
             std::size_t bounds, const std::vector<Aggregate>& aggregates, const TimeToLive& ttl = {},
             std::shared_ptr<WindowFunction> function = {});

  // Null: the windows have aggregates.
  [[nodiscard]] WindowFunction* function() const noexcept { return function_.get(); }
  [[nodiscard]] Accumulators& accumulators() noexcept { return *accumulators_; }
  [[nodiscard]] const Schema& input() const noexcept { return *input_; }
  [[nodiscard]] const Schema& output() const noexcept { return *output_; }
  // By key: one pointer, null for a new key, to what the kind of window keeps.
  [[nodiscard]] KeyedState& table() noexcept { return *table_; }

  // A new state record of the aggregates, and back. Of a function it is the function's; null: that has failed.
  [[nodiscard]] std::byte* make();
  void drop(std::byte* state) noexcept;

  // State records as exported bytes. Reading gives a new one, or checks only and gives null.
  void write(const std::byte* state, StateWriter& writer) const { writer.record(state, shape()); }
  std::byte* read(StateReader& reader, bool make_it);
  // Of what the records are made of.
  [[nodiscard]] std::uint64_t layout() const noexcept { return function_ == nullptr ? accumulators_->layout() : kObjects; }
  [[nodiscard]] std::size_t bytes() const noexcept { return function_ == nullptr ? blocks_.size() * kBlockStates * words() * 8 : 0; }

  // Why something failed; empty as long as nothing has.
  [[nodiscard]] std::string problem() const { return function_ == nullptr ? accumulators_->problem() : function_->problem(); }

  // Gives a window of a key: a record, or those of a ranking. Null bounds: of a count. `corrected` counts where the output has a field for it. False: stop, or there is a
  // problem.
  [[nodiscard]] bool give(const void* slot, const std::byte* state, const std::int64_t* bounds, OutputWriter& writer,
                          bool corrected = false);
  // The same of a function.
  [[nodiscard]] bool emit(const void* slot, std::byte* state, const Span& bounds, bool final, bool corrected);

 private:
  static constexpr std::size_t kBlockStates = 64;
  static constexpr std::uint64_t kObjects = 0x737463656a626f;  // "objects", in place of a layout

  [[nodiscard]] std::size_t words() const noexcept { return (accumulators_->state_size() + 7) / 8; }
  [[nodiscard]] RecordShape shape() const noexcept {
    return {accumulators_->state_size(), accumulators_->text_offsets(), accumulators_->text_checks()};
  }

  std::shared_ptr<const Schema> input_;
  std::shared_ptr<const Schema> output_;
  const std::shared_ptr<WindowFunction> function_;
  std::optional<Accumulators> accumulators_;  // without a function
  std::unique_ptr<KeyedState> table_;
  std::vector<const Field*> key_fields_;  // of the output
  const Field* start_ = nullptr;
  const Field* end_ = nullptr;
  const Field* corrected_ = nullptr;
  std::vector<std::byte> moment_;  // a record of the function's
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::vector<std::byte*> free_;
};

}  // namespace rayelastic
