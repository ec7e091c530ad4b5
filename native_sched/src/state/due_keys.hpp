// The keys that are due when the watermark reaches a time. A key may be recorded for times at which nothing is left to do, and more than
// once: its consumer checks that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

class DueKeys {
 public:
  void note(std::int64_t time, void* slot) { due_[time].push_back(slot); }

  // The first time for which there is something to do; the end of time if there is none.
  [[nodiscard]] std::int64_t next() const noexcept { return due_.empty() ? kEndOfTime : due_.begin()->first; }

  // Calls visit(time, slot) for what is due at `now`, in the order of times, then of the keys' hashes, then of the keys, until it says
  // false. visit may note more, for later times.
  template <typename Visit>
  bool take(std::int64_t now, Visit&& visit) {
    while (!due_.empty() && due_.begin()->first <= now) {
      const std::int64_t time = due_.begin()->first;
      std::vector<void*> slots = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      std::ranges::sort(slots, [](const void* one, const void* other) {
        const std::uint64_t first = KeyedState::hash_of_slot(one);
        const std::uint64_t second = KeyedState::hash_of_slot(other);
        return first != second ? first < second : KeyedState::key_of(one).view() < KeyedState::key_of(other).view();
      });
      for (void* slot : slots) {
        if (!visit(time, slot)) return false;
      }
    }
    return true;
  }

 private:
  std::map<std::int64_t, std::vector<void*>> due_;
};

}  // namespace rayelastic
