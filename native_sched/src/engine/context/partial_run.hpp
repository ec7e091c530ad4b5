// Who is in the partial run of an operator (operator_parts.cpp), and where the output of a function goes that has one downstream.
//
// Invariant: one thread at a time is in a part: whoever entered it. While somebody wants to settle it, producers leave it alone.
#pragma once

#include <atomic>
#include <memory>

namespace rayelastic {

class OperatorContext;

struct PartialRun {
  class Inside {
   public:
    explicit Inside(PartialRun& part) : part_(part), entered_(!part.busy_.test_and_set(std::memory_order_acquire)) {}
    ~Inside() {
      if (entered_) part_.busy_.clear(std::memory_order_release);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    explicit operator bool() const noexcept { return entered_; }

   private:
    PartialRun& part_;
    const bool entered_;
  };

  void want_settled(bool wanted) noexcept { settles_.store(wanted, std::memory_order_relaxed); }
  [[nodiscard]] bool is_to_be_settled() const noexcept { return settles_.load(std::memory_order_relaxed); }

  std::unique_ptr<OperatorContext> twin;  // runs the same function beside this one
  OperatorContext* end = nullptr;         // that has a part for what comes of this one's runs; null: there is none
  OperatorContext* beside = nullptr;      // of a twin: who receives what it emits

 private:
  std::atomic_flag busy_;
  std::atomic<bool> settles_{false};
};

}  // namespace rayelastic
