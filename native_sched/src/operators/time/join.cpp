// Left records wait until the watermark says that all right ones that they match are there; right ones are kept by key, in the order of
// their times, as long as a left one may match them.
#include "rayelastic/operators/time/join.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/time/window_kinds.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/record_pool.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

struct Kept {
  std::int64_t time;
  std::byte* record;
};

struct RightKey {
  std::vector<Kept> records;      // in the order of times
  std::int64_t due = kEndOfTime;  // when the first can be dropped
};

struct FieldCopy {
  const Field* from;
  const Field* to;
};

void copy_fields(const std::vector<FieldCopy>& fields, const Schema& from, const std::byte* record, const Schema& to, std::byte* target) {
  for (const FieldCopy& field : fields) {
    if (!from.is_valid(record, *field.from)) continue;  // the target is zero, and so null
    std::memcpy(target + field.to->offset, record + field.from->offset, size_of(field.to->type));
    if (field.to->validity < 0) continue;
    const auto bit = static_cast<std::size_t>(field.to->validity);
    target[to.validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
  }
}

// `reached`: the watermark.
struct Join final : TimedState {
  JoinOptions options;
  std::shared_ptr<const Schema> left;
  std::shared_ptr<const Schema> right;
  std::shared_ptr<const Schema> output;
  std::vector<FieldCopy> left_fields = {};
  std::vector<FieldCopy> right_fields = {};
  std::optional<TimeField> left_time = {};
  std::optional<TimeField> right_time = {};
  KeyExtractor left_keys{left, options.left_keys};
  KeyedState table{right, options.right_keys, sizeof(void*), std::array<std::byte, sizeof(void*)>{}};  // of right keys
  RecordPool rights{right};
  WaitingRecords waiting{left, 1, [this](const std::byte* record) { return is_timed() ? left_time->of(record) : 0; },
                         [this](std::int64_t at) { return last_match(at); }, &left_keys};  // left ones
  DueKeys due = {};

  Join(JoinOptions wanted, std::shared_ptr<const Schema> one, std::shared_ptr<const Schema> other, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)), left(std::move(one)), right(std::move(other)), output(std::move(gives)) {
    keep(&table, &waiting);
  }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  ~Join() override {
    table.for_each([](const StringView&, std::byte* slot) { delete kept_in<RightKey>(slot); });
  }

  [[nodiscard]] bool is_timed() const noexcept { return left_time.has_value(); }
  // Times of right records that match a left one, both included.
  [[nodiscard]] std::int64_t first_match(std::int64_t at) const noexcept {
    return options.kind == JoinKind::Window ? floor_divide(at, options.before) * options.before : at - options.before;
  }
  [[nodiscard]] std::int64_t last_match(std::int64_t at) const noexcept {
    if (options.kind == JoinKind::Latest) return at;
    return options.kind == JoinKind::Window ? first_match(at) + options.before - 1 : at + options.after;
  }
  // How far what comes out may be behind the watermark.
  [[nodiscard]] std::int64_t delay() const noexcept {
    if (options.kind == JoinKind::Latest) return 0;
    return options.kind == JoinKind::Window ? options.before - 1 : options.after;
  }
  // The watermark at which no left record can match a right one any more.
  [[nodiscard]] std::int64_t end_of(std::int64_t right_at) const noexcept {
    return options.kind == JoinKind::Window ? last_match(right_at) : right_at + options.before + options.after;
  }

  void take_right(const std::byte* record, std::int64_t watermark) {
    void* slot = nullptr;
    table.lookup(record, 1, &slot);
    RightKey*& key = kept_in<RightKey>(slot);
    if (key == nullptr) key = new RightKey;
    std::vector<Kept>& records = key->records;
    const std::int64_t at = is_timed() ? right_time->of(record) : 0;
    const auto place = std::ranges::upper_bound(records, at, {}, &Kept::time);
    records.insert(place, {at, rights.keep(record)});
    if (options.kind == JoinKind::Latest) {
      forget_before(records, is_timed() ? watermark : 0);
    } else if (end_of(at) < key->due) {
      key->due = end_of(at);
      due.note(key->due, slot);
    }
  }

  // Of the records up to a time the last is the latest, and the others won't be.
  void forget_before(std::vector<Kept>& records, std::int64_t time) {
    const auto latest = std::ranges::upper_bound(records, time, {}, &Kept::time);
    if (latest - records.begin() > 1) drop(records, latest - 1);
  }

  void drop(std::vector<Kept>& records, std::vector<Kept>::iterator end) {
    std::for_each(records.begin(), end, [this](const Kept& each) { rights.drop(each.record); });
    records.erase(records.begin(), end);
  }

  // Drops right records that nothing can match any more.
  void expire(std::int64_t now, void* slot) {
    RightKey* const key = kept_in<RightKey>(slot);
    if (key == nullptr || key->due != now) return;  // noted for an earlier life of the slot, or twice
    drop(key->records, std::ranges::find_if(key->records, [&](const Kept& each) { return end_of(each.time) > now; }));
    if (key->records.empty()) {
      delete std::exchange(kept_in<RightKey>(slot), nullptr);
      table.remove(slot);
      return;
    }
    key->due = end_of(key->records.front().time);
    due.note(key->due, slot);
  }

  [[nodiscard]] bool give(const std::byte* one, const std::byte* other, OutputWriter& writer) const {
    std::byte* record = writer.next();
    if (record == nullptr) return false;
    copy_fields(left_fields, *left, one, *output, record);
    if (other != nullptr) copy_fields(right_fields, *right, other, *output, record);
    writer.detach(record);
    return true;
  }

  // Gives a left record with what it matches. False: stop.
  [[nodiscard]] bool match(const std::byte* record, std::int64_t at, OutputWriter& writer) {
    StringView wanted;
    left_keys.extract(record, 1, &wanted);
    void* slot = table.find(wanted);
    bool found = false;
    if (slot != nullptr) {
      std::vector<Kept>& records = kept_in<RightKey>(slot)->records;
      if (options.kind == JoinKind::Latest) {
        forget_before(records, at);
        found = !records.empty() && records.front().time <= at;
        if (found && !give(record, records.front().record, writer)) return false;
      } else {
        for (auto each = std::ranges::lower_bound(records, first_match(at), {}, &Kept::time);
             each != records.end() && each->time <= last_match(at); ++each) {
          found = true;
          if (!give(record, each->record, writer)) return false;
        }
      }
    }
    return found || !options.outer || give(record, nullptr, writer);
  }

  // --- TimedState: per key how many right records (4), and them, in the order of their times
  [[nodiscard]] std::uint64_t form() const noexcept override {
    std::uint64_t digest = hash_of(rights.layout() ^ static_cast<std::uint64_t>(options.kind));
    if (is_timed()) digest = hash_of(hash_of(digest ^ left_time->form()) ^ right_time->form());
    return hash_of(hash_of(digest ^ static_cast<std::uint64_t>(options.before)) ^ static_cast<std::uint64_t>(options.after));
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return rights.bytes() + size() * sizeof(RightKey); }

  void write(const void* slot, StateWriter& writer) const override {
    const std::vector<Kept>& records = kept_in<RightKey>(slot).records;
    writer.number(static_cast<std::uint32_t>(records.size()));
    for (const Kept& each : records) writer.record(each.record, rights.shape());
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    const auto count = reader.number<std::uint32_t>();
    if (count == 0) throw StateError("exported state has a key without records");
    RightKey key;
    std::int64_t last = kNoWatermark;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const exported = reader.record(rights.shape());
      const std::int64_t at = is_timed() ? right_time->of(exported) : 0;
      if (at < last) throw StateError("exported state has records that aren't in the order of their times");
      if (slot != nullptr) key.records.push_back({at, rights.restore(exported)});
      last = at;
    }
    if (slot == nullptr) return;
    if (options.kind != JoinKind::Latest) {
      key.due = end_of(key.records.front().time);
      due.note(key.due, slot);
    }
    kept_in<RightKey>(slot) = new RightKey(std::move(key));
  }

  void forget(void* slot) noexcept override {
    RightKey* const key = std::exchange(kept_in<RightKey>(slot), nullptr);
    for (const Kept& each : key->records) rights.drop(each.record);
    delete key;
  }
};

std::int64_t advance(Join& join, std::int64_t watermark, OutputWriter& writer, rel_context* context) {
  while (join.waiting.is_due(watermark)) {
    const Waiting& next = join.waiting.top();
    if (!join.match(next.record, next.time, writer)) return REL_STOPPED;
    join.waiting.pop();
  }
  (void)join.due.take(watermark, [&join](std::int64_t now, void* slot) {
    join.expire(now, slot);
    return true;
  });
  if (watermark == kEndOfTime) return writer.result();
  if (!writer.flush()) return REL_STOPPED;
  context->mark({MarkKind::Watermark, std::max(watermark, -kLatestTime) - join.delay()});
  return 0;
}

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& join = *static_cast<Join*>(state);
  const std::int64_t watermark = join.reached = std::max(join.reached, context->watermark());
  OutputWriter writer(*join.output, out, capacity, context);
  if (n == 0) return advance(join, watermark, writer, context);
  const bool from_left = context->port() == 0;
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t stride = (from_left ? join.left : join.right)->record_size();
  for (std::int64_t i = 0; i < n; ++i, record += stride) {
    if (!from_left) {
      join.take_right(record, watermark);
    } else if (!join.is_timed()) {
      if (!join.match(record, 0, writer)) return REL_STOPPED;
    } else if (const std::int64_t at = join.left_time->of(record); at > watermark) {
      join.waiting.push(record, at, 0);
    } else if (!context->emit(1, record, 1)) {
      return REL_STOPPED;
    }
  }
  join.publish();
  return writer.result();
}

void check_keys(const Join& join) {
  const auto one = join.left_keys.fields();
  const auto other = const_cast<Join&>(join).table.extractor().fields();
  if (one.size() != other.size()) throw std::invalid_argument("both sides have to have as many key fields");
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i]->type != other[i]->type)
      throw std::invalid_argument("key '" + one[i]->name + "' is of another type than '" + other[i]->name + "' on the right");
  }
}

}  // namespace

OperatorSpec make_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                       std::shared_ptr<const Schema> output, const JoinOptions& options) try {
  auto join = std::make_shared<Join>(options, left, right, output);
  check_keys(*join);
  const std::vector<Field>& fields = output->fields();
  if (fields.size() != left->fields().size() + options.right_fields.size())
    throw std::invalid_argument("the output schema has to have the fields of the left, then those chosen of the right");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool of_left = i < left->fields().size();
    const Field* from = of_left ? &left->fields()[i] : right->find(options.right_fields[i - left->fields().size()]);
    if (from == nullptr || from->type != fields[i].type)
      throw std::invalid_argument("field '" + fields[i].name + "' of the output schema isn't what it is made of");
    if ((from->nullable || (!of_left && options.outer)) && !fields[i].nullable)
      throw std::invalid_argument("field '" + fields[i].name + "' of the output schema has to be nullable");
    (of_left ? join->left_fields : join->right_fields).push_back({from, &fields[i]});
  }
  const bool timed = !options.left_time.empty();
  if (timed != !options.right_time.empty() || (!timed && options.kind != JoinKind::Latest))
    throw std::invalid_argument("both sides need an event time, or neither, for the latest by arrival");
  if (options.before < (options.kind == JoinKind::Window ? 1 : 0) || options.before > kLongestSpan || options.after < 0 ||
      options.after > kLongestSpan)
    throw std::invalid_argument("the times of a join are negative or too long");
  if (timed) {
    join->left_time.emplace(*left, options.left_time, options.left_shift);
    join->right_time.emplace(*right, options.right_time, options.right_shift);
  }
  OperatorSpec spec;
  spec.store = join;
  spec.process = process;
  spec.flags = timed ? REL_ON_FINISH | REL_ON_WATERMARK : 0U;
  spec.state = std::move(join);
  spec.input = left;
  spec.further_inputs.push_back(std::move(right));
  spec.output = std::move(output);
  if (timed) spec.further_outputs.push_back(std::move(left));
  spec.name = std::move(name);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
