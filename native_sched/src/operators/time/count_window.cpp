// Windows by count: of a key's records size, one every slide.
#include <algorithm>
#include <numeric>
#include <utility>

#include "operators/time/pane_queue.hpp"
#include "operators/time/window_kinds.hpp"
#include "state/timed_state.hpp"

namespace rayelastic {

namespace {

struct CountKey {
  std::uint64_t seen = 0;     // records
  std::byte* open = nullptr;  // the pane that gets the next record; null: a new one
  PaneQueue panes;            // full ones, no more than a window has
};

struct CountWindow final : TimedState {
  WindowCore core;
  std::uint64_t size;
  std::uint64_t slide;
  bool rest;
  std::uint64_t pane = std::gcd(size, slide);  // records

  CountWindow(WindowCore made, const WindowOptions& options)
      : core(std::move(made)),
        size(static_cast<std::uint64_t>(options.size)),
        slide(static_cast<std::uint64_t>(options.slide)),
        rest(options.rest) {
    keep(&core.table(), nullptr);
  }
  CountWindow(const CountWindow&) = delete;
  CountWindow& operator=(const CountWindow&) = delete;
  ~CountWindow() override {
    core.table().for_each([](const StringView&, std::byte* slot) { delete kept_in<CountKey>(slot); });
  }

  // Windows of a key that were given so far.
  [[nodiscard]] std::uint64_t given(const CountKey& key) const noexcept { return key.seen < size ? 0 : (key.seen - size) / slide + 1; }

  enum class Outcome : std::uint8_t { Ok, Stopped, Failed };

  Outcome take(void* slot, const std::byte* record, OutputWriter& writer) {
    CountKey*& kept = kept_in<CountKey>(slot);
    if (kept == nullptr) kept = new CountKey;
    CountKey& key = *kept;
    if (key.open == nullptr) key.open = core.make();
    void* const state = key.open;
    if (core.accumulators().update(record, 1, &state) >= 0) return Outcome::Failed;
    ++key.seen;
    if (key.seen % pane != 0) return Outcome::Ok;
    const bool full = key.seen >= size && (key.seen - size) % slide == 0;
    if (pane == size) {  // one pane a window: no need for a queue
      const bool ok = !full || core.give(slot, key.open, nullptr, writer);
      core.accumulators().clear(key.open);
      return outcome_of<Outcome>(core, ok);
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
    return fits ? outcome_of<Outcome>(core, ok) : Outcome::Failed;
  }

  // At the end: the next window of a key, as far as it got, if it has records that no window had.
  Outcome give_rest(void* slot, OutputWriter& writer) {
    CountKey& key = *kept_in<CountKey>(slot);
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
    const auto& key = kept_in<CountKey>(slot);
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
    if (slot != nullptr) kept_in<CountKey>(slot) = new CountKey(std::move(key));
  }

  void forget(void* slot) noexcept override {
    CountKey* const key = std::exchange(kept_in<CountKey>(slot), nullptr);
    if (key->open != nullptr) core.drop(key->open);
    key->panes.clear(core);
    delete key;
  }
};

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) {
  auto& window = *static_cast<CountWindow*>(opaque);
  OutputWriter writer(window.core.output(), out, capacity, context);
  CountWindow::Outcome outcome = CountWindow::Outcome::Ok;
  if (n == 0) {
    window.core.table().for_each([&](const StringView&, std::byte* slot) {
      window.core.table().will_change(slot);
      if (outcome == CountWindow::Outcome::Ok) outcome = window.give_rest(slot, writer);
    });
    return outcome == CountWindow::Outcome::Failed ? failed(window.core, 0, context) : writer.result();
  }
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t stride = window.core.input().record_size();
  window.core.table().begin_run(context->watermark(), static_cast<std::size_t>(n), [&window](void* slot) {
    if (kept_in<CountKey>(slot) != nullptr) window.forget(slot);
  });
  void* slots[WindowCore::kBatch];
  for (std::int64_t i = 0; i < n; ++i, record += stride) {
    const auto at = static_cast<std::size_t>(i) % WindowCore::kBatch;
    if (at == 0) window.core.table().lookup(record, std::min(WindowCore::kBatch, static_cast<std::size_t>(n - i)), slots);
    outcome = window.take(slots[at], record, writer);
    if (outcome == CountWindow::Outcome::Failed) return failed(window.core, i, context);
    if (outcome == CountWindow::Outcome::Stopped) return REL_STOPPED;
  }
  window.publish();
  return writer.result();
}

}  // namespace

void make_count_window(OperatorSpec& spec, const std::vector<std::string>& keys, const WindowOptions& options,
                       const std::vector<Aggregate>& aggregates) {
  spec.process = process;
  spec.flags = options.rest ? static_cast<std::uint32_t>(REL_ON_FINISH) : 0;
  auto window = std::make_shared<CountWindow>(WindowCore(spec.input, spec.output, keys, 0, aggregates, options.ttl), options);
  spec.store = window;
  spec.state = std::move(window);
}

}  // namespace rayelastic
