// Sessions: records of a key that are at most a gap of event time apart from the next.
#include <algorithm>
#include <utility>
#include <vector>

#include "operators/time/window_kinds.hpp"

namespace rayelastic {

namespace {

struct Session {
  std::int64_t start;
  std::int64_t last;
  std::byte* state;
  bool given = false;  // once at least, and kept for late records
};

struct SessionKey {
  std::vector<Session> sessions;  // in order, more than a gap apart; those whose end is reached before those that are open
  std::int64_t due = kEndOfTime;  // when one has ended, or isn't kept any longer
};

// `reached`: the watermark.
class SessionWindow final : public TimedWindow {
 public:
  SessionWindow(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                const std::vector<Aggregate>& aggregates)
      : TimedWindow(ports, keys, options, aggregates), gap(options.size) {}
  ~SessionWindow() override { Slot::drop_all(core.table()); }
  SessionWindow(const SessionWindow&) = delete;
  SessionWindow& operator=(const SessionWindow&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    const std::size_t stride = core.input().record_size();
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      void* slot = nullptr;
      core.table().lookup(in, 1, &slot);
      const Outcome outcome = take(slot, in, writer);
      if (outcome == Outcome::Failed) return failed(core, i, context);
      if (outcome == Outcome::Stopped) return REL_STOPPED;
      if (outcome == Outcome::Late && !context->emit(1, in, 1)) return REL_STOPPED;
    }
    publish();
    return writer.result();
  }

 private:
  using Slot = OwnedInSlot<SessionKey>;

  [[nodiscard]] std::int64_t end_of(const Session& each) const noexcept { return each.last + gap; }
  // When there is something to do for a key, of which what ends up to a time was given.
  [[nodiscard]] std::int64_t next_due(const std::vector<Session>& sessions, std::int64_t now) const noexcept {
    const auto open = std::ranges::find_if(sessions, [&](const Session& each) { return end_of(each) > now; });
    const std::int64_t kept = end_of(sessions.front()) + (open == sessions.begin() ? 0 : lateness);
    return open == sessions.end() ? kept : std::min(kept, end_of(*open));
  }

  Outcome give_session(void* slot, Session& session, bool corrected, OutputWriter& writer) {
    const std::int64_t bounds[] = {session.start, end_of(session)};
    session.given = true;
    return outcome_of(core, core.give(slot, session.state, bounds, writer, corrected));
  }

  Outcome take(void* slot, const std::byte* record, OutputWriter& writer) {
    const std::int64_t at = time.of(record);
    SessionKey* kept = Slot::find(slot);
    std::vector<Session>* sessions = kept == nullptr ? nullptr : &kept->sessions;
    const auto is_near = [&](const Session& each) { return each.last + gap >= at && each.start - gap <= at; };
    const bool joins = sessions != nullptr && std::ranges::any_of(*sessions, is_near);
    if (!joins && at + gap + lateness <= reached) {
      if (kept == nullptr) core.table().remove(slot);
      return Outcome::Late;
    }
    kept = &Slot::obtain(slot);
    sessions = &kept->sessions;
    auto first = std::ranges::find_if(*sessions, [&](const Session& each) { return each.last + gap >= at; });
    if (!joins) {
      first = sessions->insert(first, {at, at, core.make(), false});
    } else {
      first->start = std::min(first->start, at);
      first->last = std::max(first->last, at);
    }
    void* const state = first->state;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    if (const auto second = first + 1; second != sessions->end() && first->last + gap >= second->start) {
      if (!core.accumulators().merge(first->state, second->state)) return Outcome::Failed;
      first->last = second->last;
      first->given |= second->given;
      core.drop(second->state);
      sessions->erase(second);
    }
    const std::int64_t next = next_due(*sessions, reached);
    if (next < kept->due) {
      kept->due = next;
      due.note(next, slot);
    }
    return end_of(*first) <= reached ? give_session(slot, *first, first->given, writer) : Outcome::Ok;
  }

  // Gives the session of a key that ends now, drops what isn't kept any longer, and looks when the next one ends.
  Outcome give(void* slot, std::int64_t now, OutputWriter& writer) {
    SessionKey* const kept = Slot::find(slot);
    if (kept == nullptr || kept->due != now) return Outcome::Ok;  // noted for an earlier life of the slot, or twice
    core.table().will_change(slot);
    std::vector<Session>& sessions = kept->sessions;
    if (const auto ended = std::ranges::find_if(sessions, [&](const Session& each) { return end_of(each) == now; });
        ended != sessions.end()) {
      if (const Outcome outcome = give_session(slot, *ended, ended->given, writer); outcome != Outcome::Ok) return outcome;
    }
    const auto kept_from = std::ranges::find_if(sessions, [&](const Session& each) { return end_of(each) + lateness > now; });
    std::for_each(sessions.begin(), kept_from, [&](const Session& each) { core.drop(each.state); });
    sessions.erase(sessions.begin(), kept_from);
    if (sessions.empty()) {
      Slot::drop(slot);
      core.table().remove(slot);
      return Outcome::Ok;
    }
    kept->due = next_due(sessions, now);
    due.note(kept->due, slot);
    return Outcome::Ok;
  }

  [[nodiscard]] Outcome advance(std::int64_t to, OutputWriter& writer) override {
    reached = std::max(reached, to);
    Outcome outcome = Outcome::Ok;
    (void)due.take(reached, [&](std::int64_t now, void* slot) {
      outcome = give(slot, now, writer);
      return outcome == Outcome::Ok;
    });
    return outcome;
  }

  // --- TimedState: per key how many sessions (4), and of each its first and its last time (8 each), with a lateness whether it was given (1),
  // and its state
  [[nodiscard]] std::uint64_t form() const noexcept override {
    return form_of(WindowKind::Session, static_cast<std::uint64_t>(gap), static_cast<std::uint64_t>(lateness), core.layout() ^ time.form());
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(SessionKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Session>& sessions = Slot::get(slot).sessions;
    writer.number(static_cast<std::uint32_t>(sessions.size()));
    for (const Session& each : sessions) {
      writer.number(each.start);
      writer.number(each.last);
      if (lateness > 0) writer.number(static_cast<std::uint8_t>(each.given ? 1 : 0));
      core.write(each.state, writer);
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t until) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without sessions");
    SessionKey key;
    std::int64_t free_from = kFirstTime;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto start = reader.number<std::int64_t>();
      const auto last = reader.number<std::int64_t>();
      if (start < free_from || last < start || last > kLastTime)
        throw StateError("exported state has a session at a time that there isn't");
      const bool given = lateness > 0 && reader.number<std::uint8_t>() != 0;
      std::byte* const state = core.read(reader, slot != nullptr);
      if (slot != nullptr) key.sessions.push_back({start, last, state, given});
      free_from = last + gap + 1;
    }
    if (slot == nullptr) return;
    key.due = next_due(key.sessions, until);
    due.note(key.due, slot);
    Slot::put(slot, std::move(key));
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<SessionKey> key = Slot::take(slot);
    for (const Session& each : key->sessions) core.drop(each.state);
  }

  const std::int64_t gap;
};

}  // namespace

std::shared_ptr<Operator> make_session_window(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                              const std::vector<Aggregate>& aggregates) {
  return std::make_shared<SessionWindow>(ports, keys, options, aggregates);
}

}  // namespace rayelastic
