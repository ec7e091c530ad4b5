// How keys with a time to live are forgotten (the TTL; what Flink's StateTtlConfig does with OnReadAndWrite, NeverReturnExpired).
//
// A key is expired for a record if the record's time, or the watermark, is more than the time to live after the key's last touch, the
// latest time among its records. For a record that isn't late the watermark says nothing more; a late one comes behind the very watermark
// that makes it late (event_time.cpp). So by event time what is forgotten depends on the records alone, not on runs or threads; only
// where streams are united, or a router holds watermarks back while keys move, may late records see an earlier watermark. A key that
// is expired by the watermark is so for all that may still come: sweeping it changes nothing but memory.
//
// An expired key gets another slot, for functions get the slots of a whole run before they change the first state.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "state/keyed_state_lives.hpp"

namespace rayelastic {

namespace {

// With s slots looked at for a record, r new keys a second and a time to live of T, a slot is in use for T + slots / (s r) at most, so there
// are at most s / (s - 1) times the r T slots that have to be there: twice as many.
constexpr std::size_t kSweepsPerRecord = 2;
constexpr std::int64_t kLongestAge = kLatestTime;  // nanoseconds

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

KeyedState::Lives::Lives(const Schema& input, const TimeToLive& given) : ttl(given.ticks), touch(given.touch) {
  if (ttl < 1 || ttl > kLongestSpan) throw std::invalid_argument("the time to live is too short or too long");
  if (given.field.empty()) {
    clock = given.clock ? given.clock : steady_nanoseconds;
    now = clock();
  } else {
    time.emplace(input, given.field, given.shift);
  }
}

void KeyedState::Lives::times_of(const std::byte* records, std::size_t count, std::size_t stride, std::int64_t* times) const noexcept {
  for (std::size_t i = 0; i < count; ++i) times[i] = time.has_value() ? time->of(records + i * stride) : now;
}

void KeyedState::advance(std::int64_t watermark, std::size_t records) {
  lives_->now = lives_->time.has_value() ? watermark : lives_->clock();
  lives_->sweeps = lives_->now == kNoWatermark ? 0 : std::min(records * kSweepsPerRecord, slot_count_);
}

// Times are within +-2^62 and a shift, times to live at most 2^60: the difference of the two doesn't overflow, that of two times might.
bool KeyedState::is_expired(const Slot* slot, std::int64_t time) const noexcept {
  return touch_of(slot) < std::max(time, lives_->now) - lives_->ttl;
}

bool KeyedState::ages() const noexcept { return lives_ != nullptr && lives_->clock; }

bool KeyedState::looks_for_changes() const noexcept { return lives_ != nullptr && lives_->touch == Touch::Change; }

void KeyedState::touch_if_changed() noexcept {
  Slot* const slot = std::exchange(lives_->looked_up, nullptr);
  RE_CHECK(slot == nullptr || lives_->before.size() >= state_size_);
  if (slot == nullptr || (!text_kept_ && std::memcmp(lives_->before.data(), state_of(slot), state_size_) == 0)) return;
  touch_of(slot) = std::max(touch_of(slot), lives_->looked_up_at);
}

void KeyedState::forget(Slot* slot) {
  lives_->forgotten.push_back(kNoSlot);  // which may throw
  RE_CHECK(touch_of(slot) != kForgotten);
  lives_->forgotten.back() = unlink(slot);
  touch_of(slot) = kForgotten;
}

// An unlinked slot, found by a lookup or swept; kNoSlot if there is none for now.
std::uint32_t KeyedState::next_forgotten() {
  Lives& lives = *lives_;
  if (!lives.forgotten.empty()) {
    const std::uint32_t number = lives.forgotten.back();
    lives.forgotten.pop_back();
    RE_CHECK(number < slot_count_ && touch_of(slot_at(number)) == kForgotten);
    return number;
  }
  for (; lives.sweeps > 0; --lives.sweeps) {
    lives.next = lives.next < slot_count_ ? lives.next : 0;
    const Slot* slot = slot_at(lives.next++);
    if (!is_kept(slot) || !is_expired(slot, lives.now)) continue;
    --lives.sweeps;
    return unlink(slot);
  }
  return kNoSlot;
}

std::int64_t KeyedState::now_for_touches() const { return lives_ == nullptr ? 0 : lives_->clock ? lives_->clock() : lives_->now; }

bool KeyedState::is_live(const void* state, std::int64_t now) const noexcept {
  return lives_ == nullptr || now == kNoWatermark || touch_of(static_cast<const Slot*>(state) - 1) >= now - lives_->ttl;
}

void KeyedState::write_touch(const void* state, StateWriter& writer, std::int64_t now) const {
  if (lives_ == nullptr) return;
  const std::int64_t touch = touch_of(static_cast<const Slot*>(state) - 1);
  const std::int64_t written = lives_->time.has_value() ? touch : std::max<std::int64_t>(0, now - touch);
  RE_CHECK(written != kForgotten);  // as read_touch() reads it
  (void)writer.append(&written, sizeof written);
}

std::int64_t KeyedState::read_touch(StateReader& reader) const {
  if (lives_ == nullptr) return 0;
  std::int64_t read = 0;
  std::memcpy(&read, reader.take(sizeof read), sizeof read);
  const bool by_clock = !lives_->time.has_value();
  if (read == kForgotten || (by_clock && (read < 0 || read > kLongestAge))) throw StateError("exported state has a time that can't be");
  return by_clock ? lives_->clock() - read : read;
}

}  // namespace rayelastic
