// An operator whose state is saved at a checkpoint barrier: a copy of it is begun there (state_copy.hpp) and it continues, or, where it can't be
// copied, it is held at its safe point until whoever saves it lets it go.
//
// Invariant: an operator is never held for an abandoned checkpoint; the mutex orders the two. Engine::abandoned and Engine::stopping
// change first, this class afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "engine/control/hold.hpp"
#include "engine/engine.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/mutex.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/state_table.hpp"

namespace rayelastic {

class BarrierHold {
 public:
  explicit BarrierHold(Hold& safe_point) : safe_point_(safe_point) {}

  // Before the start: it is to be saved.
  void enable() noexcept { enabled_ = true; }
  [[nodiscard]] bool is_enabled() const noexcept { return enabled_; }

  // From when it leaves its safe point. The copy is begun without the mutex: that may take the GIL, and whoever has that may want the mutex.
  void hold(std::int64_t checkpoint, Operator& op, const Engine& engine) {
    RE_CHECK(enabled_ && checkpoint > 0);
    const auto is_vain = [&] {
      return engine.stopping.load(std::memory_order_seq_cst) || checkpoint <= engine.abandoned.load(std::memory_order_seq_cst);
    };
    std::shared_ptr<StateCopy> begun;
    try {
      if (StateTable* const state = op.state(); state != nullptr && !is_vain()) begun = state->begin_copy();
    } catch (const std::bad_alloc&) {
      begun = nullptr;  // reading it where it is takes less memory
    }
    const Lock guard(mutex_);
    if (is_vain()) {
      if (begun != nullptr) begun->abandon();
      return;
    }
    RE_CHECK(held_at_.load(std::memory_order_relaxed) < checkpoint);
    copy_ = std::move(begun);
    copies_.store(copy_ != nullptr, std::memory_order_relaxed);
    held_at_.store(checkpoint, std::memory_order_release);
    if (copy_ == nullptr) safe_point_.hold();
  }
  // Its state at that barrier can be had: it is held there, and nobody is inside, or a copy was begun.
  [[nodiscard]] bool is_there(std::int64_t checkpoint) const noexcept {
    if (held_at_.load(std::memory_order_acquire) != checkpoint) return false;
    return copies_.load(std::memory_order_relaxed) || (safe_point_.is_held() && safe_point_.settled());
  }
  // The copy, which keeps `owner` and is given up with its last owner; null: there is none.
  [[nodiscard]] std::shared_ptr<StateCopy> take_copy(std::int64_t checkpoint, std::shared_ptr<Operator> owner) {
    const Lock guard(mutex_);
    if (held_at_.load(std::memory_order_relaxed) != checkpoint || copy_ == nullptr) return nullptr;
    RE_CHECK(owner != nullptr && copies_.load(std::memory_order_relaxed));
    held_at_.store(0, std::memory_order_relaxed);
    StateCopy* const copy = copy_.get();
    return {copy, [kept = std::move(copy_), owner = std::move(owner)](StateCopy*) { kept->abandon(); }};
  }
  void let_go() noexcept {
    const Lock guard(mutex_);
    if (copy_ == nullptr) held_at_.store(0, std::memory_order_relaxed);  // else it was held for something else
    safe_point_.release();
  }
  void give_up(std::int64_t checkpoint) noexcept {
    const Lock guard(mutex_);
    const std::int64_t at = held_at_.load(std::memory_order_relaxed);
    if (at == 0 || at > checkpoint) return;
    held_at_.store(0, std::memory_order_relaxed);
    if (copy_ == nullptr) {
      safe_point_.release();
      return;
    }
    copy_->abandon();
    copy_ = nullptr;
  }

 private:
  Hold& safe_point_;
  bool enabled_ = false;
  Mutex mutex_;
  std::atomic<std::int64_t> held_at_{0};                    // the checkpoint at whose barrier it is held, or its state is copied; 0: none
  std::atomic<bool> copies_{false};                         // its state is copied there; written before held_at_
  std::shared_ptr<StateCopy> copy_ REL_GUARDED_BY(mutex_);  // until somebody takes it
};

}  // namespace rayelastic
