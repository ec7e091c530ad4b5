// Windows by event time: [k * slide, k * slide + size), of times that are counted from an offset, perhaps in days of a zone. Records go into panes as long as the greatest common divisor of both, which the
// windows of a key share.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "operators/time/window_kinds.hpp"

namespace rayelastic {

namespace {

struct Pane {
  std::int64_t number;  // its start, in panes
  std::byte* state;
};

struct TimeKey {
  std::vector<Pane> panes;        // in order
  std::int64_t due = kEndOfTime;  // the end of the next window that is to be given, or when a pane is no longer kept
};

// `reached`: windows that end here or before were given, or would have been. All times but those of records and watermarks are counted.
class TimeWindow final : public TimedWindow {
 public:
  TimeWindow(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
             const std::vector<Aggregate>& aggregates)
      : TimedWindow(ports, keys, options, aggregates) {}
  ~TimeWindow() override { Slot::drop_all(core.table()); }
  TimeWindow(const TimeWindow&) = delete;
  TimeWindow& operator=(const TimeWindow&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    const std::size_t stride = core.input().record_size();
    std::int64_t first = 0;
    for (std::int64_t i = 0; i <= n; ++i) {
      const std::byte* record = in + static_cast<std::size_t>(i) * stride;
      const std::int64_t at = i == n ? 0 : time_of(record);
      const bool late = i < n && is_late(at);
      const bool corrects = i < n && !late && is_corrected_by(at) && !is_between_windows(at);
      if (i < n && !late && !corrects && !is_between_windows(at)) continue;
      const std::ptrdiff_t wrong = take(in + static_cast<std::size_t>(first) * stride, static_cast<std::size_t>(i - first));
      if (wrong >= 0) return failed(core, first + wrong, context);
      if (late && !context->emit(1, record, 1)) return REL_STOPPED;
      if (corrects) {
        const Outcome outcome = correct(record, at, writer);
        if (outcome == Outcome::Failed) return failed(core, i, context);
        if (outcome == Outcome::Stopped) return REL_STOPPED;
      }
      first = i + 1;
    }
    publish();
    return writer.result();
  }

 private:
  using Slot = OwnedInSlot<TimeKey>;

  [[nodiscard]] std::int64_t time_of(const std::byte* record) const noexcept { return times.counted(time->of(record)); }

  // The end of the first window that ends after `at`, and of the last that starts at `at` or before.
  [[nodiscard]] std::int64_t first_end_after(std::int64_t at) const noexcept {
    return floor_divide(at - size, slide) * slide + slide + size;
  }
  [[nodiscard]] std::int64_t last_end_of(std::int64_t at) const noexcept { return floor_divide(at, slide) * slide + size; }
  // With a slide longer than the size.
  [[nodiscard]] bool is_between_windows(std::int64_t at) const noexcept { return last_end_of(at) <= at; }
  [[nodiscard]] bool is_late(std::int64_t at) const noexcept {
    return at < reached && (punctual || (last_end_of(at) + lateness <= reached && !is_between_windows(at)));
  }
  // Whether a window of a record that isn't late has been given.
  [[nodiscard]] bool is_corrected_by(std::int64_t at) const noexcept {
    return lateness > 0 && at < reached && first_end_after(at) <= reached;
  }
  // When the first pane of a key isn't needed any more.
  [[nodiscard]] std::int64_t kept_until(const Pane& first) const noexcept { return last_end_of(first.number * pane) + lateness; }
  // When there is something to do for a key, of which windows up to an end were given.
  [[nodiscard]] std::int64_t next_due(const std::vector<Pane>& panes, std::int64_t given) const noexcept {
    const auto open = std::ranges::find_if(panes, [&](const Pane& each) { return last_end_of(each.number * pane) > given; });
    const std::int64_t kept = kept_until(panes.front());
    return open == panes.end() ? kept : std::min(kept, first_end_after(std::max(open->number * pane, given)));
  }

  // The pane of a record that isn't late, in the key that the slot belongs to.
  std::byte* pane_for(void* slot, std::int64_t at) {
    TimeKey& key = Slot::obtain(slot);
    const std::int64_t end = last_end_of(at) <= reached ? last_end_of(at) + lateness : first_end_after(std::max(at, reached));
    if (end < key.due) {
      key.due = end;
      due.note(end, slot);
    }
    const std::int64_t number = floor_divide(at, pane);
    auto place = key.panes.end();
    while (place != key.panes.begin() && (place - 1)->number >= number) --place;
    if (place == key.panes.end() || place->number != number) place = key.panes.insert(place, {number, core.make()});
    return place->state;
  }

  // What is given of a window: for the first time; or once more, if it had panes before that of the record that has come late.
  enum class Given : std::uint8_t { Complete, Again, AgainWithNewPane };

  // Gives the window of a key that ends there, if it has records.
  Outcome give_window(void* slot, std::int64_t end, Given given, OutputWriter& writer) {
    const std::vector<Pane>& panes = Slot::find(slot)->panes;
    const std::int64_t bounds[] = {times.uncounted(end - size), times.uncounted(end)};
    const auto begin = std::ranges::find_if(panes, [&](const Pane& each) { return each.number * pane >= end - size; });
    const auto behind = std::find_if(begin, panes.end(), [&](const Pane& each) { return each.number * pane >= end; });
    if (behind == begin) return Outcome::Ok;
    const bool corrected = given == Given::Again || (given == Given::AgainWithNewPane && behind - begin > 1);
    if (behind - begin == 1) return outcome_of(core, core.give(slot, begin->state, bounds, writer, corrected));
    std::byte* total = core.make();
    core.accumulators().copy(total, begin->state);
    const bool fits = std::all_of(begin + 1, behind, [&](const Pane& each) { return core.accumulators().merge(total, each.state); });
    const bool ok = !fits || core.give(slot, total, bounds, writer, corrected);
    core.drop(total);
    return fits ? outcome_of(core, ok) : Outcome::Failed;
  }

  // Takes a record that has come behind the end of some of its windows, and gives those that are kept once more.
  Outcome correct(const std::byte* record, std::int64_t at, OutputWriter& writer) {
    void* slot = nullptr;
    core.table().lookup(record, 1, &slot);
    const auto panes = [slot] { return Slot::find(slot) == nullptr ? 0 : Slot::find(slot)->panes.size(); };
    const std::size_t before = panes();
    void* state = pane_for(slot, at);
    const Given given = panes() == before ? Given::Again : Given::AgainWithNewPane;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    const std::int64_t last = std::min(last_end_of(at), reached);
    for (std::int64_t end = first_end_after(std::max(at, reached - lateness)); end <= last; end += slide) {
      if (const Outcome outcome = give_window(slot, end, given, writer); outcome != Outcome::Ok) return outcome;
    }
    return Outcome::Ok;
  }

  // Gives the window of a key that ends there, and drops the panes that are no longer needed.
  Outcome give(void* slot, std::int64_t end, OutputWriter& writer) {
    TimeKey* const kept = Slot::find(slot);
    if (kept == nullptr || kept->due != end) return Outcome::Ok;  // noted for an earlier life of the slot, or twice
    core.table().will_change(slot);
    std::vector<Pane>& panes = kept->panes;
    if (last_end_of(end - size) == end) {  // a window ends here
      if (const Outcome outcome = give_window(slot, end, Given::Complete, writer); outcome != Outcome::Ok) return outcome;
    }
    const auto kept_from = std::ranges::find_if(panes, [&](const Pane& each) { return kept_until(each) > end; });
    std::for_each(panes.begin(), kept_from, [&](const Pane& each) { core.drop(each.state); });
    panes.erase(panes.begin(), kept_from);
    if (panes.empty()) {
      Slot::drop(slot);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    kept->due = next_due(panes, end);
    due.note(kept->due, slot);
    return Outcome::Ok;
  }

  [[nodiscard]] Outcome advance(std::int64_t watermark, OutputWriter& writer) override {
    reached = std::max(reached, times.counted(std::clamp(watermark, kFirstTime, kLatestTime) + 1));
    return take_due(watermark == kEndOfTime ? kEndOfTime - 1 : reached,
                    [&](std::int64_t end, void* slot) { return give(slot, end, writer); });
  }

  // --- TimedState: per key how many panes (4), and of each its number (8) and state; when the key is due follows
  [[nodiscard]] std::uint64_t form() const noexcept override {
    return form_of(WindowKind::Time, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(slide),
                   core.layout() ^ time->form() ^ static_cast<std::uint64_t>(lateness) ^ times.form());
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(TimeKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Pane>& panes = Slot::get(slot).panes;
    writer.number(static_cast<std::uint32_t>(panes.size()));
    for (const Pane& each : panes) {
      writer.number(each.number);
      core.write(each.state, writer);
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t until) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without windows");
    TimeKey key;
    std::int64_t last = kNoWatermark;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto number = reader.number<std::int64_t>();
      if (number <= last || number < kFirstTime / pane || number > kLastTime / pane)
        throw StateError("exported state has a window at a time that there isn't");
      std::byte* const state = core.read(reader, slot != nullptr);
      if (slot != nullptr) key.panes.push_back({number, state});
      last = number;
    }
    if (slot == nullptr) return;
    key.due = next_due(key.panes, until);
    due.note(key.due, slot);
    Slot::put(slot, std::move(key));
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<TimeKey> key = Slot::take(slot);
    for (const Pane& each : key->panes) core.drop(each.state);
  }
  // Records in a row that aren't late; the index of one whose sum overflows, or -1.
  [[nodiscard]] std::ptrdiff_t take(const std::byte* records, std::size_t count) {
    const std::size_t stride = core.input().record_size();
    void* slots[WindowCore::kBatch];
    for (std::size_t first = 0; first < count; first += WindowCore::kBatch) {
      const std::size_t batch = std::min(WindowCore::kBatch, count - first);
      const std::byte* begin = records + first * stride;
      core.table().lookup(begin, batch, slots);
      for (std::size_t i = 0; i < batch; ++i) slots[i] = pane_for(slots[i], time_of(begin + i * stride));
      const std::ptrdiff_t failed = core.accumulators().update(begin, batch, slots);
      if (failed >= 0) return static_cast<std::ptrdiff_t>(first) + failed;
    }
    return -1;
  }

  const std::int64_t pane = std::gcd(size, slide);
};

}  // namespace

std::shared_ptr<Operator> make_time_window(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                           const std::vector<Aggregate>& aggregates) {
  return std::make_shared<TimeWindow>(ports, keys, options, aggregates);
}

}  // namespace rayelastic
