// Windows that a function assigns: each record goes into those whose start and end the function emits for it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "operators/time/assigned_spans.hpp"
#include "operators/time/window_kinds.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

namespace {

struct Assigned {
  Span span;
  std::byte* state;
};

struct AssignedKey {
  std::vector<Assigned> windows;  // in the order of their ends, then of their starts
  std::int64_t due = kEndOfTime;  // when one has ended, or isn't kept any longer
};

[[nodiscard]] bool is_before(const Assigned& one, const Span& other) noexcept {
  return std::pair(one.span.end, one.span.start) < std::pair(other.end, other.start);
}

// `reached`: windows that end here or before were emitted, or would have been.
struct AssignedWindow final : TimedState {
  WindowCore core;
  TimeField time;
  std::int64_t lateness;
  std::optional<AssignedSpans> assigner;
  DueKeys due = {};

  AssignedWindow(WindowCore made, TimeField field, const WindowOptions& options)
      : core(std::move(made)), time(field), lateness(options.lateness) {
    keep(&core.table(), nullptr);
    if (options.assigner != nullptr) assigner.emplace(options.assigner);
  }
  AssignedWindow(const AssignedWindow&) = delete;
  AssignedWindow& operator=(const AssignedWindow&) = delete;
  ~AssignedWindow() override {
    core.table().for_each([](const StringView&, std::byte* slot) { delete kept_in<AssignedKey>(slot); });
  }

  enum class Outcome : std::uint8_t { Ok, Late, Stopped, Failed };

  [[nodiscard]] bool takes(const Span& span) const noexcept { return span.end + lateness > reached; }
  // Behind its start, behind the record, and no time that was clamped.
  [[nodiscard]] bool is_valid(const Span& span, std::int64_t at) const noexcept {
    const auto is_time = [](std::int64_t ticks) { return ticks > -kLatestTime && ticks < kLatestTime; };
    return span.start < span.end && at < span.end && is_time(span.start) && is_time(span.end);
  }
  // When there is something to do for a key, of which what ends up to a time was emitted.
  [[nodiscard]] std::int64_t next_due(const std::vector<Assigned>& windows, std::int64_t now) const noexcept {
    const auto open = std::ranges::find_if(windows, [&](const Assigned& each) { return each.span.end > now; });
    const std::int64_t kept = windows.front().span.end + (open == windows.begin() ? 0 : lateness);
    return open == windows.end() ? kept : std::min(kept, open->span.end);
  }

  Outcome give_window(void* slot, const Assigned& window, bool corrected, OutputWriter& writer) {
    const std::int64_t bounds[] = {window.span.start, window.span.end};
    return outcome_of<Outcome>(core, core.give(slot, window.state, bounds, writer, corrected));
  }

  // Takes a record into a window of its key. One that has ended is emitted at once.
  Outcome take(void* slot, const std::byte* record, const Span& span, OutputWriter& writer) {
    AssignedKey*& kept = kept_in<AssignedKey>(slot);
    if (kept == nullptr) kept = new AssignedKey;
    std::vector<Assigned>& windows = kept->windows;
    auto place = windows.end();
    while (place != windows.begin() && !is_before(*(place - 1), span)) --place;
    const bool is_new = place == windows.end() || is_before({span, nullptr}, place->span);
    if (is_new) place = windows.insert(place, {span, core.make()});
    void* const state = place->state;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    if (const std::int64_t next = next_due(windows, reached); next < kept->due) {
      kept->due = next;
      due.note(next, slot);
    }
    return span.end <= reached ? give_window(slot, *place, !is_new, writer) : Outcome::Ok;
  }

  // Takes a record into the windows that take it; late if none of those that it was assigned to does.
  Outcome take(const std::byte* record, OutputWriter& writer) {
    const std::vector<Span>& spans = assigner->spans();
    const std::int64_t at = time.of(record);
    if (!std::ranges::all_of(spans, [&](const Span& span) { return is_valid(span, at); })) return Outcome::Failed;
    if (spans.empty()) return Outcome::Ok;
    if (std::ranges::none_of(spans, [&](const Span& span) { return takes(span); })) return Outcome::Late;
    void* slot = nullptr;
    core.table().lookup(record, 1, &slot);
    for (const Span& span : spans) {
      if (!takes(span)) continue;
      if (const Outcome outcome = take(slot, record, span, writer); outcome != Outcome::Ok) return outcome;
    }
    return Outcome::Ok;
  }

  // Emits the windows of a key that end now, drops those that aren't kept any longer, and finds when the next one ends.
  Outcome give(void* slot, std::int64_t now, OutputWriter& writer) {
    AssignedKey* const kept = kept_in<AssignedKey>(slot);
    if (kept == nullptr || kept->due != now) return Outcome::Ok;  // noted for an earlier life of the slot, or twice
    core.table().will_change(slot);
    std::vector<Assigned>& windows = kept->windows;
    for (const Assigned& each : windows) {
      if (each.span.end != now) continue;
      if (const Outcome outcome = give_window(slot, each, false, writer); outcome != Outcome::Ok) return outcome;
    }
    const auto kept_from = std::ranges::find_if(windows, [&](const Assigned& each) { return each.span.end + lateness > now; });
    std::for_each(windows.begin(), kept_from, [&](const Assigned& each) { core.drop(each.state); });
    windows.erase(windows.begin(), kept_from);
    if (windows.empty()) {
      delete std::exchange(kept_in<AssignedKey>(slot), nullptr);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    kept->due = next_due(windows, now);
    due.note(kept->due, slot);
    return Outcome::Ok;
  }

  Outcome advance(std::int64_t watermark, OutputWriter& writer) {
    reached = std::max(reached, std::clamp(watermark, kFirstTime, kLastTime) + 1);
    Outcome outcome = Outcome::Ok;
    (void)due.take(watermark == kEndOfTime ? kEndOfTime - 1 : reached, [&](std::int64_t now, void* slot) {
      outcome = give(slot, now, writer);
      return outcome == Outcome::Ok;
    });
    return outcome;
  }

  // --- TimedState: per key how many windows (4), and of each its start and its end (8 each) and its state
  [[nodiscard]] std::uint64_t form() const noexcept override {
    return form_of(WindowKind::Assigned, static_cast<std::uint64_t>(lateness), 0, core.layout() ^ time.form());
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(AssignedKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Assigned>& windows = kept_in<AssignedKey>(slot).windows;
    writer.number(static_cast<std::uint32_t>(windows.size()));
    for (const Assigned& each : windows) {
      writer.number(each.span.start);
      writer.number(each.span.end);
      core.write(each.state, writer);
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t until) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without windows");
    AssignedKey key;
    Assigned last{{kNoWatermark, kNoWatermark}, nullptr};
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto start = reader.number<std::int64_t>();
      const auto end = reader.number<std::int64_t>();
      if (start < kFirstTime || end <= start || end > kLastTime || !is_before(last, {start, end}))
        throw StateError("exported state has a window at a time that there isn't");
      last = {{start, end}, core.read(reader, slot != nullptr)};
      if (slot != nullptr) key.windows.push_back(last);
    }
    if (slot == nullptr) return;
    key.due = next_due(key.windows, until);
    due.note(key.due, slot);
    kept_in<AssignedKey>(slot) = new AssignedKey(std::move(key));
  }

  void forget(void* slot) noexcept override {
    AssignedKey* const key = std::exchange(kept_in<AssignedKey>(slot), nullptr);
    for (const Assigned& each : key->windows) core.drop(each.state);
    delete key;
  }
};

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) {
  auto& window = *static_cast<AssignedWindow*>(opaque);
  using Outcome = AssignedWindow::Outcome;
  OutputWriter writer(window.core.output(), out, capacity, context);
  if (n == 0) {
    const std::int64_t watermark = context->watermark();
    const Outcome outcome = window.advance(watermark, writer);
    if (outcome == Outcome::Failed) return failed(window.core, 0, context);
    if (watermark == kEndOfTime || outcome == Outcome::Stopped) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t stride = window.core.input().record_size();
  for (std::int64_t i = 0; i < n; ++i, record += stride) {
    const std::int64_t made = window.assigner->call(record, *context);
    if (made != 0) return made == REL_STOPPED ? made : REL_FAILED(i);
    const Outcome outcome = window.take(record, writer);
    if (outcome == Outcome::Failed) return failed(window.core, i, context);  // without a problem the windows are wrong: Python explains it
    if (outcome == Outcome::Stopped) return REL_STOPPED;
    if (outcome == Outcome::Late && !context->emit(1, record, 1)) return REL_STOPPED;
  }
  window.publish();
  return writer.result();
}

}  // namespace

void make_assigned_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                          const std::vector<Aggregate>& aggregates) {
  spec.process = process;
  spec.flags = REL_ON_FINISH | REL_ON_WATERMARK;
  if (options.assigner != nullptr) {
    spec.flags |= options.assigner->flags & REL_NEEDS_TOKEN;
    spec.called_for = options.assigner->called_for;
  }
  auto window = std::make_shared<AssignedWindow>(WindowCore(spec.input, spec.output, keys, bounds_of(options), aggregates),
                                                 TimeField(*spec.input, options.time, options.shift), options);
  spec.store = window;
  spec.state = std::move(window);
}

}  // namespace rayelastic
