// Panes in order, and the aggregate of all of them: two stacks. New panes are added to the total of the back; what is in front has, for
// each pane, the total from it to the last pane of the front. When the front is empty, the back becomes the front. So a pane is merged
// three times in its life, whatever the aggregate: nothing is ever taken off a total.
#pragma once

#include <cstddef>
#include <vector>

#include "window_core.hpp"

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
