// An automaton for each key: what has begun waits in the order in which it began, each with the records that it has taken.
#include "rayelastic/operators/time/pattern.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/time/join/joined_fields.hpp"
#include "operators/time/window_core.hpp"
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
struct Pattern final : TimedState {
  PatternOptions options;
  OperatorSpec marks;
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
  TimeField time;
  KeyExtractor extractor{input, options.keys};
  KeyedState table{input, options.keys, sizeof(void*), std::array<std::byte, sizeof(void*)>{}};
  RecordPool pool{input};
  WaitingRecords waiting{input,      1,   [this](const std::byte* record) { return time.of(record); }, [](std::int64_t at) { return at; },
                         &extractor, true};
  DueKeys due = {};
  std::vector<std::vector<FieldCopy>> output_fields = {};  // by step; the keys are with the first
  std::vector<std::int64_t> marked = {};                   // of a run

  Pattern(PatternOptions wanted, OperatorSpec of, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)),
        marks(std::move(of)),
        input(marks.input),
        output(std::move(gives)),
        time(*input, options.time, options.shift) {
    keep(&table, &waiting);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() override {
    table.for_each([](const StringView&, std::byte* slot) { delete kept_in<Key>(slot); });
  }

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
    Key*& key = kept_in<Key>(slot);
    if (key == nullptr) key = new Key;
    for (Begun& one : key->begun) {
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
    if (begins) key->begun.push_back({at + options.steps[1].within, {pool.keep(record)}});
    tidy(slot);
    return true;
  }

  void drop(Begun& one) noexcept {
    for (std::byte* const record : one.records) pool.drop(record);
    one.records.clear();  // which means that it is over
  }

  // Removes what is over, and notes when the key is to be looked at.
  void tidy(void* slot) {
    Key* const key = kept_in<Key>(slot);
    std::erase_if(key->begun, [](const Begun& one) { return one.records.empty(); });
    if (key->begun.empty()) {
      delete std::exchange(kept_in<Key>(slot), nullptr);
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
    for (std::size_t step = 0; step < taken; ++step) copy_fields(output_fields[step], *input, one.records[step], *output, record);
    if (taken < steps()) {
      const Field& last = output->fields().back();
      const std::string& name = options.steps[taken].name;
      store(record + last.offset, StringView(name.data(), static_cast<std::uint32_t>(name.size())));
      set_valid(last, *output, record);
    }
    writer.detach(record);
    return true;
  }

  // What hasn't come up to `now`. False: stop.
  [[nodiscard]] bool expire(std::int64_t now, void* slot, OutputWriter& writer) {
    Key* const key = kept_in<Key>(slot);
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
    const Key& key = kept_in<Key>(slot);
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
    kept_in<Key>(slot) = new Key(std::move(key));
    note(kept_in<Key>(slot), slot);
  }

  void forget(void* slot) noexcept override {
    Key* const key = std::exchange(kept_in<Key>(slot), nullptr);
    for (Begun& one : key->begun) drop(one);
    delete key;
  }
};

// Records and ends of waiting in the order of their times; of equal times the records first.
std::int64_t advance(Pattern& pattern, std::int64_t watermark, OutputWriter& writer, rel_context* context) {
  for (;;) {
    const std::int64_t due = pattern.due.next();
    const std::int64_t end = std::min(watermark, due);
    if (pattern.waiting.is_due(end)) {
      const Waiting& next = pattern.waiting.top();
      if (!pattern.take(next.record, next.time, next.tag, writer)) return REL_STOPPED;
      pattern.waiting.pop();
    } else if (due <= watermark && due != kEndOfTime) {
      const auto expire = [&](std::int64_t now, void* slot) { return pattern.expire(now, slot, writer); };
      if (!pattern.due.take(end, expire)) return REL_STOPPED;
    } else {
      break;
    }
  }
  pattern.publish();
  if (watermark == kEndOfTime) return writer.result();
  if (!writer.flush()) return REL_STOPPED;
  context->mark({MarkKind::Watermark, watermark});
  return 0;
}

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& pattern = *static_cast<Pattern*>(state);
  const std::int64_t watermark = pattern.reached = std::max(pattern.reached, context->watermark());
  OutputWriter writer(*pattern.output, out, capacity, context);
  if (n == 0) return advance(pattern, watermark, writer, context);
  pattern.marked.resize(static_cast<std::size_t>(n));
  const std::int64_t made = pattern.marks.process(in, n, pattern.marked.data(), n, pattern.marks.state.get(), context);
  if (made < 0) return made;
  const auto* record = static_cast<const std::byte*>(in);
  for (std::int64_t i = 0; i < n; ++i, record += pattern.input->record_size()) {
    const auto mark = static_cast<std::uint64_t>(pattern.marked[static_cast<std::size_t>(i)]);
    if (const std::int64_t at = pattern.time.of(record); at <= watermark) {
      if (!context->emit(kLate, record, 1)) return REL_STOPPED;
    } else if (mark != 0) {
      pattern.waiting.push(record, at, 0, mark);
    }
  }
  pattern.publish();
  return 0;
}

// Where the fields of each step go, the keys with those of the first.
std::vector<std::vector<FieldCopy>> fields_by_step(const Pattern& pattern) {
  const PatternOptions& options = pattern.options;
  std::vector<std::vector<FieldCopy>> found(pattern.steps());
  found[0] = joined_fields(*pattern.input, options.keys, *pattern.output, 0, false);
  std::size_t first = options.keys.size();
  for (std::size_t step = 0; step < pattern.steps(); ++step, first += options.fields.size()) {
    const auto copies = joined_fields(*pattern.input, options.fields, *pattern.output, first, options.outer && step > 0);
    found[step].insert(found[step].end(), copies.begin(), copies.end());
  }
  return found;
}

void check(const Pattern& pattern) {
  const PatternOptions& options = pattern.options;
  const OperatorSpec& marks = pattern.marks;
  if (options.steps.size() < 2 || options.steps.size() > kMostSteps) throw std::invalid_argument("a pattern has 2 to 31 steps");
  for (const PatternStep& step : options.steps) {
    if (step.within < 0 || step.within > kLongestSpan) throw std::invalid_argument("the times of a pattern are negative or too long");
  }
  const bool fits = marks.output != nullptr && marks.output->fields().size() == 1 && marks.output->fields()[0].type == Type::Int64 &&
                    marks.output->record_size() == sizeof(std::int64_t) && (marks.flags & REL_ONE_TO_ONE) != 0 &&
                    (marks.flags & REL_KEYED) == 0;
  if (!fits) throw std::invalid_argument("marks are a function of a tuple that returns one int64");
  const std::size_t fields = options.keys.size() + options.steps.size() * options.fields.size();
  if (pattern.output->fields().size() != fields + (options.outer ? 1 : 0))
    throw std::invalid_argument("the output schema has to have the keys, then the fields of each step");
  if (options.outer && (pattern.output->fields().back().type != Type::String || !pattern.output->fields().back().nullable))
    throw std::invalid_argument("the last field has to be a text that may be null: of what is missing");
}

}  // namespace

OperatorSpec make_pattern(OperatorSpec marks, std::shared_ptr<const Schema> output, const PatternOptions& options) try {
  auto pattern = std::make_shared<Pattern>(options, marks, output);
  check(*pattern);
  pattern->output_fields = fields_by_step(*pattern);
  OperatorSpec spec;
  spec.name = marks.name;
  spec.process = process;
  spec.flags = REL_ON_FINISH | REL_ON_WATERMARK | (marks.flags & REL_NEEDS_TOKEN);
  spec.store = pattern;
  spec.state = std::move(pattern);
  spec.input = marks.input;
  spec.output = std::move(output);
  spec.further_outputs = {marks.input};
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + marks.name + "': " + problem.what());
}

}  // namespace rayelastic
