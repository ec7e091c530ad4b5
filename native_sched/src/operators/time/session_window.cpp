// Sessions: records of a key that are at most a gap of event time apart from the next.
#include <algorithm>
#include <utility>
#include <vector>

#include "operators/time/window_kinds.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

namespace {

struct Session {
  std::int64_t start;
  std::int64_t last;
  std::byte* state;
};

struct SessionKey {
  std::vector<Session> sessions;  // in order, more than a gap apart
  std::int64_t due = kEndOfTime;  // when the first has ended, at the latest
};

// `reached`: the watermark.
struct SessionWindow final : TimedState {
  WindowCore core;
  TimeField time;
  std::int64_t gap;
  DueKeys due = {};

  SessionWindow(WindowCore made, TimeField field, std::int64_t size) : core(std::move(made)), time(field), gap(size) {
    keep(&core.table(), nullptr);
  }
  SessionWindow(const SessionWindow&) = delete;
  SessionWindow& operator=(const SessionWindow&) = delete;
  ~SessionWindow() override {
    core.table().for_each([](const StringView&, std::byte* slot) { delete kept_in<SessionKey>(slot); });
  }

  enum class Outcome : std::uint8_t { Ok, Late, Stopped, Failed };

  Outcome take(void* slot, const std::byte* record) {
    const std::int64_t at = time.of(record);
    SessionKey*& kept = kept_in<SessionKey>(slot);
    std::vector<Session>* sessions = kept == nullptr ? nullptr : &kept->sessions;
    const auto is_near = [&](const Session& each) { return each.last + gap >= at && each.start - gap <= at; };
    const bool joins = sessions != nullptr && std::ranges::any_of(*sessions, is_near);
    if (!joins && at + gap <= reached) {
      if (kept == nullptr) core.table().remove(slot);
      return Outcome::Late;
    }
    if (kept == nullptr) kept = new SessionKey;
    sessions = &kept->sessions;
    auto first = std::ranges::find_if(*sessions, [&](const Session& each) { return each.last + gap >= at; });
    if (!joins) {
      first = sessions->insert(first, {at, at, core.make()});
    } else {
      first->start = std::min(first->start, at);
      first->last = std::max(first->last, at);
    }
    void* const state = first->state;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    if (const auto second = first + 1; second != sessions->end() && first->last + gap >= second->start) {
      if (!core.accumulators().merge(first->state, second->state)) return Outcome::Failed;
      first->last = second->last;
      core.drop(second->state);
      sessions->erase(second);
    }
    const std::int64_t ends = sessions->front().last + gap;
    if (ends < kept->due) {
      kept->due = ends;
      due.note(ends, slot);
    }
    return Outcome::Ok;
  }

  // Gives the first session of a key if it has ended, and looks when the next one may have.
  Outcome give(void* slot, std::int64_t now, OutputWriter& writer) {
    SessionKey* const kept = kept_in<SessionKey>(slot);
    if (kept == nullptr || kept->due != now) return Outcome::Ok;  // noted for an earlier life of the slot, or twice
    const Session first = kept->sessions.front();
    if (first.last + gap == now) {
      const std::int64_t bounds[] = {first.start, first.last + gap};
      if (!core.give(slot, first.state, bounds, writer)) return Outcome::Stopped;
      core.drop(first.state);
      kept->sessions.erase(kept->sessions.begin());
    }
    if (kept->sessions.empty()) {
      delete std::exchange(kept_in<SessionKey>(slot), nullptr);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    kept->due = kept->sessions.front().last + gap;
    due.note(kept->due, slot);
    return Outcome::Ok;
  }

  Outcome advance(std::int64_t to, OutputWriter& writer) {
    reached = std::max(reached, to);
    Outcome outcome = Outcome::Ok;
    (void)due.take(reached, [&](std::int64_t now, void* slot) {
      outcome = give(slot, now, writer);
      return outcome == Outcome::Ok;
    });
    return outcome;
  }

  // --- TimedState: per key how many sessions (4), and of each its first and its last time (8 each) and state
  [[nodiscard]] std::uint64_t form() const noexcept override {
    return form_of(WindowKind::Session, static_cast<std::uint64_t>(gap), 0, core.layout() ^ time.form());
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(SessionKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Session>& sessions = kept_in<SessionKey>(slot).sessions;
    writer.number(static_cast<std::uint32_t>(sessions.size()));
    for (const Session& each : sessions) {
      writer.number(each.start);
      writer.number(each.last);
      core.write(each.state, writer);
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without sessions");
    SessionKey key;
    std::int64_t free_from = kFirstTime;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto start = reader.number<std::int64_t>();
      const auto last = reader.number<std::int64_t>();
      if (start < free_from || last < start || last > kLastTime)
        throw StateError("exported state has a session at a time that there isn't");
      std::byte* const state = core.read(reader, slot != nullptr);
      if (slot != nullptr) key.sessions.push_back({start, last, state});
      free_from = last + gap + 1;
    }
    if (slot == nullptr) return;
    key.due = key.sessions.front().last + gap;
    due.note(key.due, slot);
    kept_in<SessionKey>(slot) = new SessionKey(std::move(key));
  }

  void forget(void* slot) noexcept override {
    SessionKey* const key = std::exchange(kept_in<SessionKey>(slot), nullptr);
    for (const Session& each : key->sessions) core.drop(each.state);
    delete key;
  }
};

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) {
  auto& window = *static_cast<SessionWindow*>(opaque);
  using Outcome = SessionWindow::Outcome;
  if (n == 0) {
    OutputWriter writer(window.core.output(), out, capacity, context);
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
    void* slot = nullptr;
    window.core.table().lookup(record, 1, &slot);
    const Outcome outcome = window.take(slot, record);
    if (outcome == Outcome::Failed) return failed(window.core, i, context);
    if (outcome == Outcome::Late && !context->emit(1, record, 1)) return REL_STOPPED;
  }
  window.publish();
  return 0;
}

}  // namespace

void make_session_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                         const std::vector<Aggregate>& aggregates) {
  spec.process = process;
  spec.flags = REL_ON_FINISH | REL_ON_WATERMARK;
  auto window = std::make_shared<SessionWindow>(WindowCore(spec.input, spec.output, keys, 2, aggregates),
                                                TimeField(*spec.input, options.time, options.shift), options.size);
  spec.store = window;
  spec.state = std::move(window);
}

}  // namespace rayelastic
