// All aggregates of an operator together: one state record of fixed layout, and the code that updates, merges and reads it. Owners of such
// records (a table by key, the panes of a window) only need to know their size and where their texts are.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "operators/aggregate/aggregate_step.hpp"
#include "operators/aggregate/ranking.hpp"
#include "rayelastic/operators/aggregate/own_aggregate.hpp"

namespace rayelastic {

class Accumulators {
 public:
  // The aggregates fill the fields of `output` from number `first` on. Throws std::invalid_argument if they don't fit.
  Accumulators(std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, std::size_t first,
               const std::vector<Aggregate>& aggregates);
  // Where texts are kept; to be called before anything below.
  void keep_in(TextRooms& rooms) noexcept;

  // A new state.
  [[nodiscard]] std::span<const std::byte> initial() const noexcept { return initial_; }
  [[nodiscard]] std::size_t state_size() const noexcept { return initial_.size(); }
  [[nodiscard]] std::span<const std::size_t> text_offsets() const noexcept { return text_offsets_; }
  [[nodiscard]] std::span<const TextCheck> text_checks() const noexcept { return text_checks_; }

  // False: states are only read.
  [[nodiscard]] bool adds() const noexcept { return own_ == nullptr || own_->adds(); }
  [[nodiscard]] bool merges() const noexcept { return own_ == nullptr || own_->merges(); }
  // Whether the order of records, and how they are parted among states that are merged, is nothing to the results, to the last bit: not of
  // first and last, nor of sums of floating point numbers.
  [[nodiscard]] bool in_any_order() const noexcept;

  // Of what the states are made of: equal ones can be read by one another.
  [[nodiscard]] std::uint64_t layout() const noexcept;

  // Record i into states[i]. The index of a record whose sum overflows, or on which a user's code fails, or -1; problem() tells.
  [[nodiscard]] std::ptrdiff_t update(const std::byte* records, std::size_t count, void* const* states);
  // Adds the state of later records. False: as above.
  [[nodiscard]] bool merge(std::byte* into, const std::byte* later);
  // Makes a new state like another.
  void copy(std::byte* into, const std::byte* from);
  // Gives back what a state has of the rooms; it is a new one then.
  void clear(std::byte* state) noexcept;
  // How many output records a state makes: 1, but of a ranking.
  [[nodiscard]] std::size_t results(const std::byte* state);
  // The fields of one of them, which is zero before; of a ranking, results() of the state was the last call. Texts point into the state, or
  // live until settle(). False: a user's code fails.
  [[nodiscard]] bool write(const std::byte* state, std::byte* record, std::size_t number = 0) const;
  // The texts of what was written have been copied.
  void settle() const noexcept {
    if (own_ != nullptr) own_->settle();
  }
  // Empty as long as nothing has failed.
  [[nodiscard]] const std::string& problem() const noexcept { return own_ == nullptr ? problem_ : own_->problem(); }

 private:
  std::shared_ptr<const Schema> input_;
  std::shared_ptr<const Schema> output_;
  std::shared_ptr<OwnAggregate> own_ = {};  // in place of the steps
  std::vector<AggregateStep> steps_;
  std::unique_ptr<Ranking> ranking_ = {};                  // of the only step
  const std::vector<const std::byte*>* ranked_ = nullptr;  // of the last state with results
  std::size_t first_;
  std::vector<std::byte> initial_;
  std::vector<std::size_t> text_offsets_;
  std::vector<TextCheck> text_checks_;
  TextRooms* rooms_ = nullptr;
  std::string problem_;
};

// Copies the long texts of `count` records to allocate(bytes): what they point to may change while the records are under way.
template <typename Allocate>
void detach_texts(const Schema& schema, std::byte* records, std::size_t count, Allocate&& allocate) {
  if (!schema.has_text()) return;
  const auto for_long_texts = [&](auto&& visit) {
    for (const Field& field : schema.fields()) {
      if (field.type != Type::String && field.type != Type::Binary) continue;
      for (std::size_t i = 0; i < count; ++i) {
        auto& text = *reinterpret_cast<StringView*>(records + i * schema.record_size() + field.offset);
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
    text.pointer = next;
    next += text.length;
  });
}

}  // namespace rayelastic
