// The records that a router holds back until their keys have an owner.
//
// Invariant: they stay in the order in which they came. While keys are held, as many records more are allowed after each kStep as came in
// such a time before.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "rayelastic/net/pace.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class RecordBuffer;

class HeldRecords {
 public:
  static constexpr std::chrono::milliseconds kStep{100};

  explicit HeldRecords(std::size_t record_bytes);
  ~HeldRecords();

  // While no key is held: records that have come by, in so many runs.
  void watch(std::size_t records, std::uint32_t runs) noexcept { pace_.passed(records, runs); }
  // From now on keys are held; until end().
  void begin() noexcept { step_ = allowed_ = pace_.records_in(kStep, Pace::Clock::now(), SIZE_MAX); }
  void end() noexcept { pace_.begin(Pace::Clock::now()); }

  void add(const Run& run);
  // All of them; those that have to wait on are added again.
  [[nodiscard]] std::unique_ptr<RecordBuffer> take();

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }  // that were ever added
  [[nodiscard]] bool are_too_many() const noexcept { return size() > allowed_; }
  void allow_more() noexcept { allowed_ += step_; }  // a kStep has passed

 private:
  const std::size_t record_bytes_;
  std::unique_ptr<RecordBuffer> records_;
  std::uint64_t total_ = 0;
  Pace pace_;
  std::size_t step_ = 0;     // records that are allowed more after each kStep
  std::size_t allowed_ = 0;  // records, for now
};

}  // namespace rayelastic
