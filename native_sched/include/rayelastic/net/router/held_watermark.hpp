// The last watermark of a router's input.
//
// Invariant: a watermark doesn't overtake records that are held.
#pragma once

#include <optional>
#include <utility>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class HeldWatermark {
 public:
  // True: it may be passed on at once.
  [[nodiscard]] bool arrive(Mark mark, bool records_held) noexcept {
    mark_ = mark;
    due_ = records_held;
    return !due_;
  }
  // The one that waited; no record is held any more.
  [[nodiscard]] std::optional<Mark> take_due() noexcept { return std::exchange(due_, false) ? mark_ : std::nullopt; }
  // The one that targets have had: a new target wants it, too.
  [[nodiscard]] std::optional<Mark> passed() const noexcept { return due_ ? std::nullopt : mark_; }

 private:
  std::optional<Mark> mark_;
  bool due_ = false;
};

}  // namespace rayelastic
