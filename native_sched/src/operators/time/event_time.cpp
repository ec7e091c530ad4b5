#include "rayelastic/operators/time/event_time.hpp"

#include <algorithm>
#include <utility>

#include "record/time_field.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

namespace {

// `reached`: the greatest time so far. What was announced isn't kept: who goes on from it announces it again, for those downstream who don't.
struct EventTime final : TimedState {
  using Clock = std::chrono::steady_clock;

  TimeField time;
  std::int64_t lateness;
  std::size_t stride;
  Idleness idleness;
  std::int64_t announced = kNoWatermark;
  Clock::time_point active = Clock::now();  // when the last record came; only with `idleness`
  bool idle = false;                        // and nobody waits for it
  std::string beyond;                       // what is said of a time that windows couldn't be counted with

  EventTime(TimeField field, std::int64_t late, std::size_t record_size, Idleness when)
      : time(field), lateness(late), stride(record_size), idleness(when) {}

  [[nodiscard]] std::uint64_t form() const noexcept override { return time.form(); }
  [[nodiscard]] std::int64_t watermark() const noexcept { return reached == kNoWatermark ? kNoWatermark : reached - lateness - 1; }
  // What has become known since the last mark.
  void announce(rel_context* context) {
    if (watermark() <= announced) return;
    announced = watermark();
    context->mark({MarkKind::Watermark, announced});
  }
  // A record has come.
  void wake(rel_context* context) {
    if (idleness.after.count() == 0) return;
    active = Clock::now();
    if (std::exchange(idle, false) && announced != kNoWatermark) context->mark({MarkKind::Watermark, announced});
  }
  // Somebody looks after it.
  void look(rel_context* context) {
    const Clock::duration since = Clock::now() - active;
    if (idle || since < idleness.after) return;
    if (idleness.ticks_per_second <= 0) {
      idle = true;
      context->mark({MarkKind::Watermark, kIdle});
    } else if (reached != kNoWatermark) {
      const double passed = std::chrono::duration<double>(since).count() * idleness.ticks_per_second;
      const std::int64_t now = watermark() + static_cast<std::int64_t>(std::min(passed, static_cast<double>(kLongestSpan)));
      if (now <= announced) return;
      announced = now;
      context->mark({MarkKind::Watermark, announced});
    }
  }
};

std::int64_t process(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& event = *static_cast<EventTime*>(state);
  const auto* records = static_cast<const std::byte*>(in);
  std::int64_t sent = 0;
  event.wake(context);
  const auto send = [&](std::int64_t end) {
    const bool ok = sent == end || context->emit(0, records + static_cast<std::size_t>(sent) * event.stride, end - sent);
    sent = end;
    return ok;
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t time = event.time.of(records + static_cast<std::size_t>(i) * event.stride);
    if (time <= -kLatestTime || time >= kLatestTime) {
      context->fail(event.beyond);
      return REL_FAILED(i);
    }
    if (time <= event.watermark() && event.watermark() > event.announced) {
      if (!send(i)) return REL_STOPPED;
      event.announce(context);
    }
    event.reached = std::max(event.reached, time);
  }
  if (!send(n)) return REL_STOPPED;
  event.announce(context);
  return 0;
}

}  // namespace

OperatorSpec make_event_time(std::string name, std::shared_ptr<const Schema> schema, const std::string& field, std::int64_t lateness,
                             Idleness idleness) try {
  if (idleness.after.count() < 0) throw std::invalid_argument("the time after which it is idle is negative");
  if (lateness < 0 || lateness > kLongestSpan) throw std::invalid_argument("the lateness is negative or too long");
  OperatorSpec spec;
  spec.process = process;
  spec.marked = [](void* state, Mark mark, rel_context* context) {
    if (mark.kind == MarkKind::Command) static_cast<EventTime*>(state)->look(context);
    return mark.kind != MarkKind::Command && (mark.kind != MarkKind::Watermark || mark.value == kIdle);  // others end here
  };
  spec.commanded = idleness.after.count() > 0;
  auto event = std::make_shared<EventTime>(TimeField(*schema, field), lateness, schema->record_size(), idleness);
  event->beyond =
      "ValueError: the event time in field '" + field +
      "' is no number, or 2**62 of its units or more from 1970 (146 years of nanoseconds). Filter such tuples out, or use a coarser unit";
  spec.store = event;
  spec.state = std::move(event);
  spec.input = schema;
  spec.output = std::move(schema);
  spec.name = std::move(name);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
