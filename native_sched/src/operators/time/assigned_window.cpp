// Windows that a function assigns: each record goes into those whose start and end the function emits for it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "operators/time/assigned_spans.hpp"
#include "operators/time/window_kinds.hpp"

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
class AssignedWindow final : public TimedWindow {
 public:
  AssignedWindow(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                 const std::vector<Aggregate>& aggregates)
      : TimedWindow(ports, keys, options, aggregates, options.assigner != nullptr ? options.assigner->flags() & REL_NEEDS_TOKEN : 0),
        assigner_(options.assigner) {
    if (assigner_ != nullptr) spans.emplace(assigner_);
  }
  ~AssignedWindow() override { Slot::drop_all(core.table()); }
  AssignedWindow(const AssignedWindow&) = delete;
  AssignedWindow& operator=(const AssignedWindow&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    const std::size_t stride = core.input().record_size();
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      const std::int64_t made = spans->call(in, *context);
      if (made != 0) return made == REL_STOPPED ? made : REL_FAILED(i);
      const Outcome outcome = take(in, writer);
      if (outcome == Outcome::Failed) return failed(core, i, context);  // without a problem the windows are wrong: Python explains it
      if (outcome == Outcome::Stopped) return REL_STOPPED;
      if (outcome == Outcome::Late && !context->emit(1, in, 1)) return REL_STOPPED;
    }
    publish();
    return writer.result();
  }
  [[nodiscard]] CalledFor called_for() const override { return assigner_ != nullptr ? assigner_->called_for() : CalledFor::Unknown; }

 private:
  using Slot = OwnedInSlot<AssignedKey>;

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
    return outcome_of(core, core.give(slot, window.state, bounds, writer, corrected));
  }

  // Takes a record into a window of its key. One that has ended is emitted at once.
  Outcome take(void* slot, const std::byte* record, const Span& span, OutputWriter& writer) {
    AssignedKey& kept = Slot::obtain(slot);
    std::vector<Assigned>& windows = kept.windows;
    auto place = windows.end();
    while (place != windows.begin() && !is_before(*(place - 1), span)) --place;
    const bool is_new = place == windows.end() || is_before({span, nullptr}, place->span);
    if (is_new) place = windows.insert(place, {span, core.make()});
    void* const state = place->state;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    if (const std::int64_t next = next_due(windows, reached); next < kept.due) {
      kept.due = next;
      due.note(next, slot);
    }
    return span.end <= reached ? give_window(slot, *place, !is_new, writer) : Outcome::Ok;
  }

  // Takes a record into the windows that take it; late if none of those that it was assigned to does.
  Outcome take(const std::byte* record, OutputWriter& writer) {
    const std::vector<Span>& assigned = spans->spans();
    const std::int64_t at = time.of(record);
    if (!std::ranges::all_of(assigned, [&](const Span& span) { return is_valid(span, at); })) return Outcome::Failed;
    if (assigned.empty()) return Outcome::Ok;
    if (std::ranges::none_of(assigned, [&](const Span& span) { return takes(span); })) return Outcome::Late;
    void* slot = nullptr;
    core.table().lookup(record, 1, &slot);
    for (const Span& span : assigned) {
      if (!takes(span)) continue;
      if (const Outcome outcome = take(slot, record, span, writer); outcome != Outcome::Ok) return outcome;
    }
    return Outcome::Ok;
  }

  // Emits the windows of a key that end now, drops those that aren't kept any longer, and finds when the next one ends.
  Outcome give(void* slot, std::int64_t now, OutputWriter& writer) {
    AssignedKey* const kept = Slot::find(slot);
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
      Slot::drop(slot);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    kept->due = next_due(windows, now);
    due.note(kept->due, slot);
    return Outcome::Ok;
  }

  [[nodiscard]] Outcome advance(std::int64_t watermark, OutputWriter& writer) override {
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
    const std::vector<Assigned>& windows = Slot::get(slot).windows;
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
    Slot::put(slot, std::move(key));
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<AssignedKey> key = Slot::take(slot);
    for (const Assigned& each : key->windows) core.drop(each.state);
  }

  const std::shared_ptr<Operator> assigner_;
  std::optional<AssignedSpans> spans;
};

}  // namespace

std::shared_ptr<Operator> make_assigned_window(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                               const std::vector<Aggregate>& aggregates) {
  return std::make_shared<AssignedWindow>(ports, keys, options, aggregates);
}

}  // namespace rayelastic
