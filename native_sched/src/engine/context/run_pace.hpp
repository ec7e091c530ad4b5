// How long the output runs of an operator are that may emit more than it receives.
//
// Invariant: runs are bounded in time only where somebody waits for one to end or reads how many tuples there are. Where nobody does, the same
// input always makes the same runs: where branches meet the order depends on them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "engine/work_meter.hpp"

namespace rayelastic {

class RunPace {
 public:
  // `active`: false for operators whose runs are no longer than their input.
  RunPace(bool active, std::size_t capacity) : capacity_(capacity) {
    if (active) meter_ = std::make_unique<WorkMeter>(std::chrono::nanoseconds{}, capacity);
  }

  [[nodiscard]] bool is_active() const noexcept { return meter_ != nullptr; }
  // Records of its output that a call may have at hand.
  [[gnu::noinline]] [[nodiscard]] std::size_t output_run(const Engine& engine, std::size_t count) const noexcept {
    return std::max(count, is_bounded(engine) ? std::min(capacity_, meter_->longest()) : capacity_);
  }
  // True: what the run costs is measured, until it has been submitted: `end` is to be called. `emitted`: records so far.
  [[gnu::noinline]] [[nodiscard]] bool begin(const Engine& engine, EngineThread& thread, std::uint64_t emitted) {
    if (!is_bounded(engine)) return false;
    if (const std::uint32_t switches = engine.switches.load(std::memory_order_relaxed); switches != switches_seen_) {
      const std::chrono::nanoseconds part = engine.options.queue_work / WorkMeter::kRuns;
      meter_->forget(is_awaited(engine) ? part : engine.options.run_work);
      if (engine.begins_with_one && switches_seen_ == ~0U) meter_->begin_with_one(capacity_);
      switches_seen_ = switches;
    }
    emitted_before_ = emitted;
    return meter_->begin(thread);
  }
  void end(EngineThread& thread, std::uint64_t emitted) { meter_->end(thread, emitted - emitted_before_); }

 private:
  [[nodiscard]] bool is_bounded(const Engine& engine) const noexcept {
    return is_active() && (is_awaited(engine) || engine.options.run_work.count() > 0);
  }
  // Somebody waits for a run to end.
  [[nodiscard]] static bool is_awaited(const Engine& engine) noexcept {
    return engine.takes_commands || engine.queues.load(std::memory_order_relaxed) > 0;
  }

  const std::size_t capacity_;
  std::unique_ptr<WorkMeter> meter_;   // what a record costs to make and to submit
  std::uint32_t switches_seen_ = ~0U;  // of models, when meter_ last began anew: other operators were called in place then
  std::uint64_t emitted_before_ = 0;   // before the run that is timed
};

}  // namespace rayelastic
