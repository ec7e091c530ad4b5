// Timers in the order of their times: a hierarchical timing wheel (Varghese, Lauck, "Hashed and hierarchical timing wheels", SOSP 1987,
// scheme 7) over all 64-bit times. One thread at a time.
//
// A timer lies in the slot of the highest digit, to base 64, in which its time differs from the wheel's; once the wheel comes to that slot
// its timers go to lower ones. So each costs a push and at most a few moves in a row of memory, however many there are. Those of the same
// time come in the order in which they were set: a slot keeps the order of its timers, and what moves down comes into slots that are empty.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class TimerWheel {
 public:
  struct Timer {
    std::int64_t at;
    void* of;
  };

  // A time before that which the wheel has come to counts as that.
  void push(std::int64_t at, void* of) {
    put(std::max(key_of(at), now_), {at, of});
    ++size_;
  }

  // Takes the next timer, of time `until` or before. False: there is none. Calls moved(timer, level) for each that comes nearer: those of
  // level 0 are due within a few.
  template <typename Moved>
  [[nodiscard]] bool pop(std::int64_t until, Timer& timer, Moved&& moved) {
    while (true) {
      const std::size_t level = first_level();
      if (level == kLevels) return false;
      const unsigned slot = static_cast<unsigned>(std::countr_zero(taken_[level] & (kAll << digit(now_, level))));
      const std::uint64_t start = with_digit(now_, level, slot);
      if (start > key_of(until)) return false;
      RE_CHECK(start >= now_);
      now_ = start;
      std::vector<Timer>& timers = slots_[level][slot];
      if (level == 0) {
        RE_CHECK(next_ < timers.size() && size_ > 0);
        timer = timers[next_++];
        --size_;
        if (next_ == timers.size()) empty(0, slot);
        return true;
      }
      aside_.swap(timers);
      taken_[level] &= ~(std::uint64_t{1} << slot);
      for (const Timer& each : aside_) moved(each, put(std::max(key_of(each.at), now_), each));
      aside_.clear();
      if (aside_.capacity() <= kKept) aside_.swap(timers);
      aside_ = {};
    }
  }
  [[nodiscard]] bool pop(std::int64_t until, Timer& timer) {
    return pop(until, timer, [](const Timer&, std::size_t) {});
  }

  // So many of them are of no use any more, though they are still here.
  void drop(std::size_t timers) noexcept { dropped_ += timers; }
  // Once those are most of all: keeps the timers for which used(timer) is true, and one of several for the same. So what was dropped takes no
  // more memory than what is used, at a constant cost for each.
  template <typename Used>
  void tidy(Used&& used) {
    if (dropped_ <= std::max(kFewDropped, size_ / 2)) return;
    std::set<std::pair<std::int64_t, void*>> seen;
    std::vector<Timer>& current = slots_[0][digit(now_, 0)];
    current.erase(current.begin(), current.begin() + static_cast<std::ptrdiff_t>(std::exchange(next_, 0)));
    size_ = 0;
    for (std::size_t level = 0; level < kLevels; ++level) {
      for (unsigned slot = 0; slot < kSlots; ++slot) {
        if ((taken_[level] >> slot & 1) == 0) continue;
        std::vector<Timer>& timers = slots_[level][slot];
        std::erase_if(timers, [&](const Timer& timer) { return !used(timer) || !seen.emplace(timer.at, timer.of).second; });
        size_ += timers.size();
        if (timers.empty()) {
          empty(level, slot);
        } else {
          timers.shrink_to_fit();
        }
      }
    }
    dropped_ = 0;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(Timer); }

 private:
  static constexpr std::size_t kBits = 6;
  static constexpr std::size_t kSlots = std::size_t{1} << kBits;
  static constexpr std::size_t kLevels = (64 + kBits - 1) / kBits;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static constexpr std::size_t kFewDropped = 1'000;
  static constexpr std::size_t kKept = 64;  // timers for which an empty slot keeps its memory

  // In the order of times, without a sign.
  [[nodiscard]] static std::uint64_t key_of(std::int64_t at) noexcept { return static_cast<std::uint64_t>(at) ^ (std::uint64_t{1} << 63); }
  [[nodiscard]] static unsigned digit(std::uint64_t key, std::size_t level) noexcept {
    return static_cast<unsigned>((key >> (kBits * level)) % kSlots);
  }
  // The first key that has that digit there, and those of `key` above.
  [[nodiscard]] static std::uint64_t with_digit(std::uint64_t key, std::size_t level, unsigned slot) noexcept {
    const std::uint64_t above = level + 1 < kLevels ? key & (kAll << (kBits * (level + 1))) : 0;
    return above | (std::uint64_t{slot} << (kBits * level));
  }

  // The lowest level with a timer; kLevels if there is none.
  [[nodiscard]] std::size_t first_level() const noexcept {
    std::size_t level = 0;
    while (level < kLevels && taken_[level] == 0) ++level;
    return level;
  }

  // At which level it is.
  std::size_t put(std::uint64_t key, const Timer& timer) {
    const std::uint64_t differs = key ^ now_;
    RE_CHECK(key >= now_);
    const std::size_t level = differs == 0 ? 0 : static_cast<std::size_t>(std::bit_width(differs) - 1) / kBits;
    const unsigned slot = digit(key, level);
    slots_[level][slot].push_back(timer);
    taken_[level] |= std::uint64_t{1} << slot;
    return level;
  }

  void empty(std::size_t level, unsigned slot) {
    std::vector<Timer>& timers = slots_[level][slot];
    if (timers.capacity() > kKept) {
      timers = {};
    } else {
      timers.clear();
    }
    taken_[level] &= ~(std::uint64_t{1} << slot);
    next_ = 0;
  }

  std::array<std::array<std::vector<Timer>, kSlots>, kLevels> slots_;
  std::vector<Timer> aside_;                       // those that move down
  std::array<std::uint64_t, kLevels> taken_ = {};  // a bit for each slot that has timers
  std::uint64_t now_ = 0;
  std::size_t next_ = 0;  // of the slot of `now_`, the first that wasn't taken yet
  std::size_t size_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace rayelastic
