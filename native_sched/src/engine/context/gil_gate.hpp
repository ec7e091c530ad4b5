// Whether an operator's call is in Python, and beside the GIL lock or with it (token.hpp).
//
// Invariant: no operator submits while it has the lock, because whoever is downstream may wait for it: `without` leaves it meanwhile. An operator
// that waits in Python is called beside the lock, so it keeps nobody out.
#pragma once

#include <atomic>

#include "engine/engine.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class GilGate {
 public:
  explicit GilGate(const Operator& op) : needed_(op.has_any(REL_NEEDS_TOKEN)), always_beside_(op.has_any(REL_BESIDE_TOKEN)) {}

  // It is to be called with the lock.
  [[nodiscard]] bool needs_lock() const noexcept { return needed_ && !waits(); }
  // It spends its time asleep in Python: it is called beside the lock from now on, or with it again. Any thread.
  void set_waits(bool waits) noexcept { waits_.store(waits && needed_, std::memory_order_relaxed); }
  [[nodiscard]] bool waits() const noexcept { return waits_.load(std::memory_order_relaxed); }

  // A call begins, whose caller has entered the lock for it, or hasn't.
  void begin(bool held) noexcept {
    inside_ = held;
    beside_ = false;
  }
  void enter_if_needed(Engine& engine) {
    if ((!needed_ && !always_beside_) || inside_) return;
    beside_ = always_beside_ || waits();
    enter(engine);
  }
  void leave_if_inside(Engine& engine) {
    if (inside_) leave(engine);
  }
  template <class Body>
  void without(Engine& engine, Body body) {
    const bool inside = inside_;
    if (inside) leave(engine);
    body();
    if (inside) enter(engine);
  }

 private:
  [[gnu::noinline]] void enter(Engine& engine) {
    engine.enter_token(*current_thread, beside_);
    inside_ = true;
  }
  [[gnu::noinline]] void leave(Engine& engine) {
    inside_ = false;
    engine.leave_token(*current_thread, beside_);
  }

  const bool needed_;
  const bool always_beside_;
  bool inside_ = false;
  bool beside_ = false;             // in Python without the lock
  std::atomic<bool> waits_{false};  // the profiler's
};

}  // namespace rayelastic
