#include "rayelastic/operators/time/event_time.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "rayelastic/operators/time/splits.hpp"
#include "record/time_field.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kOnly = -1;  // the number of the split of a stream that tells of none

struct Split {
  std::int64_t reached = kNoWatermark;  // its greatest time so far
  bool waits = false;                   // its turn will come: it isn't idle before
  bool idle = false;
  Clock::time_point active = Clock::now();  // when its last record came; only with `idleness`
};

// `reached`: the greatest time so far. What was announced isn't kept: who goes on from it announces it again, for those downstream who don't.
class EventTime final : public Operator, public TimedState {
 public:
  EventTime(std::string name, const std::shared_ptr<const Schema>& schema, const std::string& field, std::int64_t late, Idleness when,
            bool with_splits, Ahead most)
      : Operator(std::move(name), {schema}, Schemas(most.ticks_per_second > 0 ? 2 : 1, schema)),
        time(*schema, field),
        lateness(late),
        stride(schema->record_size()),
        idleness(when),
        tells(with_splits),
        ahead(most),
        beyond("ValueError: the event time in field '" + field +
               "' is no number, or 2**62 of its units or more from 1970 (146 years of nanoseconds). Filter such tuples out, or use a "
               "coarser unit") {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    std::int64_t sent = 0;
    Split& split = now();
    wake(split, context);
    const auto send = [&](std::int64_t end) {
      const bool ok = sent == end || context->emit(0, in + static_cast<std::size_t>(sent) * stride, end - sent);
      sent = end;
      return ok;
    };
    const std::int64_t others = least(&split);
    const std::int64_t latest = limit();
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = time.of(in + static_cast<std::size_t>(i) * stride);
      if (at <= -kLatestTime || at >= kLatestTime) {
        context->fail(beyond);
        return REL_FAILED(i);
      }
      if (at > latest) {
        if (!send(i) || !context->emit(1, in + static_cast<std::size_t>(i) * stride, 1)) return REL_STOPPED;
        sent = i + 1;
        continue;
      }
      const std::int64_t watermark = behind(std::min(others, split.reached));
      if (at <= watermark && watermark > announced) {
        if (!send(i)) return REL_STOPPED;
        announce(watermark, context);
      }
      split.reached = std::max(split.reached, at);
    }
    reached = std::max(reached, split.reached);
    if (!send(n)) return REL_STOPPED;
    announce(behind(std::min(others, split.reached)), context);
    return 0;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    if (mark.kind == MarkKind::Watermark) return mark.value == kIdle;  // others end here
    if (mark.kind != MarkKind::Split) return true;
    if (tells) take(mark, context);
    return false;
  }
  void on_command(rel_context* context) override { look(context); }
  [[nodiscard]] bool takes_commands() const override { return idleness.after.count() > 0; }
  [[nodiscard]] StateTable* state() override { return this; }

 private:
  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kSplits = 0x7374696c7073;  // "splits"
    return tells ? hash_of(time.form() ^ kSplits) : time.form();
  }
  void write_common(StateWriter& writer) const override {
    if (!tells) return;
    writer.number(static_cast<std::uint32_t>(splits.size()));
    for (const auto& [number, split] : splits) {
      writer.number(number);
      writer.number(split.reached);
      writer.number(static_cast<std::uint8_t>(split.waits ? 1 : 0));
    }
  }
  void read_common(StateReader& reader, bool restored, bool /*all*/) override {
    if (!tells) return;
    for (auto count = reader.number<std::uint32_t>(); count > 0; --count) {
      const auto number = reader.number<std::int64_t>();
      const auto at = reader.number<std::int64_t>();
      const auto waits = reader.number<std::uint8_t>();
      if (waits > 1 || (at != kNoWatermark && (at < kFirstTime || at > kLastTime)))
        throw StateError("exported state has a split at a time that there isn't");
      if (restored) splits[number] = {.reached = at, .waits = waits == 1};
    }
  }

  // The latest time that a record may have now.
  [[nodiscard]] std::int64_t limit() const {
    if (ahead.ticks_per_second <= 0) return INT64_MAX;
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch() + ahead.most;
    return static_cast<std::int64_t>(std::min(now.count() * ahead.ticks_per_second, static_cast<double>(kLatestTime)));
  }
  [[nodiscard]] std::int64_t behind(std::int64_t at) const noexcept {
    return at == kNoWatermark || at == kEndOfTime ? kNoWatermark : at - lateness - 1;
  }
  // Of all splits that aren't idle, but one; kEndOfTime if there is none, kNoWatermark if nothing of one has come.
  [[nodiscard]] std::int64_t least(const Split* but = nullptr) const noexcept {
    std::int64_t found = kEndOfTime;
    for (const auto& [number, split] : splits) {
      if (&split != but && !split.idle) found = std::min(found, split.reached);
    }
    return found;
  }
  [[nodiscard]] Split& now() {
    if (current == nullptr) current = &splits.try_emplace(kOnly, Split{.reached = tells ? kNoWatermark : reached}).first->second;
    return *current;
  }
  // What has become known since the last mark.
  void announce(std::int64_t watermark, rel_context* context) {
    if (watermark <= announced) return;
    announced = watermark;
    context->mark({MarkKind::Watermark, announced});
  }
  void take(Mark mark, rel_context* context) {
    const std::int64_t number = split_of(mark);
    if (change_of(mark) != SplitChange::End) {
      Split& split = splits.try_emplace(number, Split{.waits = change_of(mark) == SplitChange::Waits}).first->second;
      if (change_of(mark) == SplitChange::Now) current = &split;
      return;
    }
    const auto ended = splits.find(number);
    if (ended == splits.end()) return;
    if (current == &ended->second) current = nullptr;
    splits.erase(ended);
    announce(behind(least()), context);
  }
  // A record has come.
  void wake(Split& split, rel_context* context) {
    if (idleness.after.count() == 0) return;
    active = split.active = Clock::now();
    split.idle = false;
    if (std::exchange(idle, false) && announced != kNoWatermark) context->mark({MarkKind::Watermark, announced});
  }
  // Splits become idle one after the other, as they were silent, also where somebody looks late.
  void leave_out(Clock::time_point looked, rel_context* context) {
    std::vector<Split*> silent;
    for (auto& [number, split] : splits) {
      const bool may_be_idle = !split.idle && (!split.waits || split.reached != kNoWatermark);
      if (may_be_idle && looked - split.active >= idleness.after) silent.push_back(&split);
    }
    std::ranges::sort(silent, {}, &Split::active);
    for (Split* const split : silent) {
      split->idle = true;
      announce(behind(least()), context);
    }
  }
  // Somebody looks after it.
  void look(rel_context* context) {
    const Clock::time_point looked = Clock::now();
    const Clock::duration since = looked - active;
    if (tells) leave_out(looked, context);
    if (idle || since < idleness.after || (tells && least() != kEndOfTime)) return;
    if (idleness.ticks_per_second <= 0) {
      idle = true;
      context->mark({MarkKind::Watermark, kIdle});
    } else if (reached != kNoWatermark) {
      const double passed = std::chrono::duration<double>(since).count() * idleness.ticks_per_second;
      announce(behind(reached) + static_cast<std::int64_t>(std::min(passed, static_cast<double>(kLongestSpan))), context);
    }
  }

  const TimeField time;
  const std::int64_t lateness;
  const std::size_t stride;
  const Idleness idleness;
  const bool tells;  // there are marks of splits
  const Ahead ahead;
  const std::string beyond;  // the message for a time that windows couldn't be counted with
  std::map<std::int64_t, Split> splits;
  Split* current = nullptr;  // whose records come
  std::int64_t announced = kNoWatermark;
  Clock::time_point active = Clock::now();  // when the last record came; only with `idleness`
  bool idle = false;                        // and nobody waits for it
};

}  // namespace

std::shared_ptr<Operator> make_event_time(std::string name, std::shared_ptr<const Schema> schema, const std::string& field,
                                          std::int64_t lateness, Idleness idleness, bool splits, Ahead ahead) try {
  if (idleness.after.count() < 0) throw std::invalid_argument("the time after which it is idle is negative");
  if (lateness < 0 || lateness > kLongestSpan) throw std::invalid_argument("the lateness is negative or too long");
  return std::make_shared<EventTime>(name, schema, field, lateness, idleness, splits, ahead);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
