// Finds data races on plain memory with vector clocks (FastTrack, PLDI'09, without its compression). Knows no schedule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "checker/choices.hpp"

namespace rayelastic::model {

using Clock = std::array<std::uint16_t, kThreads>;

class RaceDetector {
 public:
  struct Race {
    int other = 0;  // thread
    bool other_wrote = false;
    std::size_t word = 0;  // in the order in which words were first touched
  };

  void clear() {
    ++epoch_;
    words_ = 0;
  }

  // Thread `self` with `clock` touches the words of [address, address + bytes).
  std::optional<Race> touch(const void* address, std::size_t bytes, bool write, int self, const Clock& clock) {
    const auto first = reinterpret_cast<std::uintptr_t>(address) / kWord;
    const auto last = (reinterpret_cast<std::uintptr_t>(address) + bytes - 1) / kWord;
    for (auto word = first; bytes > 0 && word <= last; ++word) {
      if (auto race = touch(cell(word), write, static_cast<std::size_t>(self), clock)) return race;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kWord = 8;     // bytes
  static constexpr std::size_t kCells = 512;  // a power of two, many times what a scenario touches

  struct Cell {
    std::uint64_t epoch = 0;
    std::uintptr_t word = 0;
    std::size_t number = 0;
    int writer = -1;
    std::uint16_t written = 0;
    Clock read{};
  };

  Cell& cell(std::uintptr_t word) {
    for (std::size_t at = (word * 0x9E3779B97F4A7C15U) >> 55;; ++at) {
      Cell& found = cells_[at % kCells];
      if (found.epoch != epoch_) return found = {.epoch = epoch_, .word = word, .number = words_++};
      if (found.word == word) return found;
    }
  }

  static std::optional<Race> touch(Cell& cell, bool write, std::size_t self, const Clock& clock) {
    if (cell.writer >= 0 && cell.written > clock[static_cast<std::size_t>(cell.writer)]) return Race{cell.writer, true, cell.number};
    if (!write) {
      cell.read[self] = clock[self];
      return std::nullopt;
    }
    for (std::size_t other = 0; other < kThreads; ++other) {
      if (cell.read[other] > clock[other]) return Race{static_cast<int>(other), false, cell.number};
    }
    cell.writer = static_cast<int>(self);
    cell.written = clock[self];
    return std::nullopt;
  }

  std::uint64_t epoch_ = 0;
  std::size_t words_ = 0;
  std::vector<Cell> cells_ = std::vector<Cell>(kCells);
};

}  // namespace rayelastic::model
