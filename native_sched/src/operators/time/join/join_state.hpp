// The state and the output of a join of two streams by key. See join.hpp for its semantics.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "operator/output_writer.hpp"
#include "operators/owned_in_slot.hpp"
#include "operators/time/join/join_lives.hpp"
#include "operators/time/join/joined_fields.hpp"
#include "record/time_field.hpp"
#include "state/due_keys.hpp"
#include "state/record_pool.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

struct JoinKey {
  std::vector<KeptRecord> rights;  // in the order of times
  std::vector<KeptRecord> lefts;   // of a symmetric join, and of pairs
  std::int64_t due = kEndOfTime;   // when the first right one can be dropped, or the key may have ended
  KeyLife life = {};               // with a time to live
};

// `reached`: the watermark.
struct JoinState final : TimedState {
  using Slot = OwnedInSlot<JoinKey>;

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
  JoinLives lives{options.ttl};
  std::vector<std::byte> aside = {};  // what is given when it is poked
  bool left_ended = false;            // of pairs; not saved, for sources that have ended end again
  bool right_ended = false;

  JoinState(JoinOptions wanted, std::shared_ptr<const Schema> one, std::shared_ptr<const Schema> other, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)), left(std::move(one)), right(std::move(other)), output(std::move(gives)) {
    keep(&table, &waiting);
  }
  JoinState(const JoinState&) = delete;
  JoinState& operator=(const JoinState&) = delete;
  ~JoinState() override { Slot::drop_all(table); }

  [[nodiscard]] bool is_timed() const noexcept { return left_time.has_value(); }
  // Whether right records are kept as long as a left one may come, which is known of those by interval and window.
  [[nodiscard]] bool is_bounded() const noexcept { return options.kind == JoinKind::Interval || options.kind == JoinKind::Window; }
  [[nodiscard]] bool is_of_pairs() const noexcept { return options.kind == JoinKind::Pairs; }
  [[nodiscard]] bool keeps_lefts() const noexcept { return options.symmetric || is_of_pairs(); }
  [[nodiscard]] bool saves_matched() const noexcept { return options.right_outer || is_of_pairs() || (is_timed() && lives.any()); }
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
    JoinKey& key = Slot::obtain(slot);
    const std::int64_t at = is_timed() ? right_time->of(record) : 0;
    if (is_timed() && lives.any()) {
      keep_in_life(key, at, record, waiting.is_due(watermark) ? waiting.top().time - 1 : watermark);
    } else {
      keep_by_kind(key.rights, rights, at, record, watermark);
    }
    note_due(key, slot, is_timed() ? at : lives.now);
    if (!options.symmetric) return true;
    if (key.lefts.empty()) return !options.right_outer || give(nullptr, record, writer);
    return std::ranges::all_of(key.lefts, [&](const KeptRecord& each) { return give(each.record, record, writer); });
  }

  // A key has a record that is kept: there is something to do once that is over.
  void note_due(JoinKey& key, void* slot, std::int64_t at) {
    if (!is_timed() && lives.any()) lives.touch(key.life, at);
    if (!is_bounded() && !lives.any()) return;
    const std::int64_t end = is_bounded() ? end_of(at) : lives.end_of(at);
    if (end >= key.due) return;
    key.due = end;
    due.note(end, slot);
  }

  // A right record of a join as of a time: which life of its key it belongs to is known once the watermark has come to it.
  void keep_in_life(JoinKey& key, std::int64_t at, const std::byte* record, std::int64_t until) {
    key.rights.insert(std::ranges::upper_bound(key.rights, at, {}, &KeptRecord::time), {at, rights.keep(record)});
    settle(key, until);
  }

  // All records of a key up to a time have come, right ones being those that are kept: drops what is of an earlier life.
  void settle(JoinKey& key, std::int64_t until) {
    const auto known = std::ranges::upper_bound(key.rights, until, {}, &KeptRecord::time);
    auto begin = key.rights.begin();
    for (auto each = std::ranges::find_if(key.rights, [&](const KeptRecord& one) { return !one.matched; }); each < known; ++each) {
      if (each->matched) continue;
      if (lives.is_over(key.life, each->time)) begin = each;
      lives.touch(key.life, each->time);
      each->matched = true;  // here: it has touched its key
    }
    drop(key.rights, rights, begin);
    trim(key, until);
  }

  // Of what has come up to a time a key keeps one record, unless it keeps all.
  void trim(JoinKey& key, std::int64_t until) {
    if (options.kind == JoinKind::Latest) forget_before(key.rights, rights, until);
    if (options.kind != JoinKind::First) return;
    const auto known = std::ranges::upper_bound(key.rights, until, {}, &KeptRecord::time);
    if (known - key.rights.begin() < 2) return;
    std::for_each(key.rights.begin() + 1, known, [this](const KeptRecord& each) { rights.drop(each.record); });
    key.rights.erase(key.rights.begin() + 1, known);
  }

  // Ends what is due at a time, at a left record of a key or a check of its age. Returns whether anything is left.
  [[nodiscard]] bool live_at(void* slot, std::int64_t at, bool touches) {
    JoinKey& key = *Slot::find(slot);
    if (is_timed()) settle(key, at);
    if (is_timed() && lives.is_over(key.life, at)) {
      drop(key.rights, rights, std::ranges::upper_bound(key.rights, at, {}, &KeptRecord::time));
      key.life = {};
    }
    if (is_timed() && key.rights.empty()) {
      end_key(slot);
      return false;
    }
    if (touches && key.life.has_begun()) lives.touch(key.life, at);
    return true;
  }

  void end_key(void* slot) {
    Slot::drop(slot);
    table.remove(slot);
  }

  // By a time to live a key may have ended: its records that have had no match are given. False: stop.
  [[nodiscard]] bool end_life(std::int64_t now, void* slot, OutputWriter& writer) {
    JoinKey* const key = Slot::find(slot);
    if (key == nullptr || key->due != now) return true;  // noted for an earlier life of the slot, or twice
    table.will_change(slot);
    if (is_timed() && !live_at(slot, now, false)) return true;
    const bool begun = key->life.has_begun();
    if (is_timed() || !lives.is_over(key->life, std::max(now, lives.now))) {
      key->due = lives.end_of(begun ? key->life.touched : key->rights.front().time);
      due.note(key->due, slot);
      return true;
    }
    const bool ok = !is_of_pairs() || (give_unmatched(key->lefts, true, writer) && give_unmatched(key->rights, false, writer));
    drop(key->lefts, lefts, key->lefts.end());
    drop(key->rights, rights, key->rights.end());
    end_key(slot);
    return ok;
  }

  // Of a side that is kept, where they are wanted. False: stop.
  [[nodiscard]] bool give_unmatched(const std::vector<KeptRecord>& records, bool of_left, OutputWriter& writer) const {
    if (!(of_left ? options.left_outer : options.right_outer)) return true;
    return std::ranges::all_of(records, [&](const KeptRecord& each) {
      return each.matched || (of_left ? give(each.record, nullptr, writer) : give(nullptr, each.record, writer));
    });
  }

  // By the clock: reads it, and ends what has ended. False: stop.
  [[nodiscard]] bool begin_run(OutputWriter& writer) {
    if (is_timed() || !lives.any()) return true;
    lives.now = lives.clock();
    return due.take(lives.now, [&](std::int64_t at, void* slot) { return end_life(at, slot, writer); });
  }

  [[nodiscard]] bool pair_right(const std::byte* record, OutputWriter& writer) {
    StringView wanted;
    table.extractor().extract(record, 1, &wanted);
    return pair(wanted, record, left_ended ? nullptr : &rights, options.right_outer && left_ended, &JoinKey::rights, &JoinKey::lefts,
                [&](const std::byte* other) { return give(other, record, writer); });
  }
  [[nodiscard]] bool pair_left(const StringView& wanted, const std::byte* record, OutputWriter& writer) {
    return pair(wanted, record, right_ended ? nullptr : &lefts, options.left_outer && right_ended, &JoinKey::lefts, &JoinKey::rights,
                [&](const std::byte* other) { return give(record, other, writer); });
  }

  // Gives a record with all that there are of the other side, and keeps it in `pool`, if there is one; `alone`: without a match it is given
  // at once. False: stop.
  template <typename Give>
  [[nodiscard]] bool pair(const StringView& wanted, const std::byte* record, RecordPool* pool, bool alone,
                          std::vector<KeptRecord> JoinKey::* mine, std::vector<KeptRecord> JoinKey::* others, const Give& give_with) {
    void* slot = nullptr;
    if (pool != nullptr) {
      table.lookup_keys(&wanted, 1, &slot);
      (void)Slot::obtain(slot);
    } else if (slot = table.find(wanted); slot == nullptr) {
      return !alone || give_with(nullptr);
    }
    table.will_change(slot);
    JoinKey& key = *Slot::find(slot);
    note_due(key, slot, lives.now);
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
      JoinKey& key = *Slot::find(slot);
      std::vector<KeptRecord>& records = of_left ? key.rights : key.lefts;
      ok = give_unmatched(records, !of_left, writer);
      drop(records, of_left ? rights : lefts, records.end());
      if (key.lefts.empty() && key.rights.empty()) end_key(slot);
      return ok;
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
    JoinKey* const key = Slot::find(slot);
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
      end_key(slot);
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
    if (slot != nullptr) table.will_change(slot);
    if (slot != nullptr && (!lives.any() || live_at(slot, is_timed() ? at : lives.now, true))) {
      std::vector<KeptRecord>& records = Slot::find(slot)->rights;
      if (options.kind == JoinKind::Latest) forget_before(records, rights, at);
      auto each = is_bounded() ? std::ranges::lower_bound(records, first_match(at), {}, &KeptRecord::time) : records.begin();
      const bool one = options.kind == JoinKind::Latest || options.kind == JoinKind::First;
      for (; each != records.end() && each->time <= last_match(at) && !(one && found); ++each) {
        found = true;
        if (is_bounded()) each->matched = true;
        if (!give(record, each->record, writer)) return false;
      }
    }
    if (options.symmetric) keep_left(wanted, record);
    return found || !options.left_outer || give(record, nullptr, writer);
  }

  void keep_left(const StringView& wanted, const std::byte* record) {
    void* slot = nullptr;
    table.lookup_keys(&wanted, 1, &slot);
    JoinKey& key = Slot::obtain(slot);
    keep_by_kind(key.lefts, lefts, 0, record, 0);
    note_due(key, slot, lives.now);
  }
  // --- TimedState: per key how many right records (4), and them, in the order of their times, with 1 where it has been matched in an outer
  // join of the right, and of pairs; of a symmetric join, and of pairs, left ones likewise; with a time to live what is known of the key's life
  [[nodiscard]] std::uint64_t form() const noexcept override;
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return rights.bytes() + lefts.bytes() + size() * sizeof(JoinKey); }
  void write(const void* slot, StateWriter& writer) const override;
  void read(StateReader& reader, void* slot, std::int64_t) override;
  void forget(void* slot) noexcept override;
  void write_rows(StateRows& rows) override;

 private:
  void write(const std::vector<KeptRecord>& records, const RecordPool& pool, StateWriter& writer) const;
  // How many there are.
  std::size_t read(StateReader& reader, std::vector<KeptRecord>& records, RecordPool& pool, const std::optional<TimeField>& time,
                   bool restored) const;
};

}  // namespace rayelastic
