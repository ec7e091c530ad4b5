// The free list: a bounded lock-free FIFO, many producers and many consumers, of ports that may have work (P12, P15: roughly
// least recently used). The paper keeps every port in it at all times and walks it (P14); here a port is listed only when it
// was announced (PortQueue), so a worker's first pop is work, and an empty list means that there is none.
//
// Invariants (bounded array queue with a sequence per cell, after Vyukov)
//   A cell with sequence == position may be filled by whoever claims that position of tail_; with sequence == position + 1 it may be
//     emptied by whoever claims it of head_. Linearisation: the compare-exchange of tail_ and head_.
//   Pairs: the sequence's release store after filling (emptying) with the acquire load of the popper (pusher).
//   tail_'s compare-exchange and its load in looks_empty() are seq_cst: Notifier's reasoning needs them in one order. An old head_
//     only makes an empty list look as if it weren't.
//   push never fails: the capacity is at least the number of ports and each is listed once at most.
//   pop may fail while a pusher is between claim and fill ("abandon on contention"); looks_empty() says false then.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/queue/machine.hpp"

namespace rayelastic {

template <class Item, template <class> class Atom = std::atomic>
class FreePorts {
 public:
  explicit FreePorts(std::size_t ports) : cells_(std::bit_ceil(std::max<std::size_t>(ports, 2))), mask_(cells_.size() - 1) {
    for (std::size_t index = 0; index < cells_.size(); ++index) cells_[index].sequence.store(index, std::memory_order_relaxed);
  }

  void push(Item* item) noexcept {
    RE_CHECK(item != nullptr);
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (int spin = 0;;) {
      Cell& cell = cells_[at & mask_];
      const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
      if (sequence == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_seq_cst, std::memory_order_relaxed)) {
          Machine<Atom>::writes(&cell.item, sizeof cell.item);
          cell.item = item;
          cell.sequence.store(at + 1, std::memory_order_release);
          return;
        }
      } else {  // somebody else claimed it, or its popper hasn't finished
        Machine<Atom>::relax(spin++);
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  [[nodiscard]] Item* pop() noexcept {
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
      if (sequence == at + 1) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed, std::memory_order_relaxed)) {
          Machine<Atom>::reads(&cell.item, sizeof cell.item);
          Item* item = cell.item;
          RE_CHECK(item != nullptr);
          cell.sequence.store(at + mask_ + 1, std::memory_order_release);
          return item;
        }
      } else if (sequence <= at) {
        return nullptr;
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

  [[nodiscard]] bool looks_empty() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    return tail_.load(std::memory_order_seq_cst) == head;
  }

 private:
  struct alignas(64) Cell {
    Atom<std::uint64_t> sequence{0};
    Item* item = nullptr;
  };

  std::vector<Cell> cells_;
  const std::uint64_t mask_;
  alignas(64) Atom<std::uint64_t> tail_{0};
  alignas(64) Atom<std::uint64_t> head_{0};
};

}  // namespace rayelastic
