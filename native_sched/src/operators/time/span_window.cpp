// Windows that a key keeps one by one: sessions, those that a function assigns, and all windows of a user's function, also by time and batches.
//
// Records of aggregates are taken as they come, unless they ask for the order of times. A function gets them in the order of their times: by
// event time they wait until the watermark has reached them, by the clock they come now.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "operators/time/assigned_spans.hpp"
#include "operators/time/window_kinds.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

constexpr std::int64_t kFailedSomewhere = REL_FAILED(INT64_MAX - 1);  // no record of the run has this number

struct Open {
  Span span;
  std::byte* state;
  std::int64_t early = kEndOfTime;  // when it is emitted next before its end
  std::int64_t last = 0;            // of a batch: the time of its last record
  std::int64_t records = 0;         // of a batch
  bool emitted = false;             // at its end, and kept for late records; or a session that goes on behind that
  bool changed = false;             // since it was emitted
};

struct SpanKey {
  std::vector<Open> windows;      // in the order of their ends, then of their starts
  std::int64_t due = kEndOfTime;  // when one is to be emitted, or isn't kept any longer
};

[[nodiscard]] bool is_before(const Span& one, const Span& other) noexcept {
  return std::pair(one.end, one.start) < std::pair(other.end, other.start);
}

// `reached`: windows that end here or before were emitted, or would have been.
class SpanWindow final : public TimedWindow {
 public:
  SpanWindow(const WindowPorts& ports, const std::vector<std::string>& keys, WindowOptions described,
             const std::vector<Aggregate>& aggregates)
      : TimedWindow(ports, keys, described, aggregates, token_of(described)),
        options(std::move(described)),
        function(core.function()),
        waiting(
            ports.input, 1, [this](const std::byte* record) { return time->of(record); }, [](std::int64_t at) { return at; },
            &core.table().extractor()) {
    if (options.assigner != nullptr) assigner.emplace(options.assigner);
    if ((function != nullptr && !options.now) || options.in_order) keep(&core.table(), &waiting);
  }
  ~SpanWindow() override {
    const std::shared_ptr<void> inside = enter();
    if (function != nullptr && inside == nullptr) return;  // nobody can be told
    core.table().for_each([this](const StringView&, std::byte* slot) {
      if (Slot::find(slot) != nullptr) forget(slot);
    });
  }
  SpanWindow(const SpanWindow&) = delete;
  SpanWindow& operator=(const SpanWindow&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    if (function != nullptr) return options.now ? process_now(in, n, out, capacity, context) : process_later(in, n, out, capacity, context);
    OutputWriter writer(core.output(), out, capacity, context);
    const std::size_t stride = core.input().record_size();
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      const std::int64_t at = time->of(in);
      const bool behind = at + tick_behind() <= reached;
      if (behind && (punctual || (options.in_order && lateness == 0))) {
        if (!context->emit(1, in, 1)) return REL_STOPPED;
        continue;
      }
      if (options.in_order && !behind) {
        waiting.push(in, at, 0);
        continue;
      }
      if (const std::int64_t assigned = assigner.has_value() ? assigner->call(in, *context) : 0; assigned != 0)
        return assigned == REL_STOPPED ? assigned : REL_FAILED(i);
      const Outcome outcome = take(in, at, &writer);
      if (outcome == Outcome::Failed) return failed(core, i, context);  // without a problem the windows are wrong: Python explains it
      if (outcome == Outcome::Stopped) return REL_STOPPED;
      if (outcome == Outcome::Late && !context->emit(1, in, 1)) return REL_STOPPED;
    }
    publish();
    return writer.result();
  }
  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) override {
    if (function == nullptr) return TimedWindow::on_watermark(watermark, out, capacity, context);
    const std::int64_t left =
        called([&] { return watermark == kEndOfTime && options.now ? end() : run(watermark); }, out, capacity, context);
    if (left < 0 || watermark == kEndOfTime) return left;
    if (!context->flush(left)) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
  // By the clock: windows end though nothing comes.
  void on_command(rel_context* context) override {
    (void)called([&] { return run(options.now() - 1); }, nullptr, 0, context);
  }
  [[nodiscard]] bool takes_commands() const override { return static_cast<bool>(options.now); }
  [[nodiscard]] CalledFor called_for() const override {
    return options.assigner != nullptr ? options.assigner->called_for() : function != nullptr ? CalledFor::Record : CalledFor::Unknown;
  }

  // --- StateTable: the function's states are read and changed inside
  [[nodiscard]] std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) override {
    const std::shared_ptr<void> inside = enter();
    of_copy = false;
    struct Back {
      bool& of_copy;
      ~Back() { of_copy = true; }
    } const back{of_copy};
    return TimedState::export_chunk(keys, at, max_bytes);
  }
  [[nodiscard]] bool holds_objects() const noexcept override { return function != nullptr; }
  std::size_t import_range(std::span<const std::byte> bytes) override {
    const std::shared_ptr<void> inside = enter();
    return TimedState::import_range(bytes);
  }
  std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) override {
    const std::shared_ptr<void> inside = enter();
    return TimedState::remove_chunk(keys, at, max_keys);
  }
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy() override {
    if (function == nullptr) return TimedState::begin_copy();
    return function->copy([this](std::function<void()> rest) { return TimedState::begin_copy(std::move(rest)); });
  }

 private:
  using Slot = OwnedInSlot<SpanKey>;

  static std::uint32_t token_of(const WindowOptions& options) {
    if (options.function != nullptr) return REL_NEEDS_TOKEN;
    return options.assigner != nullptr ? options.assigner->flags() & REL_NEEDS_TOKEN : 0;
  }
  [[nodiscard]] std::shared_ptr<void> enter() { return function != nullptr ? function->enter() : nullptr; }
  // Whether records are taken in the order of their times.
  [[nodiscard]] bool waits() const noexcept { return function != nullptr || options.in_order; }
  [[nodiscard]] bool is_session() const noexcept { return options.kind == WindowKind::Session; }
  [[nodiscard]] bool is_batch() const noexcept { return options.kind == WindowKind::Batch; }
  // A session, or a batch, takes records at its end: it is complete a tick later than windows that end there.
  [[nodiscard]] std::int64_t tick_behind() const noexcept { return is_session() || is_batch() ? 0 : 1; }

  // --- calls of a function: it emits into memory of its own, which is submitted when nobody is inside any more
  template <typename Call>
  std::int64_t called(Call&& call, std::byte* out, std::int64_t capacity, rel_context* context) {
    Outcome outcome = Outcome::Failed;
    std::string problem = "the interpreter is gone";
    if (const std::shared_ptr<void> inside = enter(); inside != nullptr) {
      outcome = call();
      if (outcome == Outcome::Failed) problem = core.problem();
    }
    publish();
    if (outcome != Outcome::Failed) return function->submit(out, capacity, context);
    context->fail(std::move(problem));
    return kFailedSomewhere;
  }

  std::int64_t process_now(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) {
    std::int64_t i = 0;
    const auto each = [&] {
      for (; i < n; ++i) {
        const std::int64_t now = options.now();
        Outcome outcome = run(now - 1);
        if (outcome == Outcome::Ok) outcome = take(in + static_cast<std::size_t>(i) * core.input().record_size(), now, nullptr);
        if (outcome != Outcome::Ok) return outcome;
      }
      return Outcome::Ok;
    };
    const std::int64_t left = called(each, out, capacity, context);
    return left == kFailedSomewhere ? REL_FAILED(i) : left;
  }

  // By event time records wait. Those behind the watermark are late, if no window is kept that takes them.
  std::int64_t process_later(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) {
    const std::size_t stride = core.input().record_size();
    std::vector<const std::byte*> late;
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      if (const std::int64_t at = time->of(in); at + tick_behind() > reached) {
        waiting.push(in, at, 0);
      } else {
        late.push_back(in);
      }
    }
    std::int64_t left = 0;
    if (!late.empty() && lateness > 0) {
      std::vector<const std::byte*> too_late;
      const auto each = [&] {
        for (const std::byte* record : late) {
          const Outcome outcome = take(record, time->of(record), nullptr);
          if (outcome == Outcome::Late) too_late.push_back(record);
          if (outcome == Outcome::Failed) return outcome;
        }
        return Outcome::Ok;
      };
      left = called(each, out, capacity, context);
      late = std::move(too_late);
    } else {
      publish();
    }
    for (const std::byte* record : late) {
      if (left >= 0 && !context->emit(1, record, 1)) return REL_STOPPED;
    }
    return left;
  }

  // Does what is due up to a watermark, in the order of times.
  Outcome run(std::int64_t watermark, OutputWriter* writer = nullptr) {
    const bool only_read = function == nullptr && !core.accumulators().adds();
    while (waiting.is_due(watermark) && !only_read) {
      const Waiting& first = waiting.top();
      if (const Outcome outcome = advance_to(first.time - 1, writer); outcome != Outcome::Ok) return outcome;
      if (const Outcome outcome = take(first.record, first.time, writer); outcome == Outcome::Failed) return outcome;
      waiting.pop();
    }
    return advance_to(watermark, writer);
  }
  // The end by the clock: what is open is emitted, and nothing early.
  Outcome end() {
    ended = true;
    return advance_to(kEndOfTime, nullptr);
  }

  // --- records
  [[nodiscard]] bool takes(const Span& span) const noexcept { return is_session() || span.end + lateness > reached; }
  // Behind its start, behind the record, and no time that was clamped.
  [[nodiscard]] static bool is_valid(const Span& span, std::int64_t at) noexcept {
    const auto is_time = [](std::int64_t ticks) { return ticks > -kLatestTime && ticks < kLatestTime; };
    return span.start < span.end && at < span.end && is_time(span.start) && is_time(span.end);
  }

  // The windows of a record, which the assigner was called with. False: the function fails.
  [[nodiscard]] bool find_spans(std::int64_t at) {
    if (assigner.has_value()) return std::ranges::all_of(assigner->spans(), [&](const Span& span) { return is_valid(span, at); });
    spans.clear();
    if (function != nullptr && function->assigns()) return function->assign(at, spans);
    if (options.kind != WindowKind::Time) {
      spans.push_back({at, at + (is_batch() ? options.within : size)});
      return true;
    }
    const std::int64_t counted = times.counted(at);
    for (std::int64_t start = floor_divide(counted, slide) * slide; start > counted - size; start -= slide)
      spans.push_back({times.uncounted(start), times.uncounted(start + size)});
    return true;
  }

  // Takes a record into its windows; late if none of them takes it. `writer`: of aggregates.
  Outcome take(const std::byte* record, std::int64_t at, OutputWriter* writer) {
    if (function != nullptr && !function->take(record)) return Outcome::Failed;
    if (!find_spans(at)) return Outcome::Failed;
    const std::vector<Span>& assigned = assigner.has_value() ? assigner->spans() : spans;
    if (assigned.empty()) return Outcome::Ok;
    if (std::ranges::none_of(assigned, [&](const Span& span) { return takes(span); })) return Outcome::Late;
    void* slot = nullptr;
    core.table().lookup(record, 1, &slot);
    Outcome outcome = Outcome::Ok;
    for (const Span& span : assigned) {
      if (outcome == Outcome::Ok && takes(span)) outcome = take_into(slot, record, at, span, writer);
    }
    if (Slot::get(slot).windows.empty()) {
      Slot::drop(slot);
      core.table().remove(slot);
    }
    return outcome;
  }

  // The window of a key that a record goes into. Its end: a new one.
  [[nodiscard]] std::vector<Open>::iterator find_window(std::vector<Open>& windows, std::int64_t at, const Span& span) const {
    if (is_batch()) return windows.begin();
    if (is_session())
      return std::ranges::find_if(windows, [&](const Open& each) { return each.span.end >= at && each.span.start <= span.end; });
    return std::ranges::find_if(windows, [&](const Open& each) { return each.span.end == span.end && each.span.start == span.start; });
  }

  Outcome take_into(void* slot, const std::byte* record, std::int64_t at, const Span& span, OutputWriter* writer) {
    SpanKey& key = Slot::obtain(slot);
    std::vector<Open>& windows = key.windows;
    auto place = find_window(windows, at, span);
    if (place == windows.end()) {
      if (is_session() && span.end + lateness <= reached) return Outcome::Late;
      std::byte* const state = core.make();
      if (state == nullptr) return Outcome::Failed;
      place = std::ranges::find_if(windows, [&](const Open& each) { return is_before(span, each.span); });
      place = windows.insert(place, {span, state});
    } else if (is_session()) {
      place->span = {std::min(place->span.start, at), std::max(place->span.end, span.end)};
    }
    bool complete = false;
    if (function == nullptr) {
      void* const state = place->state;
      if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
      if (const auto next = place + 1;
          is_session() && core.accumulators().merges() && next != windows.end() && place->span.end >= next->span.start) {
        if (!core.accumulators().merge(place->state, next->state)) return Outcome::Failed;
        place->span.end = next->span.end;
        place->emitted |= next->emitted;
        core.drop(next->state);
        windows.erase(next);
      }
    } else if (!function->add(place->state, complete)) {
      return Outcome::Failed;
    }
    place->last = at;
    place->changed = true;
    if (place->span.end <= reached) {
      const Outcome outcome = emit(slot, *place, true, writer);
      if (outcome != Outcome::Ok) return outcome;
    } else if (complete || (++place->records == size && is_batch())) {
      return close(slot, windows, place, writer);
    } else if (function != nullptr) {
      set_early(*place, std::max(at, reached - tick_behind()));
      if (options.update && !core.emit(slot, place->state, place->span, false, false)) return Outcome::Failed;
    }
    note_due(slot, key);
    return Outcome::Ok;
  }

  // A window before its end is emitted as it is, and no more.
  Outcome close(void* slot, std::vector<Open>& windows, std::vector<Open>::iterator place, OutputWriter* writer) {
    const Outcome outcome = emit(slot, *place, true, writer);
    core.drop(place->state);
    windows.erase(place);
    return outcome;
  }

  // --- time
  // When a window is emitted early next, behind a time.
  void set_early(Open& window, std::int64_t behind) const noexcept {
    if (options.every == 0) return;
    const std::int64_t start = window.span.start;
    const std::int64_t next = start + (floor_divide(behind - start, options.every) + 1) * options.every;
    if (next < window.span.end) window.early = std::min(window.early, next - 1 + tick_behind());
  }
  // When there is something to do for a key, of which what is due up to a time was done.
  [[nodiscard]] std::int64_t next_due(const std::vector<Open>& windows, std::int64_t now) const noexcept {
    std::int64_t next = kEndOfTime;
    for (const Open& each : windows)
      next = std::min(next, each.span.end > now ? std::min(each.span.end, each.early) : each.span.end + lateness);
    return next;
  }
  void note_due(void* slot, SpanKey& key) {
    if (const std::int64_t next = next_due(key.windows, reached); next < key.due) {
      key.due = next;
      due.note(next, slot);
    }
  }

  Outcome emit(void* slot, Open& window, bool final, OutputWriter* writer) {
    const bool corrected = final && std::exchange(window.emitted, window.emitted || final);
    window.changed = false;
    const Span bounds{window.span.start, is_batch() ? window.last + options.tick : window.span.end};
    if (function != nullptr) return core.emit(slot, window.state, bounds, final, corrected) ? Outcome::Ok : Outcome::Failed;
    return outcome_of(core, core.give(slot, window.state, &bounds.start, *writer, corrected));
  }

  // Emits the windows of a key that are due now, drops those that aren't kept any longer, and finds when the next one is.
  Outcome fire(void* slot, std::int64_t now, OutputWriter* writer) {
    SpanKey* const key = Slot::find(slot);
    if (key == nullptr || key->due != now) return Outcome::Ok;  // noted for an earlier life of the slot, or twice
    core.table().will_change(slot);
    std::vector<Open>& windows = key->windows;
    for (Open& each : windows) {
      const bool early = each.span.end > now && each.early == now && !ended;
      if (each.early <= now) each.early = kEndOfTime;
      if (each.span.end != now && !(early && each.changed)) continue;
      if (const Outcome outcome = emit(slot, each, !early, writer); outcome != Outcome::Ok) return outcome;
    }
    std::erase_if(windows, [&](const Open& each) {
      const bool over = each.span.end + lateness <= now;
      if (over) core.drop(each.state);
      return over;
    });
    if (windows.empty()) {
      Slot::drop(slot);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    key->due = next_due(windows, now);
    due.note(key->due, slot);
    return Outcome::Ok;
  }

  [[nodiscard]] Outcome advance(std::int64_t watermark, OutputWriter& writer) override {
    return options.in_order ? run(watermark, &writer) : advance_to(watermark, &writer);
  }
  Outcome advance_to(std::int64_t watermark, OutputWriter* writer) {
    reached = std::max(reached, std::clamp(watermark, kFirstTime, kLastTime) + tick_behind());
    return take_due(watermark == kEndOfTime ? kEndOfTime - 1 : reached,
                    [&](std::int64_t now, void* slot) { return fire(slot, now, writer); });
  }

  // --- TimedState: per key how many windows (4), and of each
  //   aggregates in any order   its start and its end (8 each); of a session its first and last time (8 each), with a lateness whether it was emitted (1)
  //   otherwise    its start, its end, its last record, how many, when it is emitted early (8 each), whether it was emitted, and changed (1 each)
  // then its state
  [[nodiscard]] std::uint64_t form() const noexcept override {
    const std::uint64_t kept = core.layout() ^ (time.has_value() ? time->form() : 0);
    if (waits())
      return form_of(options.kind, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(slide),
                     (options.in_order ? hash_of(kept) : kept) ^ static_cast<std::uint64_t>(lateness) ^ times.form());
    const std::uint64_t first = is_session() ? static_cast<std::uint64_t>(size) : static_cast<std::uint64_t>(lateness);
    return form_of(options.kind, first, is_session() ? static_cast<std::uint64_t>(lateness) : 0, kept);
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(SpanKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Open>& windows = Slot::get(slot).windows;
    writer.number(static_cast<std::uint32_t>(windows.size()));
    for (const Open& each : windows) {
      writer.number(each.span.start);
      writer.number(is_session() && !waits() ? each.span.end - size : each.span.end);
      if (waits()) {
        for (const std::int64_t number : {each.last, each.records, each.early}) writer.number(number);
        writer.number(static_cast<std::uint8_t>(each.emitted));
        writer.number(static_cast<std::uint8_t>(each.changed));
      } else if (is_session() && lateness > 0) {
        writer.number(static_cast<std::uint8_t>(each.emitted));
      }
      if (function != nullptr) {
        function->write(each.state, writer, of_copy);
      } else {
        core.write(each.state, writer);
      }
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t until) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without windows");
    SpanKey key;
    Span last{kNoWatermark, kNoWatermark};
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto start = reader.number<std::int64_t>();
      const auto end = reader.number<std::int64_t>() + (is_session() && !waits() ? size : 0);
      const bool is_behind = is_session() ? last.end == kNoWatermark || last.end < start : is_before(last, {start, end});
      if (start < kFirstTime || end <= start || end > kLastTime + (is_session() ? size : 0) || !is_behind)
        throw StateError("exported state has a window at a time that there isn't");
      last = {start, end};
      Open open{last, nullptr};
      open.emitted = !is_session() && end <= until;
      if (waits()) {
        for (std::int64_t* number : {&open.last, &open.records, &open.early}) *number = reader.number<std::int64_t>();
        open.emitted = reader.number<std::uint8_t>() != 0;
        open.changed = reader.number<std::uint8_t>() != 0;
      } else if (is_session() && lateness > 0) {
        open.emitted = reader.number<std::uint8_t>() != 0;
      }
      open.state = core.read(reader, slot != nullptr);
      if (slot != nullptr) key.windows.push_back(open);
    }
    if (slot == nullptr) return;
    key.due = next_due(key.windows, until);
    due.note(key.due, slot);
    Slot::put(slot, std::move(key));
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<SpanKey> key = Slot::take(slot);
    for (const Open& each : key->windows) core.drop(each.state);
  }

  const WindowOptions options;
  WindowFunction* const function;  // null: aggregates
  WaitingRecords waiting;          // of a function by event time, and of aggregates in the order of times
  std::optional<AssignedSpans> assigner;
  std::vector<Span> spans;  // of the record that is taken
  bool ended = false;       // by the clock
  bool of_copy = true;      // a state is written for one
};

}  // namespace

std::shared_ptr<Operator> make_span_window(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                           const std::vector<Aggregate>& aggregates) {
  return std::make_shared<SpanWindow>(ports, keys, options, aggregates);
}

}  // namespace rayelastic
