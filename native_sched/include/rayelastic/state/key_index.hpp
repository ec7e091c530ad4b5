// Slot numbers by the hash of their keys: open addressing with linear probing. It grows in steps: nobody waits for a rebuild.
//
// Layout: buckets {high half of the hash, slot number + 1}, at most 3/4 full.
// Growth: a table of twice the size is the new one, and the old one is read beside it. `advance` moves slots in the order of their numbers: those
//   below `moved_` are found in the new table alone, whatever the old one says. New keys go to the new table. When all are moved the old
//   memory is returned piece by piece.
// Owner: one thread at a time. Knows neither keys nor slots: callers pass what compares and hashes them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class KeyIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kLeast = 64;  // buckets

  KeyIndex() : table_(kLeast) {}

  void prefetch(std::uint64_t hash) const noexcept {
    __builtin_prefetch(&table_.at(hash));
    if (is_growing()) [[unlikely]]
      __builtin_prefetch(&old_.at(hash));
  }

  // numbers[i]: a slot that is probably that of a key with hashes[i], if one look suffices; else kNone. There may be another one.
  void guess(const std::uint64_t* hashes, std::size_t count, std::uint32_t* numbers) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      const Bucket bucket = table_.at(hashes[i]);
      numbers[i] = bucket.slot != 0 && bucket.tag == tag_of(hashes[i]) ? bucket.slot - 1 : kNone;
    }
    if (!is_growing()) [[likely]]
      return;
    for (std::size_t i = 0; i < count; ++i) {
      const Bucket before = old_.at(hashes[i]);
      if (numbers[i] == kNone && before.tag == tag_of(hashes[i]) && is_there(before)) numbers[i] = before.slot - 1;
    }
  }

  // The slot of a key: the first of those with its hash for which matches(number) is true; kNone: there is none.
  template <typename Matches>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Matches&& matches) const noexcept {
    for (std::size_t index = hash & table_.mask;; index = (index + 1) & table_.mask) {
      const Bucket bucket = table_.buckets[index];
      if (bucket.slot == 0) break;
      if (bucket.tag == tag_of(hash) && matches(bucket.slot - 1)) return bucket.slot - 1;
    }
    if (!is_growing()) [[likely]]
      return kNone;
    for (std::size_t index = hash & old_.mask;; index = (index + 1) & old_.mask) {
      const Bucket bucket = old_.buckets[index];
      if (bucket.slot == 0) return kNone;
      if (bucket.tag == tag_of(hash) && is_there(bucket) && matches(bucket.slot - 1)) return bucket.slot - 1;
    }
  }

  // Adds a slot whose key isn't here. There has to be room.
  void place(std::uint64_t hash, std::uint32_t number) noexcept { table_.place(hash, number); }

  // Removes a slot that is here. The buckets behind it move up, as far as they were pushed down by it: lookups stop at the first empty one.
  template <typename HashOf>
  void erase(std::uint64_t hash, std::uint32_t number, HashOf&& hash_of) noexcept {
    std::size_t hole = table_.bucket_of(hash, number);
    if (table_.buckets[hole].slot == 0) {
      RE_CHECK(is_growing() && number >= moved_);
      Bucket& bucket = old_.buckets[old_.bucket_of(hash, number)];
      RE_CHECK(bucket.slot == number + 1);
      bucket.slot = kGone;  // not empty: lookups go on behind it
      return;
    }
    for (std::size_t next = (hole + 1) & table_.mask; table_.buckets[next].slot != 0; next = (next + 1) & table_.mask) {
      const std::size_t home = hash_of(table_.buckets[next].slot - 1) & table_.mask;
      if (((next - home) & table_.mask) < ((next - hole) & table_.mask)) continue;
      table_.buckets[hole] = table_.buckets[next];
      hole = next;
    }
    table_.buckets[hole] = {0, 0};
  }

  // Fetches what erasing a slot with this hash will look at.
  template <typename Fetch>
  void fetch_neighbours(std::uint64_t hash, std::size_t count, Fetch&& fetch) const noexcept {
    std::size_t index = hash & table_.mask;
    for (std::size_t n = 0; n < count && table_.buckets[index].slot != 0; ++n, index = (index + 1) & table_.mask)
      fetch(table_.buckets[index].slot - 1);
  }

  [[nodiscard]] bool has_room_for(std::size_t keys) const noexcept { return keys <= table_.size() / 4 * 3; }

  // Makes room for so many keys. `slots`: the number of slots so far, of which place_all() or advance() visits each. Growth that goes on
  // has to be finished first. Throws std::bad_alloc and leaves the index as it is.
  void grow(std::size_t keys, std::size_t slots) {
    RE_CHECK(!is_growing());
    Table fresh(std::max(std::bit_ceil(keys * 2), kLeast));
    if (slots > 0) {
      old_ = std::move(table_);
    }
    table_ = std::move(fresh);
    moved_ = 0;
    to_move_ = slots;
  }

  [[nodiscard]] bool is_growing() const noexcept { return moved_ < to_move_; }
  // Whether advance() has something to do.
  [[nodiscard]] bool is_behind() const noexcept { return is_growing() || old_.buckets != nullptr; }

  // Moves the next slots to the new table. kept(number): whether a slot has a key that is found; hash_of(number): its hash.
  template <typename Kept, typename HashOf>
  void advance(std::size_t slots, Kept&& kept, HashOf&& hash_of) noexcept {
    if (!is_growing()) return old_.give_back(kReturned);
    constexpr std::size_t kAhead = 32;
    for (const std::size_t end = std::min(moved_ + std::min(slots, to_move_), to_move_); moved_ < end;) {
      const std::size_t until = std::min(moved_ + kAhead, end);
      for (std::size_t number = moved_; number < until; ++number)
        __builtin_prefetch(&table_.at(hash_of(static_cast<std::uint32_t>(number))), 1);
      for (; moved_ < until; ++moved_) {
        const auto number = static_cast<std::uint32_t>(moved_);
        if (!kept(number)) continue;
        const std::uint64_t hash = hash_of(number);
        // The place of a removed key may have another one since, which is here already.
        Bucket& bucket = table_.buckets[table_.bucket_of(hash, number)];
        if (bucket.slot == 0) bucket = {tag_of(hash), number + 1};
      }
    }
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return (table_.size() + old_.size()) * sizeof(Bucket); }
  // How many slots are here; walks all buckets.
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t found = 0;
    for (std::size_t index = 0; index < table_.size(); ++index) found += table_.buckets[index].slot != 0 ? 1 : 0;
    return found;
  }

 private:
  struct Bucket {
    std::uint32_t tag;   // high half of the hash
    std::uint32_t slot;  // number + 1, 0 if empty
  };
  static constexpr std::uint32_t kGone = UINT32_MAX;                // no slot has this number
  static constexpr std::size_t kReturned = std::size_t{256} << 10;  // bytes that one step returns

  // Zeroed memory. The system's pages are zeroed when they are touched first, and may be returned in parts.
  struct Table {
    Table() = default;
    explicit Table(std::size_t size);
    Table(Table&& other) noexcept
        : buckets(std::exchange(other.buckets, nullptr)), mask(std::exchange(other.mask, 0)), held(std::exchange(other.held, 0)) {}
    Table& operator=(Table&& other) noexcept {
      std::swap(buckets, other.buckets);
      std::swap(mask, other.mask);
      std::swap(held, other.held);
      return *this;
    }
    ~Table() { give_back(held); }

    void give_back(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t size() const noexcept { return held / sizeof(Bucket); }
    [[nodiscard]] const Bucket& at(std::uint64_t hash) const noexcept { return buckets[hash & mask]; }
    // That of a slot, or the empty one behind all that may have it.
    [[nodiscard]] std::size_t bucket_of(std::uint64_t hash, std::uint32_t number) const noexcept {
      std::size_t index = hash & mask;
      while (buckets[index].slot != 0 && buckets[index].slot != number + 1) index = (index + 1) & mask;
      return index;
    }
    void place(std::uint64_t hash, std::uint32_t number) noexcept {
      std::size_t index = hash & mask;
      while (buckets[index].slot != 0) index = (index + 1) & mask;
      buckets[index] = {tag_of(hash), number + 1};
    }

    Bucket* buckets = nullptr;
    std::size_t mask = 0;
    std::size_t held = 0;  // bytes
  };

  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash >> 32); }
  [[nodiscard]] bool is_there(Bucket bucket) const noexcept { return bucket.slot != kGone && bucket.slot > moved_; }

  Table table_;
  Table old_;                // while it grows, and until its memory is returned
  std::size_t moved_ = 0;    // slots below are in table_
  std::size_t to_move_ = 0;  // slots when the growth began
};

}  // namespace rayelastic
