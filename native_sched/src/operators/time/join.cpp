// Left records wait until the watermark says that all right ones that they match are there; right ones are kept by key, in the order of
// their times, as long as a left one may match them. Pairs has no times: each side is kept as long as the other may have more.
#include "rayelastic/operators/time/join.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/time/joined_fields.hpp"
#include "operators/time/window_kinds.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/record_pool.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

struct Key {
  std::vector<KeptRecord> rights;  // in the order of times
  std::vector<KeptRecord> lefts;   // of a symmetric join, and of pairs
  std::int64_t due = kEndOfTime;   // when the first right one can be dropped
};

// `reached`: the watermark.
struct Join final : TimedState {
  JoinOptions options;
  std::shared_ptr<const Schema> left;
  std::shared_ptr<const Schema> right;
  std::shared_ptr<const Schema> output;
  std::vector<FieldCopy> left_fields = {};
  std::vector<FieldCopy> right_fields = {};
  std::vector<FieldCopy> right_keys = {};  // to those of the left, where there is no left record
  std::optional<TimeField> left_time = {};
  std::optional<TimeField> right_time = {};
  KeyExtractor left_keys{left, options.left_keys};
  KeyedState table{right, options.right_keys, sizeof(void*), std::array<std::byte, sizeof(void*)>{}};  // of right keys
  RecordPool rights{right};
  RecordPool lefts{left};
  WaitingRecords waiting{left, 1, [this](const std::byte* record) { return is_timed() ? left_time->of(record) : 0; },
                         [this](std::int64_t at) { return last_match(at); }, &left_keys};  // left ones
  DueKeys due = {};
  bool left_ended = false;  // of pairs; not saved, for sources that have ended end again
  bool right_ended = false;

  Join(JoinOptions wanted, std::shared_ptr<const Schema> one, std::shared_ptr<const Schema> other, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)), left(std::move(one)), right(std::move(other)), output(std::move(gives)) {
    keep(&table, &waiting);
  }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  ~Join() override {
    table.for_each([](const StringView&, std::byte* slot) { delete kept_in<Key>(slot); });
  }

  [[nodiscard]] bool is_timed() const noexcept { return left_time.has_value(); }
  // Whether right records are kept as long as a left one may come, which is known of those by interval and window.
  [[nodiscard]] bool is_bounded() const noexcept { return options.kind == JoinKind::Interval || options.kind == JoinKind::Window; }
  [[nodiscard]] bool is_of_pairs() const noexcept { return options.kind == JoinKind::Pairs; }
  [[nodiscard]] bool keeps_lefts() const noexcept { return options.symmetric || is_of_pairs(); }
  [[nodiscard]] bool saves_matched() const noexcept { return options.right_outer || is_of_pairs(); }
  // Where the window of a time starts, as times are counted.
  [[nodiscard]] std::int64_t window_of(std::int64_t at) const noexcept {
    return floor_divide(options.times.counted(at), options.before) * options.before;
  }
  // Times of right records that match a left one, both included.
  [[nodiscard]] std::int64_t first_match(std::int64_t at) const noexcept {
    return options.kind == JoinKind::Window ? options.times.uncounted(window_of(at)) : at - options.before;
  }
  [[nodiscard]] std::int64_t last_match(std::int64_t at) const noexcept {
    if (!is_bounded()) return at;
    return options.kind == JoinKind::Window ? options.times.uncounted(window_of(at) + options.before) - 1 : at + options.after;
  }
  // How far what comes out may be behind the watermark.
  [[nodiscard]] std::int64_t delay() const noexcept {
    if (!is_bounded()) return 0;
    if (options.kind != JoinKind::Window) return options.after;
    return options.before - 1 + (options.times.days.has_value() ? options.times.days->ticks() : 0);
  }
  // The watermark at which no left record can match a right one any more.
  [[nodiscard]] std::int64_t end_of(std::int64_t right_at) const noexcept {
    return options.kind == JoinKind::Window ? last_match(right_at) : right_at + options.before + options.after;
  }

  // False: stop.
  [[nodiscard]] bool take_right(const std::byte* record, std::int64_t watermark, OutputWriter& writer) {
    if (lacks_key(table.extractor(), record)) {
      if (!options.right_outer) return true;
      if (!is_bounded()) return give(nullptr, record, writer);
    }
    if (is_of_pairs()) return pair_right(record, writer);
    void* slot = nullptr;
    table.lookup(record, 1, &slot);
    Key*& key = kept_in<Key>(slot);
    if (key == nullptr) key = new Key;
    const std::int64_t at = is_timed() ? right_time->of(record) : 0;
    keep_by_kind(key->rights, rights, at, record, watermark);
    if (is_bounded() && end_of(at) < key->due) {
      key->due = end_of(at);
      due.note(key->due, slot);
    }
    if (!options.symmetric) return true;
    if (key->lefts.empty()) return !options.right_outer || give(nullptr, record, writer);
    return std::ranges::all_of(key->lefts, [&](const KeptRecord& each) { return give(each.record, record, writer); });
  }

  [[nodiscard]] bool pair_right(const std::byte* record, OutputWriter& writer) {
    StringView wanted;
    table.extractor().extract(record, 1, &wanted);
    return pair(wanted, record, left_ended ? nullptr : &rights, options.right_outer && left_ended, &Key::rights, &Key::lefts,
                [&](const std::byte* other) { return give(other, record, writer); });
  }
  [[nodiscard]] bool pair_left(const StringView& wanted, const std::byte* record, OutputWriter& writer) {
    return pair(wanted, record, right_ended ? nullptr : &lefts, options.left_outer && right_ended, &Key::lefts, &Key::rights,
                [&](const std::byte* other) { return give(record, other, writer); });
  }

  // Gives a record with all that there are of the other side, and keeps it in `pool`, if there is one; `alone`: without a match it is given
  // at once. False: stop.
  template <typename Give>
  [[nodiscard]] bool pair(const StringView& wanted, const std::byte* record, RecordPool* pool, bool alone,
                          std::vector<KeptRecord> Key::* mine, std::vector<KeptRecord> Key::* others, const Give& give_with) {
    void* slot = nullptr;
    if (pool != nullptr) {
      table.lookup_keys(&wanted, 1, &slot);
      if (kept_in<Key>(slot) == nullptr) kept_in<Key>(slot) = new Key;
    } else if (slot = table.find(wanted); slot == nullptr) {
      return !alone || give_with(nullptr);
    }
    table.will_change(slot);
    Key& key = *kept_in<Key>(slot);
    for (KeptRecord& each : key.*others) {
      each.matched = true;
      if (!give_with(each.record)) return false;
    }
    const bool matched = !(key.*others).empty();
    if (pool != nullptr) (key.*mine).push_back({0, pool->keep(record), matched});
    return matched || !alone || give_with(nullptr);
  }

  // A side has ended: what is kept of the other one has had all its matches. False: stop.
  [[nodiscard]] bool end_side(bool of_left, OutputWriter& writer) {
    if (std::exchange(of_left ? left_ended : right_ended, true)) return true;
    bool ok = true;
    (void)table.for_each_from(0, [&](const StringView&, std::byte* slot) {
      table.will_change(slot);
      Key& key = *kept_in<Key>(slot);
      std::vector<KeptRecord>& records = of_left ? key.rights : key.lefts;
      for (const KeptRecord& each : records) {
        if (each.matched || !(of_left ? options.right_outer : options.left_outer)) continue;
        ok = of_left ? give(nullptr, each.record, writer) : give(each.record, nullptr, writer);
        if (!ok) return false;
      }
      drop(records, of_left ? rights : lefts, records.end());
      if (!key.lefts.empty() || !key.rights.empty()) return true;
      delete std::exchange(kept_in<Key>(slot), nullptr);
      table.remove(slot);
      return true;
    });
    return ok;
  }

  void keep_by_kind(std::vector<KeptRecord>& records, RecordPool& pool, std::int64_t at, const std::byte* record, std::int64_t watermark) {
    const auto place = std::ranges::upper_bound(records, at, {}, &KeptRecord::time);
    if (options.kind == JoinKind::First) {
      if (place != records.begin()) return;
      drop(records, pool, records.end());
      records.push_back({at, pool.keep(record)});
      return;
    }
    records.insert(place, {at, pool.keep(record)});
    if (options.kind == JoinKind::Latest) forget_before(records, pool, is_timed() ? watermark : 0);
  }

  // Of the records up to a time the last is the latest, and the others won't be.
  void forget_before(std::vector<KeptRecord>& records, RecordPool& pool, std::int64_t time) {
    const auto latest = std::ranges::upper_bound(records, time, {}, &KeptRecord::time);
    if (latest - records.begin() > 1) drop(records, pool, latest - 1);
  }

  static void drop(std::vector<KeptRecord>& records, RecordPool& pool, std::vector<KeptRecord>::iterator end) {
    std::for_each(records.begin(), end, [&pool](const KeptRecord& each) { pool.drop(each.record); });
    records.erase(records.begin(), end);
  }

  // Drops right records that nothing can match any more, and gives those that nothing has matched. False: stop.
  [[nodiscard]] bool expire(std::int64_t now, void* slot, OutputWriter& writer) {
    Key* const key = kept_in<Key>(slot);
    if (key == nullptr || key->due != now) return true;  // noted for an earlier life of the slot, or twice
    table.will_change(slot);
    const auto end = std::ranges::find_if(key->rights, [&](const KeptRecord& each) { return end_of(each.time) > now; });
    if (options.right_outer) {
      for (auto each = key->rights.begin(); each != end; ++each) {
        if (!each->matched && !give(nullptr, each->record, writer)) return false;
        each->matched = true;
      }
    }
    drop(key->rights, rights, end);
    if (key->rights.empty()) {
      delete std::exchange(kept_in<Key>(slot), nullptr);
      table.remove(slot);
      return true;
    }
    key->due = end_of(key->rights.front().time);
    due.note(key->due, slot);
    return true;
  }

  // One of the two may be null.
  [[nodiscard]] bool give(const std::byte* one, const std::byte* other, OutputWriter& writer) const {
    std::byte* record = writer.next();
    if (record == nullptr) return false;
    if (one != nullptr) copy_fields(left_fields, *left, one, *output, record);
    if (one == nullptr) copy_fields(right_keys, *right, other, *output, record);
    if (other != nullptr) copy_fields(right_fields, *right, other, *output, record);
    writer.detach(record);
    return true;
  }

  // Gives a left record with what it matches. False: stop.
  [[nodiscard]] bool match(const std::byte* record, std::int64_t at, OutputWriter& writer) {
    if (lacks_key(left_keys, record)) return !options.left_outer || give(record, nullptr, writer);
    StringView wanted;
    left_keys.extract(record, 1, &wanted);
    if (is_of_pairs()) return pair_left(wanted, record, writer);
    void* slot = table.find(wanted);
    bool found = false;
    if (slot != nullptr) {
      table.will_change(slot);
      std::vector<KeptRecord>& records = kept_in<Key>(slot)->rights;
      if (options.kind == JoinKind::Latest) forget_before(records, rights, at);
      auto each = is_bounded() ? std::ranges::lower_bound(records, first_match(at), {}, &KeptRecord::time) : records.begin();
      const bool one = options.kind == JoinKind::Latest || options.kind == JoinKind::First;
      for (; each != records.end() && each->time <= last_match(at) && !(one && found); ++each) {
        found = each->matched = true;
        if (!give(record, each->record, writer)) return false;
      }
    }
    if (options.symmetric) keep_left(wanted, record);
    return found || !options.left_outer || give(record, nullptr, writer);
  }

  void keep_left(const StringView& wanted, const std::byte* record) {
    void* slot = nullptr;
    table.lookup_keys(&wanted, 1, &slot);
    Key*& key = kept_in<Key>(slot);
    if (key == nullptr) key = new Key;
    keep_by_kind(key->lefts, lefts, 0, record, 0);
  }

  // --- TimedState: per key how many right records (4), and them, in the order of their times, with 1 where it has been matched in an outer
  // join of the right, and of pairs; of a symmetric join, and of pairs, left ones likewise
  [[nodiscard]] std::uint64_t form() const noexcept override {
    std::uint64_t digest = hash_of(rights.layout() ^ static_cast<std::uint64_t>(options.kind));
    if (is_timed()) digest = hash_of(hash_of(digest ^ left_time->form()) ^ right_time->form());
    digest = hash_of(hash_of(digest ^ static_cast<std::uint64_t>(options.before)) ^ static_cast<std::uint64_t>(options.after));
    digest ^= options.times.form();
    if (options.right_outer) digest = hash_of(digest ^ 1);
    return keeps_lefts() ? hash_of(digest ^ lefts.layout()) : digest;
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return rights.bytes() + lefts.bytes() + size() * sizeof(Key); }

  void write(const void* slot, StateWriter& writer) const override {
    const Key& key = kept_in<Key>(slot);
    write(key.rights, rights, writer);
    if (keeps_lefts()) write(key.lefts, lefts, writer);
  }

  void write(const std::vector<KeptRecord>& records, const RecordPool& pool, StateWriter& writer) const {
    writer.number(static_cast<std::uint32_t>(records.size()));
    for (const KeptRecord& each : records) {
      writer.record(each.record, pool.shape());
      if (saves_matched()) writer.number(static_cast<std::uint8_t>(each.matched ? 1 : 0));
    }
  }

  void read(StateReader& reader, void* slot, std::int64_t) override {
    Key key;
    std::size_t count = read(reader, key.rights, rights, right_time, slot != nullptr);
    if (keeps_lefts()) count += read(reader, key.lefts, lefts, {}, slot != nullptr);
    if (count == 0) throw StateError("exported state has a key without records");
    if (slot == nullptr) return;
    if (is_bounded()) {
      key.due = end_of(key.rights.front().time);
      due.note(key.due, slot);
    }
    kept_in<Key>(slot) = new Key(std::move(key));
  }

  // How many there are.
  std::size_t read(StateReader& reader, std::vector<KeptRecord>& records, RecordPool& pool, const std::optional<TimeField>& time,
                   bool restored) const {
    const auto count = reader.number<std::uint32_t>();
    std::int64_t last = kNoWatermark;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const exported = reader.record(pool.shape());
      const std::int64_t at = time.has_value() ? time->of(exported) : 0;
      if (at < last) throw StateError("exported state has records that aren't in the order of their times");
      const auto matched = saves_matched() ? reader.number<std::uint8_t>() : std::uint8_t{0};
      if (matched > 1) throw StateError("exported state has a record that is neither matched nor not");
      if (restored) records.push_back({at, pool.restore(exported), matched == 1});
      last = at;
    }
    return count;
  }

  void forget(void* slot) noexcept override {
    Key* const key = std::exchange(kept_in<Key>(slot), nullptr);
    for (const KeptRecord& each : key->rights) rights.drop(each.record);
    for (const KeptRecord& each : key->lefts) lefts.drop(each.record);
    delete key;
  }
};

// Left records, and right ones that go, by the watermark at which they are due; of equal ones the left first. So what comes out doesn't
// depend on which watermarks there are.
std::int64_t advance(Join& join, std::int64_t watermark, OutputWriter& writer, rel_context* context) {
  if (join.is_of_pairs()) {
    const bool all = watermark == kEndOfTime;
    const bool ok = (!all && context->port() != 0) || join.end_side(true, writer);
    if (!ok || !((!all && context->port() != 1) || join.end_side(false, writer))) return REL_STOPPED;
    join.publish();
    return writer.result();
  }
  for (bool more = true; more;) {
    const std::int64_t due = join.due.next();
    more = due <= watermark && due != kEndOfTime;
    for (const std::int64_t end = more ? due : watermark; join.waiting.is_due(end); join.waiting.pop()) {
      const Waiting& next = join.waiting.top();
      if (!join.match(next.record, next.time, writer)) return REL_STOPPED;
    }
    if (more && !join.due.take(due, [&](std::int64_t now, void* slot) { return join.expire(now, slot, writer); })) return REL_STOPPED;
  }
  if (watermark == kEndOfTime) return writer.result();
  if (!writer.flush()) return REL_STOPPED;
  context->mark({MarkKind::Watermark, std::max(watermark, -kLatestTime) - join.delay()});
  return 0;
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
  const std::size_t own = left->fields().size();
  if (output->fields().size() != own + options.right_fields.size())
    throw std::invalid_argument("the output schema has to have the fields of the left, then those chosen of the right");
  join->left_fields = joined_fields(*left, names_of(*left), *output, 0, options.right_outer, options.left_keys);
  join->right_fields = joined_fields(*right, options.right_fields, *output, own, options.left_outer);
  for (std::size_t i = 0; i < options.left_keys.size() && options.right_outer; ++i) {
    const Field* const from = right->find(options.right_keys[i]);
    const Field* const to = output->find(options.left_keys[i]);
    if (to == nullptr || (from->nullable && !to->nullable))
      throw std::invalid_argument("key '" + options.left_keys[i] + "' of the output schema has to be nullable");
    join->right_keys.push_back({from, to});
  }
  const bool timed = !options.left_time.empty();
  if (timed != !options.right_time.empty() || (!timed && join->is_bounded()))
    throw std::invalid_argument("both sides need an event time, or neither, for what there is by arrival");
  if (options.symmetric && timed) throw std::invalid_argument("by time no join is symmetric but those by interval and window");
  if (join->is_of_pairs() && (timed || options.symmetric)) throw std::invalid_argument("pairs have no times, and both sides anyway");
  if (options.right_outer && !join->keeps_lefts() && !join->is_bounded())
    throw std::invalid_argument("right records without a match are known by interval, by window, of pairs, and where it is symmetric");
  if (options.before < (options.kind == JoinKind::Window ? 1 : 0) || options.before > kLongestSpan || options.after < 0 ||
      options.after > kLongestSpan)
    throw std::invalid_argument("the times of a join are negative or too long");
  if (options.kind == JoinKind::Window) options.times.check(options.before, options.before);
  return spec_of_join(std::move(name), process_join<Join, advance>, std::move(join), std::move(left), std::move(right), std::move(output),
                      options);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
