// Windows by count: of a key's records size, one every slide.
#include <algorithm>
#include <numeric>
#include <utility>

#include "operators/time/pane_queue.hpp"
#include "operators/time/window_kinds.hpp"

namespace rayelastic {

namespace {

struct CountKey {
  std::uint64_t seen = 0;     // records
  std::byte* open = nullptr;  // the pane that gets the next record; null: a new one
  PaneQueue panes;            // full ones, no more than a window has
};

class CountWindow final : public Operator, public TimedState {
 public:
  using Outcome = WindowOutcome;

  CountWindow(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
              const std::vector<Aggregate>& aggregates)
      : Operator(ports.name, {ports.input}, {ports.output}, options.rest ? REL_ON_FINISH : 0),
        core(ports.input, ports.output, keys, 0, aggregates, options.ttl),
        size(static_cast<std::uint64_t>(options.size)),
        slide(static_cast<std::uint64_t>(options.slide)) {
    keep(&core.table(), nullptr);
  }
  ~CountWindow() override { Slot::drop_all(core.table()); }
  CountWindow(const CountWindow&) = delete;
  CountWindow& operator=(const CountWindow&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    const std::size_t stride = core.input().record_size();
    core.table().begin_run(context->watermark(), static_cast<std::size_t>(n), [this](void* slot) {
      if (Slot::find(slot) != nullptr) forget(slot);
    });
    void* slots[WindowCore::kBatch];
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      const auto at = static_cast<std::size_t>(i) % WindowCore::kBatch;
      if (at == 0) core.table().lookup(in, std::min(WindowCore::kBatch, static_cast<std::size_t>(n - i)), slots);
      const Outcome outcome = take(slots[at], in, writer);
      if (outcome == Outcome::Failed) return failed(core, i, context);
      if (outcome == Outcome::Stopped) return REL_STOPPED;
    }
    publish();
    return writer.result();
  }
  std::int64_t finish(std::byte* out, std::int64_t capacity, rel_context* context) override {
    OutputWriter writer(core.output(), out, capacity, context);
    Outcome outcome = Outcome::Ok;
    core.table().for_each([&](const StringView&, std::byte* slot) {
      core.table().will_change(slot);
      if (outcome == Outcome::Ok) outcome = give_rest(slot, writer);
    });
    return outcome == Outcome::Failed ? failed(core, 0, context) : writer.result();
  }
  [[nodiscard]] StateTable* state() override { return this; }

 private:
  using Slot = OwnedInSlot<CountKey>;

  // Windows of a key that were given so far.
  [[nodiscard]] std::uint64_t given(const CountKey& key) const noexcept { return key.seen < size ? 0 : (key.seen - size) / slide + 1; }

  Outcome take(void* slot, const std::byte* record, OutputWriter& writer) {
    CountKey& key = Slot::obtain(slot);
    if (key.open == nullptr) key.open = core.make();
    void* const state = key.open;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    ++key.seen;
    if (key.seen % pane != 0) return Outcome::Ok;
    const bool full = key.seen >= size && (key.seen - size) % slide == 0;
    if (pane == size) {  // one pane a window: no need for a queue
      const bool ok = !full || core.give(slot, key.open, nullptr, writer);
      core.accumulators().clear(key.open);
      return outcome_of(core, ok);
    }
    if (key.panes.size() == size / pane && !key.panes.pop(core)) return Outcome::Failed;
    if (!key.panes.push(core, std::exchange(key.open, nullptr))) return Outcome::Failed;
    return full ? give(slot, key, writer) : Outcome::Ok;
  }

  // What is in the panes of a key, and in the one that isn't full.
  Outcome give(void* slot, CountKey& key, OutputWriter& writer) {
    std::byte* total = core.make();
    const bool fits = key.panes.add_total(core, total) && (key.open == nullptr || core.accumulators().merge(total, key.open));
    const bool ok = !fits || core.give(slot, total, nullptr, writer);
    core.drop(total);
    return fits ? outcome_of(core, ok) : Outcome::Failed;
  }

  // At the end: the next window of a key, as far as it got, if it has records that no window had.
  Outcome give_rest(void* slot, OutputWriter& writer) {
    CountKey& key = *Slot::find(slot);
    const std::uint64_t windows = given(key);
    const std::uint64_t start = windows * slide;
    if (start >= key.seen || (windows > 0 && start - slide + size >= key.seen)) return Outcome::Ok;
    while (key.panes.size() > (key.seen - start) / pane) {
      if (!key.panes.pop(core)) return Outcome::Failed;
    }
    return give(slot, key, writer);
  }

  // --- TimedState: per key records seen (8), 1 if a pane is open (1) and its state, then the full panes
  [[nodiscard]] std::uint64_t form() const noexcept override { return form_of(WindowKind::Count, size, slide, core.layout()); }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return core.bytes() + TimedState::size() * sizeof(CountKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const CountKey& key = Slot::get(slot);
    writer.number(key.seen);
    writer.number(static_cast<std::uint8_t>(key.open != nullptr ? 1 : 0));
    if (key.open != nullptr) core.write(key.open, writer);
    key.panes.write(core, writer);
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    CountKey key;
    key.seen = reader.number<std::uint64_t>();
    if (const auto open = reader.number<std::uint8_t>(); open > 1) {
      throw StateError("exported state has a damaged window");
    } else if (open == 1) {
      key.open = core.read(reader, slot != nullptr);
    }
    const std::uint64_t full = pane == size ? 0 : std::min(key.seen, size) / pane;
    if (key.panes.read(core, reader, slot != nullptr) != full) throw StateError("exported state has a window of another size");
    if (slot != nullptr) Slot::put(slot, std::move(key));
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<CountKey> key = Slot::take(slot);
    if (key->open != nullptr) core.drop(key->open);
    key->panes.clear(core);
  }

  WindowCore core;
  const std::uint64_t size;
  const std::uint64_t slide;
  const std::uint64_t pane = std::gcd(size, slide);  // records
};

}  // namespace

std::shared_ptr<Operator> make_count_window(const WindowPorts& ports, const std::vector<std::string>& keys, const WindowOptions& options,
                                            const std::vector<Aggregate>& aggregates) {
  return std::make_shared<CountWindow>(ports, keys, options, aggregates);
}

}  // namespace rayelastic
