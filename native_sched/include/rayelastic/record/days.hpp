// Times counted in days of a zone, each of as many ticks as 24 hours have (rayelastic/graph/operators/aligned.py says what for, and does the same).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/record/hash.hpp"

namespace rayelastic {

// Rounds down, unlike division.
[[nodiscard]] constexpr std::int64_t floor_divide(std::int64_t value, std::int64_t by) noexcept {
  return value / by - (value % by < 0 ? 1 : 0);
}

class Days {
 public:
  // The days from which on days are of 24 hours, until the next: (day since 1970, second when it begins). Behind the last all comes again
  // after 400 years. Throws std::invalid_argument.
  Days(std::vector<std::pair<std::int64_t, std::int64_t>> runs, std::int64_t ticks_per_second)
      : runs_(std::move(runs)), per_second_(ticks_per_second), day_(kDay * ticks_per_second) {
    if (runs_.empty() || ticks_per_second < 1) throw std::invalid_argument("a zone has days, and these have ticks");
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      if (runs_[i].first <= runs_[i - 1].first || runs_[i].second < runs_[i - 1].second)
        throw std::invalid_argument("the days of a zone aren't in order");
    }
  }

  [[nodiscard]] std::int64_t ticks() const noexcept { return day_; }

  [[nodiscard]] std::int64_t counted(std::int64_t at) const noexcept {
    if (at < begin_ || at >= end_) find(at);
    return number_ * day_ + std::min(at - begin_, day_ - 1);
  }

  // When a day begins, given as `counted` has it.
  [[nodiscard]] std::int64_t time(std::int64_t counted) const noexcept { return start_of(floor_divide(counted, day_)); }

  [[nodiscard]] std::uint64_t form() const noexcept {
    std::uint64_t digest = static_cast<std::uint64_t>(day_);
    for (const auto& [day, start] : runs_) digest = hash_of(digest ^ static_cast<std::uint64_t>(start));
    return digest;
  }

 private:
  static constexpr std::int64_t kDay = 86'400;
  static constexpr std::int64_t kLatest = 171'664;  // 2440-01-01
  static constexpr std::int64_t kCycle = 146'097;   // days of 400 years

  void find(std::int64_t at) const noexcept {
    std::int64_t second = floor_divide(at, per_second_);
    const std::int64_t cycles = std::max<std::int64_t>(0, floor_divide(second - kLatest * kDay, kCycle * kDay) + 1);
    second -= cycles * kCycle * kDay;
    const auto behind = std::ranges::upper_bound(runs_, second, {}, &std::pair<std::int64_t, std::int64_t>::second);
    const auto& [first, start] = behind == runs_.begin() ? *behind : *(behind - 1);
    number_ = first + floor_divide(second - start, kDay);
    if (behind != runs_.end() && behind != runs_.begin()) number_ = std::min(number_, behind->first - 1);
    number_ += cycles * kCycle;
    begin_ = start_of(number_);
    end_ = start_of(number_ + 1);
  }

  [[nodiscard]] std::int64_t start_of(std::int64_t day) const noexcept {
    const std::int64_t cycles = std::max<std::int64_t>(0, floor_divide(day - kLatest, kCycle) + 1);
    const auto behind = std::ranges::upper_bound(runs_, day - cycles * kCycle, {}, &std::pair<std::int64_t, std::int64_t>::first);
    const auto& [first, start] = behind == runs_.begin() ? *behind : *(behind - 1);
    return (start + (day - first) * kDay) * per_second_;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> runs_;
  std::int64_t per_second_;
  std::int64_t day_;                 // ticks
  mutable std::int64_t number_ = 0;  // the day that was found last, and its bounds: times come in order, more or less
  mutable std::int64_t begin_ = 0;
  mutable std::int64_t end_ = 0;
};

// How the times of windows are counted: from an offset, perhaps in days of a zone. Windows are [k * slide, k * slide + size) of such times.
struct WindowTimes {
  std::int64_t offset = 0;  // ticks that are added to where windows start; with days, as those are counted
  std::optional<Days> days = {};

  [[nodiscard]] std::int64_t counted(std::int64_t at) const noexcept { return (days.has_value() ? days->counted(at) : at) - offset; }
  // Of where a window starts or ends.
  [[nodiscard]] std::int64_t uncounted(std::int64_t bound) const noexcept {
    return days.has_value() ? days->time(bound + offset) : bound + offset;
  }
  [[nodiscard]] std::uint64_t form() const noexcept {
    return static_cast<std::uint64_t>(offset) << 1 ^ (days.has_value() ? days->form() : 0);
  }
  // Throws std::invalid_argument unless windows of this size start within a slide, and with a day.
  void check(std::int64_t size, std::int64_t slide) const {
    if (offset < 0 || offset >= slide) throw std::invalid_argument("the first window of all starts within a slide");
    if (days.has_value() && (size % days->ticks() != 0 || slide % days->ticks() != 0 || offset % days->ticks() != 0))
      throw std::invalid_argument("windows of days are of whole ones");
  }
};

}  // namespace rayelastic
