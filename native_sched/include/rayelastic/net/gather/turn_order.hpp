// Whose turn it is, of the arms of a gather.
//
// Invariant: turns are passed on as the router dealt them: by their numbers, one at a time, each whole and from one arm.
#pragma once

#include <cstdint>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/gather/arms.hpp"

namespace rayelastic {

class TurnOrder {
 public:
  // Whether the arm may pass on records, or a mark that stands among them: in its turn, or before the first one, when there is one replica.
  [[nodiscard]] bool is_turn_of(const Arm& arm) const noexcept { return current_ == &arm || (current_ == nullptr && next_ == 0); }
  // Whether the Turn mark is the next one: it has twice the number of the turn that it begins, and one more where it ends it.
  [[nodiscard]] bool is_due(const Arm& arm, std::int64_t mark) const noexcept {
    return begins(mark) ? current_ == nullptr && mark == 2 * next_ : current_ == &arm;
  }
  void pass(const Arm& arm, std::int64_t mark) noexcept {
    RE_CHECK(is_due(arm, mark));
    current_ = begins(mark) ? &arm : nullptr;
    if (!begins(mark)) ++next_;
  }
  [[nodiscard]] const Arm* current() const noexcept { return current_; }  // whose turn has begun; null: nobody's

 private:
  [[nodiscard]] static bool begins(std::int64_t mark) noexcept { return mark % 2 == 0; }

  const Arm* current_ = nullptr;
  std::int64_t next_ = 0;
};

}  // namespace rayelastic
