// Panes in order, and the aggregate of all of them: two stacks. New panes are added to the total of the back; what is in front has, for
// each pane, the total from it to the last pane of the front. When the front is empty, the back becomes the front. So a pane is merged
// three times in its life, whatever the aggregate: nothing is ever taken off a total.
#pragma once

#include <cstddef>
#include <vector>

#include "operators/time/window_core.hpp"

namespace rayelastic {

class PaneQueue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return front_.size() + back_.size(); }

  // Takes a pane over. False: a sum overflows.
  [[nodiscard]] bool push(WindowCore& core, std::byte* pane) {
    if (total_ == nullptr) total_ = core.make();
    back_.push_back(pane);
    return core.accumulators().merge(total_, pane);
  }

  // Drops the oldest pane. False: a sum overflows.
  [[nodiscard]] bool pop(WindowCore& core) {
    if (front_.empty()) {
      while (!back_.empty()) {
        if (!front_.empty() && !core.accumulators().merge(back_.back(), front_.back())) return false;
        front_.push_back(back_.back());
        back_.pop_back();
      }
      core.accumulators().clear(total_);
    }
    core.drop(front_.back());
    front_.pop_back();
    return true;
  }

  // Adds the total of all panes to a new state. False: a sum overflows.
  [[nodiscard]] bool add_total(WindowCore& core, std::byte* into) const {
    if (!front_.empty()) core.accumulators().copy(into, front_.back());
    return back_.empty() || core.accumulators().merge(into, total_);
  }

  // As exported bytes: how many are in front (4) and in the back (4), their states, that of the total if there is one of the back.
  void write(const WindowCore& core, StateWriter& writer) const {
    writer.number(static_cast<std::uint32_t>(front_.size()));
    writer.number(static_cast<std::uint32_t>(back_.size()));
    for (const std::byte* state : front_) core.write(state, writer);
    for (const std::byte* state : back_) core.write(state, writer);
    if (!back_.empty()) core.write(total_, writer);
  }
  // Into an empty queue, or checks only; how many panes they are.
  std::uint64_t read(WindowCore& core, StateReader& reader, bool make_them) {
    const auto front = reader.number<std::uint32_t>();
    const auto back = reader.number<std::uint32_t>();
    for (std::uint64_t i = 0; i < std::uint64_t{front} + back; ++i) {
      std::byte* const state = core.read(reader, make_them);
      if (make_them) (i < front ? front_ : back_).push_back(state);
    }
    if (back > 0) total_ = core.read(reader, make_them);
    return std::uint64_t{front} + back;
  }

  void clear(WindowCore& core) noexcept {
    for (std::byte* state : front_) core.drop(state);
    for (std::byte* state : back_) core.drop(state);
    if (total_ != nullptr) core.drop(total_);
    front_.clear();
    back_.clear();
    total_ = nullptr;
  }

 private:
  std::vector<std::byte*> front_;  // the oldest last
  std::vector<std::byte*> back_;
  std::byte* total_ = nullptr;  // of back_
};

}  // namespace rayelastic
