#include "rayelastic/operators/time/process.hpp"

#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operators/time/process_calls.hpp"
#include "record/time_field.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

constexpr std::int64_t kOver = INT64_MIN;         // in place of an expiry: it was reached when the input had ended, and only on_end is left
constexpr std::uint32_t kMostAfterEnd = 100'000;  // timers that those of a key set once the input has ended: more go on for ever

using Outcome = ProcessCalls::Outcome;

// `reached`: the watermark.
class ProcessOperator final : public Operator, public TimedState {
 public:
  ProcessOperator(std::string name, const ProcessSchemas& schemas, const std::vector<std::string>& keys, const ProcessMethods& called,
                  ProcessOptions given, std::shared_ptr<void> owner)
      : Operator(std::move(name), {schemas.input}, outputs_of(schemas, given),
                 given.time.empty() ? static_cast<std::uint32_t>(REL_ON_FINISH) : REL_ON_FINISH | REL_ON_WATERMARK),
        options(std::move(given)),
        methods(called),
        input(schemas.input),
        output(schemas.output),
        moment(schemas.moment),
        owner_(std::move(owner)),
        table(input, keys, slot_size(), std::vector<std::byte>(slot_size())),
        moment_record(moment->record_size()) {
    if (!options.time.empty()) time.emplace(*input, options.time, options.shift);
    for (std::size_t i = 0; i < keys.size(); ++i) moment_keys.push_back(&moment->fields()[i]);
    keep(&table, time.has_value() ? &waiting : nullptr);
  }
  ProcessOperator(const ProcessOperator&) = delete;
  ProcessOperator& operator=(const ProcessOperator&) = delete;
  ~ProcessOperator() override {
    table.for_each([](const StringView&, std::byte* slot) {
      if (ProcessKey* const key = kept(slot); key != nullptr) key->~ProcessKey();
    });
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    ProcessCalls calls(*context, *output, out, static_cast<std::size_t>(capacity), true);
    const std::size_t stride = input->record_size();
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      if (!time.has_value()) {
        const std::int64_t now = options.now();
        Outcome outcome = run(calls, now);
        if (outcome == Outcome::Ok) outcome = take(calls, in, now);
        if (outcome != Outcome::Ok) return done(calls, outcome, i, context);
      } else if (const std::int64_t at = time->of(in); at > reached) {
        waiting.push(in, at, 0);
      } else if (!context->emit(1, in, 1)) {
        return REL_STOPPED;
      }
    }
    return done(calls, Outcome::Ok, 0, context);
  }
  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) override {
    ProcessCalls calls(*context, *output, out, static_cast<std::size_t>(capacity), true);
    if (watermark == kEndOfTime) return done(calls, end(calls), 0, context);
    reached = std::max(reached, watermark);
    const std::int64_t result = done(calls, run(calls, watermark), 0, context);
    if (result == 0) context->mark({MarkKind::Watermark, watermark});
    return result;
  }
  // By the clock: timers come though nothing else does.
  void on_command(rel_context* context) override {
    constexpr std::size_t kRecords = 256;
    aside.resize(kRecords * output->record_size());
    ProcessCalls calls(*context, *output, aside.data(), kRecords, false);
    const Outcome outcome = run(calls, options.now());
    publish();
    if (outcome == Outcome::Failed) {
      context->fail(calls.problem().empty() ? "a timer's call failed" : calls.problem());
    } else if (outcome == Outcome::Ok) {
      (void)calls.submit();  // whoever has to stop knows it
    }
  }
  [[nodiscard]] bool takes_commands() const override { return !time.has_value(); }
  [[nodiscard]] StateTable* state() override { return this; }

 private:
  static Schemas outputs_of(const ProcessSchemas& schemas, const ProcessOptions& options) {
    return options.time.empty() ? Schemas{schemas.output} : Schemas{schemas.output, schemas.input};
  }

  // What the call returns; the operator's state may be read from now on.
  [[nodiscard]] std::int64_t done(ProcessCalls& calls, Outcome outcome, std::int64_t index, rel_context* context) {
    wheel.tidy(is_used);
    publish();
    if (outcome == Outcome::Failed) {
      context->fail(calls.problem());
      return REL_FAILED(index);
    }
    return outcome == Outcome::Ok && calls.submit() ? 0 : REL_STOPPED;
  }

  [[nodiscard]] std::size_t slot_size() const noexcept { return sizeof(ProcessKey) + options.initial.size(); }
  // What there is of a key; null of one that is new, or forgotten.
  [[nodiscard]] static ProcessKey* kept(void* slot) noexcept {
    auto* const key = static_cast<ProcessKey*>(slot);
    return key->is_kept != 0 ? key : nullptr;
  }
  // An expiry stands among the timers, with a mark at the address of its key's slot.
  [[nodiscard]] static void* expiry_of(void* slot) noexcept { return static_cast<std::byte*>(slot) + 1; }
  [[nodiscard]] static bool is_expiry(const TimerWheel::Timer& timer) noexcept {
    return reinterpret_cast<std::uintptr_t>(timer.of) % 2 != 0;
  }
  [[nodiscard]] static void* slot_of(const TimerWheel::Timer& timer) noexcept {
    return static_cast<std::byte*>(timer.of) - (is_expiry(timer) ? 1 : 0);
  }
  [[nodiscard]] static bool is_used(const TimerWheel::Timer& timer) {
    const ProcessKey* const key = kept(slot_of(timer));
    return key != nullptr && (is_expiry(timer) ? key->expires == timer.at : key->timers.contains(timer.at));
  }
  [[nodiscard]] RecordShape shape() const noexcept { return {options.initial.size(), options.texts, options.checks}; }
  [[nodiscard]] ProcessCalls::Tables tables() noexcept { return {wheel, table.texts(), options.ticks_per_second, ended}; }

  ProcessKey& begin(void* slot) const {
    auto* const key = new (slot) ProcessKey;
    begin_state(*key);
    return *key;
  }
  void begin_state(ProcessKey& key) const { std::memcpy(key.state(), options.initial.data(), options.initial.size()); }
  void clear_texts(ProcessKey& key) noexcept {
    for (const std::size_t offset : options.texts) table.texts().clear(*reinterpret_cast<StringView*>(key.state() + offset));
  }

  Outcome called(ProcessCalls& calls, rel_process method, const std::byte* record, void* slot, std::int64_t now, std::int64_t first) {
    table.will_change(slot);
    ProcessKey& key = *kept(slot);
    ProcessCalls::Tables used = tables();
    const Outcome outcome = calls.call(method, record, slot, key, now, first, used);
    const Explain& why = method == methods.on_tuple ? options.why_tuple : options.why_moment;
    if (outcome == Outcome::Failed && calls.problem().empty() && why) calls.fail(why(record));
    if (calls.gone() && method != methods.on_end) {
      drop(slot);
    } else if (calls.forgotten()) {
      clear_texts(key);
      begin_state(key);
    }
    return outcome;
  }

  Outcome take(ProcessCalls& calls, const std::byte* record, std::int64_t at) {
    void* slot = nullptr;
    table.lookup(record, 1, &slot);
    if (kept(slot) != nullptr && kept(slot)->expires == kOver) forget(slot);
    const bool fresh = kept(slot) == nullptr;
    ProcessKey& key = fresh ? begin(slot) : *kept(slot);
    if (fresh || !options.since_first) key.touched = at;
    if (fresh) will_expire(slot, key);
    return called(calls, methods.on_tuple, record, slot, at, at);
  }

  // The record that the methods get which are called with no tuple.
  const std::byte* moment_of(const void* slot, std::int64_t at) {
    std::ranges::fill(moment_record, std::byte{0});
    table.extractor().restore(KeyedState::key_of(slot), *moment, moment_keys, moment_record.data());
    const Field& field = moment->fields().back();
    TimeField::write(field.type, at - options.shift, moment_record.data() + field.offset);
    return moment_record.data();
  }

  void will_expire(void* slot, ProcessKey& key) {
    if (options.ttl == 0 || __builtin_add_overflow(key.touched, options.ttl, &key.expires)) return;
    wheel.push(key.expires, expiry_of(slot));
  }

  // Behind all that is due at the last tick of a time to live. When the input has ended no key is forgotten, but its later timers are.
  void expire(void* slot, std::int64_t at) {
    ProcessKey* const key = kept(slot);
    if (key == nullptr || key->expires != at) return;  // of an earlier life of the slot
    table.will_change(slot);
    if (key->timers.contains(at)) {
      wheel.push(at, expiry_of(slot));
    } else if (key->touched > at - options.ttl) {
      will_expire(slot, *key);
    } else if (ended) {
      key->timers.clear();
      key->expires = kOver;
    } else {
      drop(slot);
    }
  }

  // The key is no more.
  void drop(void* slot) {
    wheel.drop(kept(slot)->timers.size() + (options.ttl != 0 ? 1 : 0));
    forget(slot);
    table.remove(slot);
  }

  Outcome fire(ProcessCalls& calls, const TimerWheel::Timer& timer) {
    if (is_expiry(timer)) {
      expire(slot_of(timer), timer.at);
      return Outcome::Ok;
    }
    ProcessKey* const key = kept(timer.of);
    if (key != nullptr) table.will_change(timer.of);
    if (key == nullptr || !key->timers.remove(timer.at)) return Outcome::Ok;  // taken back, or of an earlier life of the slot
    const std::size_t left = key->timers.size();
    const Outcome outcome = called(calls, methods.on_time, moment_of(timer.of, timer.at), timer.of, timer.at, timer.at + 1);
    if (!ended || outcome != Outcome::Ok || kept(timer.of) == nullptr || key->timers.size() <= left) return outcome;
    key->after_end += static_cast<std::uint32_t>(key->timers.size() - left);
    if (key->after_end <= kMostAfterEnd) return outcome;
    calls.fail("RuntimeError: timers of a key set further ones for ever, and the input has ended: look at out.ended before you set one");
    return Outcome::Failed;
  }

  // What a timer will need is on its way to the cache before it is due: its key's slot, then the times of its timers.
  static void fetch(const TimerWheel::Timer& timer, std::size_t level) noexcept {
    if (level > 1 || is_expiry(timer)) return;
    if (level == 0) {
      __builtin_prefetch(static_cast<const ProcessKey*>(timer.of)->timers.next(), 1);
      return;
    }
    const auto* const slot = static_cast<const std::byte*>(timer.of);
    for (std::ptrdiff_t line = -64; line < 128; line += 64) __builtin_prefetch(slot + line, 1);
  }

  // Does what is due at a time. The record that it failed on, if it is one, is at the top of those that wait.
  Outcome run(ProcessCalls& calls, std::int64_t until) {
    while (true) {
      const bool has_tuple = time.has_value() && waiting.is_due(until);
      TimerWheel::Timer timer;
      Outcome outcome = Outcome::Ok;
      if (wheel.pop(has_tuple ? waiting.top().due - 1 : until, timer, fetch)) {
        outcome = fire(calls, timer);
      } else if (has_tuple) {
        outcome = take(calls, waiting.top().record, waiting.top().time);
        waiting.pop();
      } else {
        return Outcome::Ok;
      }
      if (outcome != Outcome::Ok) return outcome;
    }
  }

  Outcome end(ProcessCalls& calls) {
    ended = true;
    Outcome outcome = time.has_value() ? run(calls, kEndOfTime) : Outcome::Ok;
    if (methods.on_end == nullptr) return outcome;
    table.for_each([&](const StringView&, std::byte* slot) {
      if (outcome == Outcome::Ok) outcome = called(calls, methods.on_end, moment_of(slot, options.shift), slot, kEndOfTime, kEndOfTime);
    });
    return outcome;
  }

  // --- TimedState: per key its state, when it was touched (8), how many timers (8), and their times in order
  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kTouched = 0x64656863756f74;  // "touched"
    std::uint64_t digest = hash_of(options.initial.size() ^ kTouched);
    for (const std::size_t offset : options.texts) digest = hash_of(digest ^ offset);
    return time.has_value() ? hash_of(digest ^ time->form()) : digest;
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return 2 * wheel.bytes(); }

  void write(const void* slot, StateWriter& writer) const override {
    const auto& key = *static_cast<const ProcessKey*>(slot);
    writer.record(key.state(), shape());
    writer.number(key.touched);
    writer.number(static_cast<std::uint64_t>(key.timers.size()));
    for (const std::int64_t at : key.timers.times()) writer.number(at);
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    const std::byte* const exported = reader.record(shape());
    const auto touched = reader.number<std::int64_t>();
    const auto count = reader.number<std::uint64_t>();
    ProcessKey* key = nullptr;
    if (slot != nullptr) {
      key = &begin(slot);
      shape().restore(exported, key->state(), table.texts());
      key->touched = touched;
      will_expire(slot, *key);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto at = reader.number<std::int64_t>();
      if (key != nullptr && key->timers.add(at)) wheel.push(at, slot);
    }
  }

  void forget(void* slot) noexcept override {
    ProcessKey& key = *kept(slot);
    clear_texts(key);
    key.~ProcessKey();
    new (slot) std::uint64_t(0);
  }

  const ProcessOptions options;
  const ProcessMethods methods;
  const std::shared_ptr<const Schema> input;
  const std::shared_ptr<const Schema> output;
  const std::shared_ptr<const Schema> moment;
  const std::shared_ptr<void> owner_;
  std::optional<TimeField> time;
  KeyedState table;
  WaitingRecords waiting{input, 1, [this](const std::byte* record) { return time->of(record); }, [](std::int64_t at) { return at; },
                         &table.extractor()};
  TimerWheel wheel;
  std::vector<std::byte> moment_record;
  std::vector<const Field*> moment_keys;
  std::vector<std::byte> aside;  // what is emitted when it is poked
  bool ended = false;
};

}  // namespace

std::shared_ptr<Operator> make_process(std::string name, const ProcessSchemas& schemas, const std::vector<std::string>& keys,
                                       const ProcessMethods& methods, ProcessOptions options, std::shared_ptr<void> owner) try {
  if (methods.on_tuple == nullptr) throw std::invalid_argument("a process has an on_tuple");
  const std::vector<Field>& moment = schemas.moment->fields();
  if (moment.size() != keys.size() + 1) throw std::invalid_argument("moments are the keys, then a time");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Field* key = schemas.input->find(keys[i]);
    if (key == nullptr || key->type != moment[i].type) throw std::invalid_argument("moments can't hold key '" + keys[i] + "'");
  }
  if (options.time.empty() != (options.now != nullptr)) throw std::invalid_argument("a process goes by event time, or by the clock");
  return std::make_shared<ProcessOperator>(name, schemas, keys, methods, std::move(options), std::move(owner));
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
