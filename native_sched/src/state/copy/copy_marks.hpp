// Marks which of some consecutive slots a copy of the table has already: one word that synchronises the thread that changes slots and the
// thread that reads them. Zero bytes mean that none was taken. Knows neither slots nor tables.
//
// Invariants
//   Owners: a slot that isn't taken may be read by whoever has the claim, and changed by nobody; one that is taken is the operator's alone.
//   The operator takes single slots, before it changes them; the reader all that are left, at once, or single ones likewise, and it comes only
//     once.
//   Linearisation: the store that takes (kept, exported).
//   Pairs: exported, or the reader's kept, (release) with begin_keep's load (acquire): the reader has read a slot before the operator changes
//     it. The operator's kept (release) with begin_export, or the reader's begin_keep, (acquire): what was kept aside is seen by who reads the others.
//   Whoever has the claim holds it for the work on a few slots, and waits for nobody.
#pragma once

#include <atomic>
#include <cstdint>

#include "rayelastic/queue/machine.hpp"

namespace rayelastic {

template <template <class> class Atom = std::atomic>
class BasicCopyMarks {
 public:
  static constexpr unsigned kSlots = 32;

  // --- the operator's thread
  // False: slot `at` was taken. True: it has to be kept now, then kept(at) called.
  [[nodiscard]] bool begin_keep(unsigned at) {
    for (int spin = 0;; ++spin) {
      std::uint64_t seen = word_.load(std::memory_order_acquire);
      if ((seen >> at & 1) != 0) return false;
      if ((seen & kClaimed) == 0 &&
          word_.compare_exchange_strong(seen, seen | kClaimed, std::memory_order_relaxed, std::memory_order_relaxed))
        return true;
      Machine<Atom>::relax(spin);
    }
  }
  void kept(unsigned at) {
    const std::uint64_t taken = word_.load(std::memory_order_relaxed) & ~kClaimed;
    word_.store(taken | std::uint64_t{1} << at, std::memory_order_release);
  }

  // --- the reader
  // Which slots were taken, a bit each; the others are to be read now, then exported() called.
  [[nodiscard]] std::uint32_t begin_export() {
    for (int spin = 0;; ++spin) {
      std::uint64_t seen = word_.load(std::memory_order_relaxed);
      if ((seen & kClaimed) == 0 &&
          word_.compare_exchange_strong(seen, seen | kClaimed, std::memory_order_acquire, std::memory_order_relaxed))
        return static_cast<std::uint32_t>(seen);
      Machine<Atom>::relax(spin);
    }
  }
  void exported() { word_.store(kAll, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kAll = UINT32_MAX;
  static constexpr std::uint64_t kClaimed = std::uint64_t{1} << 32;

  Atom<std::uint64_t> word_{0};
};

using CopyMarks = BasicCopyMarks<>;

}  // namespace rayelastic
