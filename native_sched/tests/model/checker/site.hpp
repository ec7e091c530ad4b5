// A place in the code under test where an atomic is touched. Mutants are made here, without a word in the code under test: an order
// can be weakened, a write dropped, a store put off until after the thread's next store.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <source_location>
#include <string>
#include <vector>

namespace rayelastic::model {

enum class Kind : std::uint8_t { Load, Store, Exchange, Add, Compare, Wait, Notify, Relax, Start };

struct Site {
  static constexpr int kNowhere = -1;
  static constexpr int kEverywhere = -2;

  std::string file = {};      // without folders
  std::string function = {};  // without parameters
  unsigned line = 0;
  unsigned column = 0;
  Kind kind = Kind::Load;
  std::memory_order order = std::memory_order_relaxed;     // as written
  std::memory_order failure = std::memory_order_relaxed;   // of a compare-exchange
  std::memory_order in_force = std::memory_order_relaxed;  // as the mutant has it
  std::memory_order failure_in_force = std::memory_order_relaxed;
  int dropped_for = kNowhere;  // the location whose writes and notifications are dropped here
  bool put_off = false;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool drops(int location) const { return dropped_for == location || dropped_for == kEverywhere; }

  // The site of a call; the same object whenever the same place is passed.
  [[nodiscard]] static Site& of(const std::source_location& where, Kind kind, std::memory_order order,
                                std::memory_order failure = std::memory_order_relaxed);
  // All that were passed so far, sorted by file and line.
  [[nodiscard]] static std::vector<Site*> all();
  static void restore_all();
};

[[nodiscard]] const char* name(Kind kind);
[[nodiscard]] const char* name(std::memory_order order);
[[nodiscard]] constexpr bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
[[nodiscard]] constexpr bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
// The next weaker orders that this kind of access can have; empty for relaxed.
[[nodiscard]] std::vector<std::memory_order> weaker(Kind kind, std::memory_order order);

}  // namespace rayelastic::model
