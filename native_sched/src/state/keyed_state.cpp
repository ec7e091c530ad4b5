#include "rayelastic/state/keyed_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "state/copy/keyed_state_copy.hpp"
#include "state/keyed_state_lives.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::size_t kSegmentBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastSegment = CopyMarks::kSlots;
constexpr std::size_t kCacheLine = 64;
// Slots that move to a grown index for each key that is looked up, and more for each new one: the growth ends long before the next.
constexpr std::size_t kMovedByLookup = 2;
constexpr std::size_t kMovedByInsert = 4;

}  // namespace

void KeyedState::FreeBlock::operator()(std::byte* block) const noexcept { ::operator delete[](block, std::align_val_t{kCacheLine}); }

KeyedState::KeyedState(std::shared_ptr<const Schema> input, std::span<const std::string> keys, std::size_t state_size,
                       std::span<const std::byte> initial, std::span<const std::size_t> text_offsets, const TimeToLive& ttl)
    : extractor_(std::move(input), keys), state_size_(state_size), text_offsets_(text_offsets.begin(), text_offsets.end()) {
  if (initial.size() < state_size) throw std::invalid_argument("the initial state has fewer bytes than the state record");
  initial_.assign(initial.begin(), initial.begin() + static_cast<std::ptrdiff_t>(state_size));
  for (const std::size_t offset : text_offsets_) {
    if (offset % alignof(StringView) != 0 || state_size < sizeof(StringView) || offset > state_size - sizeof(StringView)) {
      throw std::invalid_argument("a text field lies outside of the state record");
    }
    StringView text;
    std::memcpy(static_cast<void*>(&text), initial_.data() + offset, sizeof text);
    if (text.is_inline()) continue;
    std::uint64_t place;
    std::memcpy(&place, text.rest, sizeof place);
    if (place < state_size || place > initial.size() || initial.size() - place < text.length) {
      throw std::invalid_argument("the initial text of a state field lies outside of the given bytes");
    }
    text = texts_.share(reinterpret_cast<const char*>(initial.data()) + place, text.length);
    std::memcpy(initial_.data() + offset, &text, sizeof text);
  }
  stride_ = (sizeof(Slot) + state_size + 7) / 8 * 8;
  if (ttl.ticks != 0) {
    lives_ = std::make_unique<Lives>(extractor_.schema(), ttl);
    stride_ += sizeof(std::int64_t);
  }
  const std::size_t slots = std::bit_floor(std::max<std::size_t>(1, kBlockBytes / stride_));
  block_shift_ = static_cast<std::size_t>(std::countr_zero(slots));
  block_mask_ = slots - 1;
  segment_shift_ = static_cast<std::size_t>(std::countr_zero(std::bit_floor(std::max(kLeastSegment, kSegmentBytes / stride_))));
  publish();
}

KeyedState::~KeyedState() = default;

void KeyedState::lookup(const std::byte* records, std::size_t count, void** slots) {
  StringView keys[kBatch];
  std::int64_t times[kBatch];
  const std::size_t stride = extractor_.schema().record_size();
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t n = std::min(kBatch, count - first);
    extractor_.extract(records + first * stride, n, keys);
    if (lives_ == nullptr) {
      lookup_batch<false>(keys, n, slots + first, nullptr);
    } else {
      lives_->times_of(records + first * stride, n, stride, times);
      lookup_batch<true>(keys, n, slots + first, times);
      if (lives_->touch != Touch::Change) continue;
      lives_->looked_up = static_cast<Slot*>(slots[first + n - 1]) - 1;
      lives_->looked_up_at = times[n - 1];
      lives_->before.assign(static_cast<std::byte*>(slots[first + n - 1]), static_cast<std::byte*>(slots[first + n - 1]) + state_size_);
      text_kept_ = false;
    }
  }
}

// Without times keys are touched now, by the clock.
void KeyedState::lookup_keys(const StringView* keys, std::size_t count, void** slots, const std::int64_t* touched) {
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t n = std::min(kBatch, count - first);
    if (lives_ == nullptr) {
      lookup_batch<false>(keys + first, n, slots + first, nullptr);
    } else if (touched != nullptr) {
      lookup_batch<true>(keys + first, n, slots + first, touched + first);
    } else {
      std::int64_t now[kBatch];
      std::fill_n(now, n, lives_->now);
      lookup_batch<true>(keys + first, n, slots + first, now);
    }
  }
}

// Three passes, so that the memory of one key arrives while others are worked on: hashes, slots that are likely, comparison.
template <bool kMortal>
void KeyedState::lookup_batch(const StringView* keys, std::size_t count, void** slots, const std::int64_t* times) {
  RE_CHECK(count <= kBatch);
  reserve(size() + count);
  if (index_.is_behind()) [[unlikely]]
    advance_growth(kMovedByLookup * count);
  std::uint64_t hashes[kBatch];
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = hash_of(keys[i]);
    index_.prefetch(hashes[i]);
  }
  std::uint32_t numbers[kBatch];  // of slots that are likely
  index_.guess(hashes, count, numbers);
  for (std::size_t i = 0; i < count; ++i)
    if (numbers[i] != kNoSlot) __builtin_prefetch(slot_at(numbers[i]), 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t number = numbers[i];
    Slot* slot = number != kNoSlot ? slot_at(number) : nullptr;
    // What was forgotten in this batch is still in its slot: with a time to live the index says what there is.
    if (kMortal || slot == nullptr || slot->hash != hashes[i] || !(slot->key == keys[i])) {
      number = find_number(keys[i], hashes[i]);
      slot = number != kNoSlot ? slot_at(number) : nullptr;
    }
    if (slot != nullptr) before_change(number);
    if constexpr (kMortal) {
      if (slot != nullptr && is_expired(slot, times[i])) {
        forget(slot);
        slot = nullptr;
      }
    }
    const bool fresh = slot == nullptr;
    if (fresh) slot = insert(keys[i], hashes[i]);
    if constexpr (kMortal) {
      if (fresh) {
        touch_of(slot) = times[i];
      } else if (lives_->touch == Touch::Each) {
        touch_of(slot) = std::max(touch_of(slot), times[i]);
      }
    }
    slots[i] = state_of(slot);
  }
}

void* KeyedState::find(const StringView& key) const noexcept {
  const std::uint32_t number = find_number(key, hash_of(key));
  return number == kNoSlot ? nullptr : state_of(slot_at(number));
}

std::uint32_t KeyedState::find_number(const StringView& key, std::uint64_t hash) const noexcept {
  return index_.find(hash, [&](std::uint32_t number) {
    const Slot* const slot = slot_at(number);
    return slot->hash == hash && slot->key == key;
  });
}

KeyedState::Slot* KeyedState::insert(const StringView& key, std::uint64_t hash) {
  RE_CHECK(index_.has_room_for(size() + 1));  // lookups stop at an empty bucket
  RE_ASSERT(find_number(key, hash) == kNoSlot);
  std::uint32_t number;
  if (!free_slots_.empty()) {
    number = free_slots_.back();
    RE_CHECK(number < slot_count_ && is_removed(slot_at(number)->key));
  } else {
    if (slot_count_ == std::numeric_limits<std::uint32_t>::max() - 1)
      throw std::length_error("a keyed state holds at most 4,294,967,294 keys");
    if ((slot_count_ & block_mask_) == 0 && (slot_count_ >> block_shift_) == blocks_.size()) {
      blocks_.emplace_back(static_cast<std::byte*>(::operator new[]((block_mask_ + 1) * stride_, std::align_val_t{kCacheLine})));
    }
    number = static_cast<std::uint32_t>(slot_count_);
    if (number >> segment_shift_ == changed_.size()) changed_.push_back(version_);
  }
  before_change(number);
  const StringView owned = is_null_key(key) ? key : texts_.copy(key.data(), key.length);
  Slot* slot = new (slot_at(number)) Slot{hash, owned};  // nothing throws from here on
  std::memcpy(state_of(slot), initial_.data(), state_size_);
  if (lives_ != nullptr) touch_of(slot) = 0;
  if (free_slots_.empty()) {
    ++slot_count_;
  } else {
    free_slots_.pop_back();
  }
  index_.place(hash, number);
  size_.store(size() + 1, std::memory_order_relaxed);
  RE_CHECK(size() + free_slots_.size() <= slot_count_);
  RE_CHECK(slot_count_ <= blocks_.size() << block_shift_ && slot_count_ <= changed_.size() << segment_shift_);
  if (index_.is_behind()) [[unlikely]]
    advance_growth(kMovedByInsert);
  publish();
  return slot;
}

void KeyedState::reserve(std::size_t keys) {
  if (index_.has_room_for(keys)) return;
  while (index_.is_growing()) advance_growth(slot_count_);  // room for more than twice as many keys is wanted: a large import
  index_.grow(keys, slot_count_);
  publish();
}

void KeyedState::advance_growth(std::size_t slots) noexcept {
  const bool grows = index_.is_growing();
  index_.advance(
      slots, [this](std::uint32_t number) { return is_kept(slot_at(number)); },
      [this](std::uint32_t number) { return slot_at(number)->hash; });
  RE_ASSERT(!grows || index_.is_growing() || index_.count() == size());
}

void KeyedState::publish() noexcept {
  bytes_.store(index_.bytes() + blocks_.size() * (block_mask_ + 1) * stride_ + texts_.bytes(), std::memory_order_relaxed);
}

void KeyedState::remove(void* state) {
  release(unlink(static_cast<Slot*>(state) - 1));
  publish();
}

// Lookups don't find it any more; its number.
std::uint32_t KeyedState::unlink(const Slot* slot) {
  RE_CHECK(size() > 0 && !is_removed(slot->key));
  RE_ASSERT(is_kept(slot));
  const std::uint32_t number = number_of(slot);
  RE_CHECK(number != kNoSlot);
  index_.erase(slot->hash, number, [this](std::uint32_t other) { return slot_at(other)->hash; });
  RE_ASSERT(find_number(slot->key, slot->hash) == kNoSlot);
  size_.store(size() - 1, std::memory_order_relaxed);
  return number;
}

// What unlinking the next keys of a selection from place `at` on will look at, so that their memory arrives together. Up to which place.
std::size_t KeyedState::fetch_for_removal(const KeySelection& keys, std::size_t at) const noexcept {
  constexpr std::size_t kNeighbours = 8;
  const std::size_t end = std::min(at + kBatch, keys.slots.size());
  for (std::size_t i = at; i < end; ++i) __builtin_prefetch(keys.slots[i]);
  for (std::size_t i = at; i < end; ++i) index_.prefetch(static_cast<const Slot*>(keys.slots[i])->hash);
  for (std::size_t i = at; i < end; ++i) {
    const std::uint64_t hash = static_cast<const Slot*>(keys.slots[i])->hash;
    index_.fetch_neighbours(hash, kNeighbours, [this](std::uint32_t number) { __builtin_prefetch(slot_at(number)); });
  }
  return end;
}

// The place of an unlinked slot is free for another key.
void KeyedState::release(std::uint32_t number) {
  RE_CHECK(number < slot_count_ && !is_removed(slot_at(number)->key));
  before_change(number);
  free_slots_.push_back(number);
  Slot* slot = slot_at(number);
  RE_CHECK(size() + free_slots_.size() <= slot_count_);
  for (const std::size_t offset : text_offsets_)
    texts_.clear(*reinterpret_cast<StringView*>(static_cast<std::byte*>(state_of(slot)) + offset));
  texts_.clear(slot->key);
  slot->key.prefix[0] = 2;  // is_removed
}

}  // namespace rayelastic
