// The state of a keyed operator, owned by the runtime (Joker J05, J06): a record per key at an address that stays the
// same for the key's life, found in bulk. Export and import by hash range are flat bytes (J16).
//
// Owners: the operator's thread at a time; size() and bytes() may be read by any thread at any time; everything else only
//   while the operator isn't running (the engine's port lock orders successive threads).
// Layout: an index of hashes that grows in steps (key_index.hpp); slots {hash, key, state} in blocks that never move. Keys and texts in states live in TextRooms, so no chunk of a run is retained.
// A text read from a state is valid until the next keep_text on that field: copy it (rel_allocate) before emitting it.
// A copy of all keys (state_copy.hpp) is read by another thread meanwhile: each slot is told to it before it is changed, given or taken.
// With a time to live a key that wasn't touched for longer is forgotten: by lookup, when the key comes again, which alone decides what
//   comes out; and by begin_run, which only frees memory. Each state is then followed by the time of its last touch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/record/schema.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/key_index.hpp"
#include "rayelastic/state/state_table.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic {

class StateReader;  // state_bytes.hpp
class StateWriter;
using StateMagic = char[8];
using TextCheck = std::function<void(const StringView& bytes)>;

// What touches a key.
enum class Touch : std::uint8_t {
  Each,   // each of its records
  First,  // that which made its state, and no other
  Change  // those whose function changed its state; only for records that are looked up one by one
};

// After how long without a touch a key is forgotten. With `field`: by event time, that of its records; else by the clock.
struct TimeToLive {
  std::int64_t ticks = 0;                    // of the field, or nanoseconds; 0: keys stay for ever
  std::string field = {};                    // the event time
  std::int64_t shift = 0;                    // ticks to be added to it
  std::function<std::int64_t()> clock = {};  // nanoseconds since whenever; the steady clock if it is empty
  Touch touch = Touch::Each;
};

class KeyedState final : public StateTable {
 public:
  // `state_size` bytes of state a key, a copy of initial[0, state_size) for a new key. `text_offsets` are those of the string views
  // in the state. A default text of more than 12 bytes stands behind the record in `initial`, its view having the offset in
  // `initial` in place of the pointer. Throws std::invalid_argument for unknown fields and inconsistent arguments.
  KeyedState(std::shared_ptr<const Schema> input, std::span<const std::string> keys, std::size_t state_size,
             std::span<const std::byte> initial, std::span<const std::size_t> text_offsets = {}, const TimeToLive& ttl = {});
  ~KeyedState() override;

  // To be called before the lookups of a run, of so many records: it is `watermark` by event time, and the clock is read. Frees what was
  // forgotten, calling dropped(state) for each before; nothing without a time to live.
  template <typename Dropped>
  void begin_run(std::int64_t watermark, std::size_t records, Dropped&& dropped) {
    if (lives_ == nullptr) return;
    advance(watermark, records);
    for (std::uint32_t slot = next_forgotten(); slot != kNoSlot; slot = next_forgotten()) {
      before_change(slot);
      dropped(state_of(slot_at(slot)));
      release(slot);
    }
    publish();
  }
  void begin_run(std::int64_t watermark, std::size_t records) {
    begin_run(watermark, records, [](void*) {});
  }

  // slots[i] = state of the key of record i, made if it is new. Throws std::bad_alloc. With a time to live two records of a key may have
  // different states, the first of which is forgotten, and valid until the next begin_run.
  void lookup(const std::byte* records, std::size_t count, void** slots);
  // The same for keys made by extractor(); `touched` is when they were, with a time to live.
  void lookup_keys(const StringView* keys, std::size_t count, void** slots, const std::int64_t* touched = nullptr);
  // With Touch::Change: whether records have to be looked up one by one, and touch_if_changed() called behind the function of each.
  [[nodiscard]] bool looks_for_changes() const noexcept;
  void touch_if_changed() noexcept;
  // The state of `key`, null if there is none.
  [[nodiscard]] void* find(const StringView& key) const noexcept;

  // Forgets the key of a state that was looked up.
  void remove(void* state);

  // What rel_keep_text does: `field` is a string view in a state record of this table.
  void keep_text(void* field, const char* text, std::uint32_t bytes) {
    texts_.assign(*static_cast<StringView*>(field), text, bytes);
    text_kept_ = true;
    publish();
  }

  // What is kept like a text but has a form of its own is checked when it is imported; one for each text offset, in their order.
  void check_texts(std::span<const TextCheck> checks) { text_checks_.assign(checks.begin(), checks.end()); }

  // The fields of the state record: for rows, and to import records of an older declaration.
  void describe(std::shared_ptr<const Schema> record) { record_ = std::move(record); }
  // Rows of the key, and of the fields of the record where it is described.
  void write_rows(StateRows& rows) override;
  // Imports the keys of a table with the same keys and an older record, of which each field is here by name, as wide or wider. Other fields
  // are those of a new key. Throws as import_range does, and std::invalid_argument for records that differ otherwise.
  std::size_t import_older(KeyedState& older);

  // Where the texts of the states are; for operators that keep texts, or what is stored like one, without keep_text. They call
  // publish() now and then, so that bytes() is right.
  [[nodiscard]] TextRooms& texts() noexcept { return texts_; }
  void publish() noexcept;

  // The key that a slot belongs to.
  [[nodiscard]] static const StringView& key_of(const void* state) noexcept { return static_cast<const Slot*>(state)[-1].key; }
  [[nodiscard]] static std::uint64_t hash_of_slot(const void* state) noexcept { return static_cast<const Slot*>(state)[-1].hash; }

  // Calls visit(key, state) for all keys in the order in which they came (new keys take the places of removed ones).
  template <typename Visit>
  void for_each(Visit&& visit) {
    (void)for_each_from(0, [&visit](const StringView& key, std::byte* state) {
      visit(key, state);
      return true;
    });
  }
  // The same from place `at` on, as long as visit(key, state) is true. Where to go on, 0 at the end.
  template <typename Visit>
  [[nodiscard]] std::uint64_t for_each_from(std::uint64_t at, Visit&& visit) {
    RE_CHECK(at <= slot_count_);
    for (std::size_t index = at; index < slot_count_; ++index) {
      Slot* slot = slot_at(index);
      if (!is_kept(slot)) continue;
      if (!visit(static_cast<const StringView&>(slot->key), static_cast<std::byte*>(state_of(slot)))) return index;
    }
    return 0;
  }

  // When a state was touched last, as exports have it: an event time, or how long ago it was by the clock; read_touch gives what
  // lookup_keys takes. Nothing, and 0, without a time to live. Throws StateError for times that can't be.
  // `now` is what now_for_touches() gave.
  void write_touch(const void* state, StateWriter& writer, std::int64_t now) const;
  [[nodiscard]] std::int64_t now_for_touches() const;
  // Whether a key hasn't lived for longer than it may: others aren't exported, though they are swept when records come.
  [[nodiscard]] bool is_live(const void* state, std::int64_t now) const noexcept;
  [[nodiscard]] std::int64_t read_touch(StateReader& reader) const;

  void select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const override;
  // Calls visit(key, state) for those of a selection that there still are, from place `at` on, as long as it is true. Where to go on, 0 at
  // the end.
  template <typename Visit>
  [[nodiscard]] std::uint64_t for_each_of(const KeySelection& keys, std::uint64_t at, Visit&& visit) {
    RE_CHECK(at <= keys.slots.size());
    for (; at < keys.slots.size(); ++at) {
      Slot* slot = static_cast<Slot*>(keys.slots[at]);
      if (!is_kept(slot) || !keys.of.contains(slot->hash)) continue;
      if (!visit(static_cast<const StringView&>(slot->key), static_cast<std::byte*>(state_of(slot)))) return at;
    }
    return 0;
  }
  [[nodiscard]] bool exports_aside() const noexcept override { return lives_ == nullptr; }
  [[nodiscard]] std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) override;
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy() override;
  // The same of what an operator keeps in states of its own form. What it changes otherwise than in states that it has just looked up it
  // tells first, by will_change(), which does nothing while there is no copy.
  struct CopyForm {
    const StateMagic* magic;
    std::uint64_t layout;
    // Writes a key and what it has, or nothing; of the operator's thread, or the reader's.
    std::function<void(const StringView& key, const std::byte* state, StateWriter& writer)> write;
    bool tells_all_changes = true;                  // also while there is no copy
    std::vector<std::byte> preamble = {};           // of each chunk, in front of its keys
    std::vector<std::vector<std::byte>> more = {};  // chunks behind those of keys
    // Where writing takes long: the reader takes keys one by one, as the operator does, and calls this behind each.
    std::function<void()> rest = {};
  };
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy(CopyForm form);
  // Whether there is a copy that isn't over: what changes may have to be kept.
  [[nodiscard]] bool is_copied() const noexcept;
  void will_change(void* state) {
    if (copy_ != nullptr) [[unlikely]]
      keep_for_copy(number_of(static_cast<Slot*>(state) - 1));
  }
  std::size_t import_range(std::span<const std::byte> bytes) override;
  void reserve_more(std::size_t keys) override { reserve(size() + keys); }
  std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) override {
    return remove_chunk(keys, at, max_keys, [](std::byte*) {});
  }
  // Calls dropped(state) for each before.
  template <typename Dropped>
  std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys, Dropped&& dropped) {
    std::size_t removed = 0;
    std::size_t ahead = at;
    const std::size_t before = size();
    at = for_each_of(keys, at, [&](const StringView&, std::byte* state) {
      if (removed == max_keys) return false;
      if (removed % kBatch == 0) ahead = fetch_for_removal(keys, ahead);
      will_change(state);
      dropped(state);
      release(unlink(static_cast<Slot*>(static_cast<void*>(state)) - 1));
      ++removed;
      return true;
    });
    RE_CHECK(removed <= max_keys && size() + removed == before);
    if (removed > 0) publish();
    return removed;
  }

  [[nodiscard]] std::size_t size() const noexcept override { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t layout() const noexcept override;
  [[nodiscard]] std::size_t state_size() const noexcept { return state_size_; }
  [[nodiscard]] bool is_mortal() const noexcept { return lives_ != nullptr; }  // with a time to live
  [[nodiscard]] bool ages() const noexcept;                                    // by the clock: what is exported of a key that rests changes
  [[nodiscard]] KeyExtractor& extractor() noexcept { return extractor_; }

 private:
  struct Slot {  // the state record follows
    std::uint64_t hash;
    StringView key;  // or the mark of a removed one
  };
  struct Exported {
    StringView key;  // in the exported bytes, as the state
    std::uint64_t hash;
    std::int64_t touched;
    const std::byte* state;
  };
  class Copy;                                // state/copy/keyed_state_copy.hpp
  struct Lives;                              // what there is with a time to live
  static constexpr std::size_t kBatch = 32;  // keys in flight while memory is prefetched
  static constexpr std::uint32_t kNoSlot = KeyIndex::kNone;
  static constexpr std::int64_t kForgotten = INT64_MIN;  // in place of a touch: the run that goes on may still use the state

  [[nodiscard]] static bool is_removed(const StringView& key) noexcept { return key.length == 0 && key.prefix[0] == 2; }
  [[nodiscard]] static void* state_of(Slot* slot) noexcept { return slot + 1; }
  [[nodiscard]] Slot* slot_at(std::size_t index) const noexcept {
    return reinterpret_cast<Slot*>(blocks_[index >> block_shift_].get() + (index & block_mask_) * stride_);
  }
  [[nodiscard]] std::int64_t& touch_of(const Slot* slot) const noexcept {
    return *reinterpret_cast<std::int64_t*>(reinterpret_cast<std::uintptr_t>(slot) + stride_ - sizeof(std::int64_t));
  }
  [[nodiscard]] bool is_kept(const Slot* slot) const noexcept {
    return !is_removed(slot->key) && (lives_ == nullptr || touch_of(slot) != kForgotten);
  }
  [[nodiscard]] std::vector<Exported> read_keys(std::span<const std::byte> bytes) const;
  [[nodiscard]] std::uint32_t find_number(const StringView& key, std::uint64_t hash) const noexcept;  // of its slot, or kNoSlot
  [[nodiscard]] std::uint32_t number_of(const Slot* slot) const noexcept {
    return index_.find(slot->hash, [this, slot](std::uint32_t number) { return slot_at(number) == slot; });
  }
  void keep_for_copy(std::uint32_t number);
  void before_change(std::uint32_t number) {
    changed_[number >> segment_shift_] = version_;
    if (copy_ != nullptr) [[unlikely]]
      keep_for_copy(number);
  }
  [[nodiscard]] Slot* insert(const StringView& key, std::uint64_t hash);
  template <bool kMortal>
  void lookup_batch(const StringView* keys, std::size_t count, void** slots, const std::int64_t* times);
  void advance(std::int64_t watermark, std::size_t records);
  [[nodiscard]] std::uint32_t next_forgotten();
  [[nodiscard]] bool is_expired(const Slot* slot, std::int64_t time) const noexcept;
  void forget(Slot* slot);
  [[nodiscard]] std::uint32_t unlink(const Slot* slot);
  void release(std::uint32_t number);
  void reserve(std::size_t keys);
  [[nodiscard]] std::size_t fetch_for_removal(const KeySelection& keys, std::size_t at) const noexcept;
  void advance_growth(std::size_t slots) noexcept;

  KeyExtractor extractor_;
  std::size_t state_size_;
  std::vector<std::byte> initial_;
  std::vector<std::size_t> text_offsets_;
  std::vector<TextCheck> text_checks_;
  std::shared_ptr<const Schema> record_ = {};  // null: nobody needs to know
  std::size_t stride_;
  std::size_t block_shift_;
  std::size_t block_mask_;
  std::size_t segment_shift_;
  TextRooms texts_;
  std::unique_ptr<Lives> lives_;        // null without a time to live
  bool text_kept_ = false;              // since the last lookup, with Touch::Change
  std::shared_ptr<Copy> copy_;          // null while nothing has to be kept for one
  std::uint64_t version_ = 0;           // copies that were begun
  std::vector<std::uint64_t> changed_;  // by segment of slots: version_ at its last change

  struct FreeBlock {
    void operator()(std::byte* block) const noexcept;
  };
  std::vector<std::unique_ptr<std::byte[], FreeBlock>> blocks_;
  std::size_t slot_count_ = 0;            // slots ever used, removed ones included
  std::deque<std::uint32_t> free_slots_;  // removed ones; a vector would copy all of them when it grows
  KeyIndex index_;
  std::atomic<std::size_t> size_{0};   // relaxed: a figure for other threads, nothing is published by it
  std::atomic<std::size_t> bytes_{0};  // the same
};

}  // namespace rayelastic
