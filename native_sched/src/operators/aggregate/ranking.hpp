// The records with the largest, or least, values of a field, in one flat piece of memory kept like a text: it is copied, exported and imported
// with the state, as bytes. Of equal values the earliest event time is better, then the first to arrive. Knows nothing of windows.
//
//   header; then 4 bytes a slot: where a row starts, a heap with the worst row first; then the rows, each up to a multiple of 8:
//   its head, the record (a long text's pointer as zero), then the bytes of its long texts
//
// A better row takes the place of the worst one if it is as long; else it goes to the end, and gaps are closed when there is no room left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "operators/aggregate/aggregate_step.hpp"

namespace rayelastic {

class Ranking {
 public:
  // The fields of `output` from number `first` on: the place from 1 on, then fields of `input`, which are found by name.
  // Throws std::invalid_argument if they don't fit.
  Ranking(std::shared_ptr<const Schema> input, const Schema& output, std::size_t first);

  // Fills in update and merge.
  static void choose_code(AggregateStep& step);
  // What the bytes of a state have to be like when they come from outside.
  [[nodiscard]] static TextCheck check(std::shared_ptr<const Schema> input, std::size_t most);

  // The rows of a state, the best first, until the next call or change.
  [[nodiscard]] const std::vector<const std::byte*>& in_order(const AggregateStep& step, const std::byte* state);
  // Writes a row that has some place, from 1 on, to an output record, which is zero before. Texts point into the state.
  void write(const std::byte* row, std::int64_t place, const Schema& output, std::byte* record) const;
  // Of what the rows are made of.
  [[nodiscard]] std::uint64_t layout() const noexcept;

 private:
  std::shared_ptr<const Schema> input_;
  const Field* place_;
  std::vector<std::pair<const Field*, const Field*>> fields_;  // of the input, and of the output
  std::vector<const std::byte*> rows_;
};

}  // namespace rayelastic
