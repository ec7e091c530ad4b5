// An automaton for each key: what has begun waits in the order in which it began, each with the records that it has taken.
#include "rayelastic/operators/time/pattern.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/owned_in_slot.hpp"
#include "operators/time/join/joined_fields.hpp"
#include "rayelastic/operator/function.hpp"
#include "rayelastic/state/state_rows.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/record_pool.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

constexpr std::int32_t kLate = 1;
constexpr std::size_t kMostSteps = 31;  // two bits of a mark each, without its sign

struct Begun {
  std::int64_t until;               // the last time for the next record
  std::vector<std::byte*> records;  // one for each step that there was
};

struct Key {
  std::vector<Begun> begun;       // in the order of the first record
  std::int64_t due = kEndOfTime;  // the least `until`
};

// `reached`: the watermark.
class PatternOperator final : public Operator, public TimedState {
 public:
  PatternOperator(const std::shared_ptr<Operator>& marks, std::shared_ptr<const Schema> output, const PatternOptions& pattern)
      : Operator(marks->name(), marks->inputs(), {std::move(output), marks->inputs().front()},
                 REL_ON_FINISH | REL_ON_WATERMARK | (marks->flags() & REL_NEEDS_TOKEN)),
        options(pattern),
        marks_(marks),
        time(input(), options.time, options.shift) {
    keep(&table, &waiting);
    check();
    set_output_fields();
  }
  ~PatternOperator() override { Slot::drop_all(table); }
  PatternOperator(const PatternOperator&) = delete;
  PatternOperator& operator=(const PatternOperator&) = delete;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    reached = std::max(reached, context->watermark());
    marked.resize(static_cast<std::size_t>(n));
    const std::int64_t produced = marks_->process(in, n, reinterpret_cast<std::byte*>(marked.data()), n, context);
    if (produced < 0) return produced;
    for (std::int64_t i = 0; i < n; ++i, in += input().record_size()) {
      const auto mark = static_cast<std::uint64_t>(marked[static_cast<std::size_t>(i)]);
      if (const std::int64_t at = time.of(in); at <= reached) {
        if (!context->emit(kLate, in, 1)) return REL_STOPPED;
      } else if (mark != 0) {
        waiting.push(in, at, 0, mark);
      }
    }
    publish();
    return 0;
  }
  // Records and ends of waiting in the order of their times; of equal times the records first.
  std::int64_t on_watermark(std::int64_t to, std::byte* out, std::int64_t capacity, rel_context* context) override {
    const std::int64_t watermark = reached = std::max(reached, to);
    OutputWriter writer(schema(), out, capacity, context);
    for (;;) {
      const std::int64_t next_due = due.next();
      const std::int64_t end = std::min(watermark, next_due);
      if (waiting.is_due(end)) {
        const Waiting& next = waiting.top();
        if (!take(next.record, next.time, next.tag, writer)) return REL_STOPPED;
        waiting.pop();
      } else if (next_due <= watermark && next_due != kEndOfTime) {
        if (!due.take(end, [&](std::int64_t now, void* slot) { return expire(now, slot, writer); })) return REL_STOPPED;
      } else {
        break;
      }
    }
    publish();
    if (watermark == kEndOfTime) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
  [[nodiscard]] StateTable* state() override { return this; }

 private:
  using Slot = OwnedInSlot<Key>;

  [[nodiscard]] const Schema& input() const noexcept { return *inputs().front(); }
  [[nodiscard]] const Schema& schema() const noexcept { return *outputs().front(); }
  [[nodiscard]] std::size_t steps() const noexcept { return options.steps.size(); }

  // Takes a record at its time. False: stop.
  [[nodiscard]] bool take(const std::byte* record, std::int64_t at, std::uint64_t mark, OutputWriter& writer) {
    StringView wanted;
    extractor.extract(record, 1, &wanted);
    void* slot = table.find(wanted);
    const bool begins = (mark & 1U) != 0;
    if (slot == nullptr) {
      if (!begins) return true;
      table.lookup_keys(&wanted, 1, &slot);
    } else {
      table.will_change(slot);
    }
    Key& key = Slot::obtain(slot);
    for (Begun& one : key.begun) {
      const std::size_t next = one.records.size();
      const std::uint64_t bits = mark >> (2 * next);
      if (options.steps[next].strict && (bits & 2U) != 0) {
        drop(one);
      } else if ((bits & 1U) != 0) {
        one.records.push_back(pool.keep(record));
        if (next + 1 < steps()) {
          one.until = at + options.steps[next + 1].within;
        } else {
          const bool given = give(one, writer);
          drop(one);
          if (!given) return false;
        }
      }
    }
    if (begins) key.begun.push_back({at + options.steps[1].within, {pool.keep(record)}});
    tidy(slot);
    return true;
  }

  void drop(Begun& one) noexcept {
    for (std::byte* const record : one.records) pool.drop(record);
    one.records.clear();  // which means that it is over
  }

  // Removes what is over, and notes when the key is to be looked at.
  void tidy(void* slot) {
    Key* const key = Slot::find(slot);
    std::erase_if(key->begun, [](const Begun& one) { return one.records.empty(); });
    if (key->begun.empty()) {
      Slot::drop(slot);
      table.remove(slot);
      return;
    }
    note(key, slot);
  }

  void note(Key* key, void* slot) {
    const std::int64_t first = std::ranges::min(key->begun, {}, &Begun::until).until;
    if (first == key->due) return;
    key->due = first;
    due.note(first, slot);
  }

  [[nodiscard]] bool give(const Begun& one, OutputWriter& writer) const {
    std::byte* record = writer.next();
    if (record == nullptr) return false;
    const std::size_t taken = one.records.size();
    for (std::size_t step = 0; step < taken; ++step) copy_fields(output_fields[step], input(), one.records[step], schema(), record);
    if (taken < steps()) {
      const Field& last = schema().fields().back();
      const std::string& name = options.steps[taken].name;
      store(record + last.offset, StringView(name.data(), static_cast<std::uint32_t>(name.size())));
      set_valid(last, schema(), record);
    }
    writer.detach(record);
    return true;
  }

  // What hasn't come up to `now`. False: stop.
  [[nodiscard]] bool expire(std::int64_t now, void* slot, OutputWriter& writer) {
    Key* const key = Slot::find(slot);
    if (key == nullptr || key->due != now) return true;  // noted for an earlier life of the slot, or twice
    table.will_change(slot);
    key->due = kEndOfTime;
    for (Begun& one : key->begun) {
      if (one.until > now) continue;
      const bool given = !options.outer || give(one, writer);
      drop(one);
      if (!given) return false;
    }
    tidy(slot);
    return true;
  }

  // --- TimedState: per key how many have begun (4), and of each until when it waits (8), how many records it has (4), and them
  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kPattern = 0x6e726574746170;  // "pattern"
    std::uint64_t digest = hash_of(hash_of(pool.layout() ^ kPattern) ^ time.form());
    for (const PatternStep& step : options.steps) {
      digest = hash_of(digest ^ static_cast<std::uint64_t>(step.within) ^ (step.strict ? std::uint64_t{1} << 63 : 0));
    }
    return digest;
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return pool.bytes() + size() * sizeof(Key); }

  void write(const void* slot, StateWriter& writer) const override {
    const Key& key = Slot::get(slot);
    writer.number(static_cast<std::uint32_t>(key.begun.size()));
    for (const Begun& one : key.begun) {
      writer.number(one.until);
      writer.number(static_cast<std::uint32_t>(one.records.size()));
      for (const std::byte* const record : one.records) writer.record(record, pool.shape());
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key of which nothing has begun");
    Key key;
    for (std::uint32_t i = 0; i < count; ++i) {
      Begun one{reader.number<std::int64_t>(), {}};
      const auto records = reader.number<std::uint32_t>();
      if (records == 0 || records >= steps()) throw StateError("exported state has a sequence of as many records as there can't be");
      if (one.until < kFirstTime || one.until > kLastTime) throw StateError("exported state waits until a time that there isn't");
      for (std::uint32_t step = 0; step < records; ++step) {
        const std::byte* const exported = reader.record(pool.shape());
        if (slot != nullptr) one.records.push_back(pool.restore(exported));
      }
      if (slot != nullptr) key.begun.push_back(std::move(one));
    }
    if (slot == nullptr) return;
    Slot::put(slot, std::move(key));
    note(Slot::find(slot), slot);
  }

  // Rows of the number of a sequence, a step, the deadline of the next one, and the fields of a record.
  void write_rows(StateRows& rows) override {
    std::int64_t sequence = 0;
    table.for_each([&](const StringView&, std::byte* slot) {
      if (Slot::find(slot) == nullptr) return;
      for (const Begun& one : Slot::get(slot).begun) {
        for (std::size_t step = 0; step < one.records.size(); ++step) {
          rows.add();
          rows.set(0, sequence);
          rows.set(1, options.steps[step].name);
          rows.set(2, one.until);
          rows.set(3, input(), one.records[step]);
        }
        ++sequence;
      }
    });
    waiting.for_each([&](const Waiting& each) {
      rows.add();
      rows.set(3, input(), each.record);
    });
  }

  void forget(void* slot) noexcept override {
    const std::unique_ptr<Key> key = Slot::take(slot);
    for (Begun& one : key->begun) drop(one);
  }

  void check() const {
    if (options.steps.size() < 2 || options.steps.size() > kMostSteps) throw std::invalid_argument("a pattern has 2 to 31 steps");
    for (const PatternStep& step : options.steps) {
      if (step.within < 0 || step.within > kLongestSpan) throw std::invalid_argument("the times of a pattern are negative or too long");
    }
    if (!maps_to_int64(*marks_) || marks_->has_any(REL_KEYED))
      throw std::invalid_argument("marks are a function of a tuple that returns one int64");
    const std::size_t fields = options.keys.size() + options.steps.size() * options.fields.size();
    if (schema().fields().size() != fields + (options.outer ? 1 : 0))
      throw std::invalid_argument("the output schema has to have the keys, then the fields of each step");
    if (options.outer && (schema().fields().back().type != Type::String || !schema().fields().back().nullable))
      throw std::invalid_argument("the last field has to be a text that may be null: of what is missing");
  }

  // Where the fields of each step go, the keys with those of the first.
  void set_output_fields() {
    output_fields.resize(steps());
    output_fields[0] = joined_fields(input(), options.keys, schema(), 0, false);
    std::size_t first = options.keys.size();
    for (std::size_t step = 0; step < steps(); ++step, first += options.fields.size()) {
      const auto copies = joined_fields(input(), options.fields, schema(), first, options.outer && step > 0);
      output_fields[step].insert(output_fields[step].end(), copies.begin(), copies.end());
    }
  }

  const PatternOptions options;
  const std::shared_ptr<Operator> marks_;
  const TimeField time;
  KeyExtractor extractor{inputs().front(), options.keys};
  KeyedState table{inputs().front(), options.keys, sizeof(void*), std::array<std::byte, sizeof(void*)>{}};
  RecordPool pool{inputs().front()};
  WaitingRecords waiting{
      inputs().front(), 1,   [this](const std::byte* record) { return time.of(record); }, [](std::int64_t at) { return at; },
      &extractor,       true};
  DueKeys due;
  std::vector<std::vector<FieldCopy>> output_fields;  // by step; the keys are with the first
  std::vector<std::int64_t> marked;                   // of a run
};

}  // namespace

std::shared_ptr<Operator> make_pattern(const std::shared_ptr<Operator>& marks, std::shared_ptr<const Schema> output,
                                       const PatternOptions& options) try {
  return std::make_shared<PatternOperator>(marks, std::move(output), options);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + marks->name() + "': " + problem.what());
}

}  // namespace rayelastic
