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
constexpr std::size_t kFirstBuckets = 64;

std::uint32_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash >> 32); }

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
  rebuild(kFirstBuckets);
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
  std::uint64_t hashes[kBatch];
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = hash_of(keys[i]);
    __builtin_prefetch(&buckets_[hashes[i] & bucket_mask_]);
  }
  std::uint32_t numbers[kBatch];  // of slots that are likely
  for (std::size_t i = 0; i < count; ++i) {
    const Bucket bucket = buckets_[hashes[i] & bucket_mask_];
    const bool likely = bucket.slot != 0 && bucket.tag == tag_of(hashes[i]);
    numbers[i] = likely ? bucket.slot - 1 : kNoSlot;
    if (likely) __builtin_prefetch(slot_at(bucket.slot - 1), 1);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t number = numbers[i];
    Slot* slot = number != kNoSlot ? slot_at(number) : nullptr;
    // What was forgotten in this batch is still in its slot: with a time to live the buckets say what there is.
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
  for (std::size_t index = hash & bucket_mask_;; index = (index + 1) & bucket_mask_) {
    const Bucket bucket = buckets_[index];
    if (bucket.slot == 0) return kNoSlot;
    if (bucket.tag != tag_of(hash)) continue;
    const Slot* slot = slot_at(bucket.slot - 1);
    if (slot->hash == hash && slot->key == key) return bucket.slot - 1;
  }
}

std::size_t KeyedState::bucket_of(const Slot* slot) const noexcept {
  RE_CHECK(size() > 0);
  RE_ASSERT(is_kept(slot) && find_number(slot->key, slot->hash) != kNoSlot);
  std::size_t index = slot->hash & bucket_mask_;
  while (buckets_[index].slot == 0 || slot_at(buckets_[index].slot - 1) != slot) index = (index + 1) & bucket_mask_;
  return index;
}

KeyedState::Slot* KeyedState::insert(const StringView& key, std::uint64_t hash) {
  RE_CHECK(size() + 1 < buckets_.size());  // lookups stop at an empty bucket
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
  place(hash, number);
  size_.store(size() + 1, std::memory_order_relaxed);
  RE_CHECK(size() + free_slots_.size() <= slot_count_);
  RE_CHECK(slot_count_ <= blocks_.size() << block_shift_ && slot_count_ <= changed_.size() << segment_shift_);
  publish();
  return slot;
}

void KeyedState::place(std::uint64_t hash, std::uint32_t number) noexcept {
  RE_CHECK(number < slot_count_);
  std::size_t index = hash & bucket_mask_;
  while (buckets_[index].slot != 0) index = (index + 1) & bucket_mask_;
  buckets_[index] = {tag_of(hash), number + 1};
}

void KeyedState::reserve(std::size_t keys) {
  if (keys <= buckets_.size() / 4 * 3) return;
  rebuild(std::bit_ceil(keys * 2));
  publish();
}

void KeyedState::rebuild(std::size_t buckets) {
  std::vector<Bucket> fresh(std::max(buckets, kFirstBuckets), Bucket{0, 0});
  buckets_.swap(fresh);
  bucket_mask_ = buckets_.size() - 1;
  RE_CHECK((buckets_.size() & bucket_mask_) == 0 && size() < buckets_.size());
  for (std::size_t index = 0; index < slot_count_; ++index) {
    const Slot* slot = slot_at(index);
    if (is_kept(slot)) place(slot->hash, static_cast<std::uint32_t>(index));
  }
  RE_ASSERT(std::ranges::count_if(buckets_, [](const Bucket& bucket) { return bucket.slot != 0; }) == static_cast<std::ptrdiff_t>(size()));
}

void KeyedState::publish() noexcept {
  bytes_.store(buckets_.size() * sizeof(Bucket) + blocks_.size() * (block_mask_ + 1) * stride_ + texts_.bytes(), std::memory_order_relaxed);
}

void KeyedState::remove(void* state) {
  release(unlink(static_cast<Slot*>(state) - 1));
  publish();
}

// Lookups don't find it any more; its number. The buckets behind it move up, as far as they were pushed down by it: lookups stop at the
// first empty one.
std::uint32_t KeyedState::unlink(const Slot* slot) {
  std::size_t hole = bucket_of(slot);
  const std::uint32_t number = buckets_[hole].slot - 1;
  RE_CHECK(slot_at(number) == slot && !is_removed(slot->key));
  for (std::size_t next = (hole + 1) & bucket_mask_; buckets_[next].slot != 0; next = (next + 1) & bucket_mask_) {
    const std::size_t home = slot_at(buckets_[next].slot - 1)->hash & bucket_mask_;
    if (((next - home) & bucket_mask_) < ((next - hole) & bucket_mask_)) continue;
    buckets_[hole] = buckets_[next];
    hole = next;
  }
  buckets_[hole] = {0, 0};
  RE_ASSERT(find_number(slot->key, slot->hash) == kNoSlot);
  size_.store(size() - 1, std::memory_order_relaxed);
  return number;
}

// What unlinking the next keys of a selection from place `at` on will look at, so that their memory arrives together. Up to which place.
std::size_t KeyedState::fetch_for_removal(const KeySelection& keys, std::size_t at) const noexcept {
  constexpr std::size_t kNeighbours = 8;
  const std::size_t end = std::min(at + kBatch, keys.slots.size());
  for (std::size_t i = at; i < end; ++i) __builtin_prefetch(keys.slots[i]);
  for (std::size_t i = at; i < end; ++i) __builtin_prefetch(&buckets_[static_cast<const Slot*>(keys.slots[i])->hash & bucket_mask_]);
  for (std::size_t i = at; i < end; ++i) {
    std::size_t index = static_cast<const Slot*>(keys.slots[i])->hash & bucket_mask_;
    for (std::size_t n = 0; n < kNeighbours && buckets_[index].slot != 0; ++n, index = (index + 1) & bucket_mask_)
      __builtin_prefetch(slot_at(buckets_[index].slot - 1));
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
