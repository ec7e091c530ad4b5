// The kinds of windows, as operators. See window.hpp for what they do; window.cpp checks what they are given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operators/owned_in_slot.hpp"
#include "operators/time/window_core.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "rayelastic/record/days.hpp"
#include "rayelastic/record/hash.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

struct WindowPorts {
  std::string name;
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
};

using MakeWindow = std::shared_ptr<Operator>(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                             const std::vector<Aggregate>& aggregates);
MakeWindow make_count_window;
MakeWindow make_time_window;
MakeWindow make_span_window;

// A failure of the aggregates, for record `index` of the run.
[[nodiscard]] inline std::int64_t failed(WindowCore& core, std::int64_t index, rel_context* context) {
  context->fail(core.problem());
  return REL_FAILED(index);
}

// Of what a window keeps, for TimedState.
[[nodiscard]] inline std::uint64_t form_of(WindowKind kind, std::uint64_t size, std::uint64_t slide, std::uint64_t kept) noexcept {
  return hash_of(hash_of(hash_of(kept ^ static_cast<std::uint64_t>(kind)) ^ size) ^ slide);
}

enum class WindowOutcome : std::uint8_t { Ok, Late, Stopped, Failed };

// What came of WindowCore::give.
[[nodiscard]] inline WindowOutcome outcome_of(WindowCore& core, bool given) noexcept {
  if (given) return WindowOutcome::Ok;
  return core.problem().empty() ? WindowOutcome::Stopped : WindowOutcome::Failed;
}

// What windows by time have in common. By event time late records leave by output port 1.
class TimedWindow : public Operator, public TimedState {
 public:
  using Outcome = WindowOutcome;

  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    const Outcome outcome = advance(watermark, writer);
    if (outcome == Outcome::Failed) return failed(core, 0, context);
    if (watermark == kEndOfTime || outcome == Outcome::Stopped) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
  [[nodiscard]] StateTable* state() final { return this; }

 protected:
  TimedWindow(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
              const std::vector<Aggregate>& aggregates, std::uint32_t flags = 0)
      : Operator(ports.name, {ports.input}, options.now ? Schemas{ports.output} : Schemas{ports.output, ports.input},
                 REL_ON_FINISH | (options.now ? 0U : static_cast<std::uint32_t>(REL_ON_WATERMARK)) | flags),
        core(ports.input, ports.output, keys, options.lateness > 0 ? 3 : 2, aggregates, {}, options.function),  // bounds, and `corrected`
        times(options.times),
        size(options.size),
        slide(options.slide),
        lateness(options.lateness),
        punctual(options.punctual && options.lateness == 0) {
    if (!options.now) time.emplace(*ports.input, options.time, options.shift);
    keep(&core.table(), nullptr);
  }

  // Emits what is due at a watermark.
  [[nodiscard]] virtual Outcome advance(std::int64_t watermark, OutputWriter& writer) = 0;

  // Calls visit(due, slot) for the keys that are due, until it fails.
  template <typename Visit>
  [[nodiscard]] Outcome take_due(std::int64_t until, Visit&& visit) {
    Outcome outcome = Outcome::Ok;
    (void)due.take(until, [&](std::int64_t now, void* slot) {
      outcome = visit(now, slot);
      return outcome == Outcome::Ok;
    });
    return outcome;
  }

  WindowCore core;
  std::optional<TimeField> time;
  const WindowTimes times;  // of windows by time
  const std::int64_t size;
  const std::int64_t slide;
  const std::int64_t lateness;
  const bool punctual;
  DueKeys due;
};

}  // namespace rayelastic
