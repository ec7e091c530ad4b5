#include "state/copy/keyed_state_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kSlots = CopyMarks::kSlots;

// However little is asked for, a key goes into a chunk.
bool has_room(const StateWriter& writer, std::size_t max_bytes) { return writer.keys() == 0 || writer.size() < max_bytes; }

// Whoever has the claim gives it back, whatever happens: the other thread would wait for ever.
template <typename Done>
struct Claimed {
  Done done;
  ~Claimed() { done(); }
};
template <typename Done>
Claimed(Done) -> Claimed<Done>;

}  // namespace

void KeyedState::Copy::Free::operator()(CopyMarks* marks) const noexcept { std::free(marks); }

KeyedState::Copy::Copy(const KeyedState& table, CopyForm form)
    : table_(table),
      form_(std::move(form)),
      number_(table.version_),
      slots_(table.slot_count_),
      keys_(table.size()),
      segment_count_(table.changed_.size()),
      changed_after_(table.changed_),
      segments_(std::make_unique<Segment[]>(segment_count_)) {
  if (!form_.tells_all_changes) std::ranges::fill(changed_after_, number_);
  RE_CHECK(slots_ <= segment_count_ << table.segment_shift_ && slots_ <= table.blocks_.size() << table.block_shift_);
  blocks_.reserve(table.blocks_.size());
  for (const auto& block : table.blocks_) blocks_.push_back(block.get());
  const std::size_t groups = slots_ / kSlots + 1;
  marks_.reset(static_cast<CopyMarks*>(std::calloc(groups, sizeof(CopyMarks))));  // zeros are marks of which nothing was taken
  if (marks_ == nullptr) throw std::bad_alloc();
}

void KeyedState::Copy::keep(std::uint32_t number) {
  if (number >= slots_) return;
  RE_CHECK(number >> table_.segment_shift_ < segment_count_);
  Segment& segment = segments_[number >> table_.segment_shift_];
  if (segment.is_skipped.load(std::memory_order_relaxed)) return;
  CopyMarks& marks = marks_[number / kSlots];
  const unsigned at = number % kSlots;
  if (!marks.begin_keep(at)) return;
  const Claimed claimed{[&] { marks.kept(at); }};
  const Slot* const slot = slot_at(number);
  if (!table_.is_kept(slot)) return;
  if (segment.aside.empty() || segment.aside.back().size() >= kAsideBytes) segment.aside.push_back(new_writer(kAsideBytes));
  write(slot, segment.aside.back());
}

void KeyedState::Copy::write(const Slot* slot, StateWriter& writer) const {
  form_.write(slot->key, reinterpret_cast<const std::byte*>(slot + 1), writer);
}

void KeyedState::Copy::abandon() noexcept {
  abandoned_.store(true, std::memory_order_relaxed);
  const Lock guard(reading_);
  over_.store(true, std::memory_order_release);
}

std::optional<StateChunk> KeyedState::Copy::next_chunk(std::size_t max_bytes) {
  const Lock guard(reading_);
  while (segment_ < segment_count_) {
    const std::size_t from = segment_;
    StateWriter writer = new_writer(max_bytes);
    (void)writer.append(form_.preamble.data(), form_.preamble.size());
    if (export_segment(writer, max_bytes)) {
      ++segment_;
      piece_ = 0;
    }
    if (writer.keys() == 0) continue;
    given_ = true;
    exported_ += writer.keys();
    RE_CHECK(exported_ <= keys_);  // a key that was kept aside isn't exported again
    return StateChunk{from, writer.finish()};
  }
  RE_CHECK(group_ * kSlots >= slots_);
  over_.store(true, std::memory_order_release);
  if (more_ < form_.more.size()) {
    given_ = true;
    return StateChunk{segment_count_, form_.more[more_++]};
  }
  if (std::exchange(given_, true)) return std::nullopt;
  StateWriter writer = new_writer(0);
  (void)writer.append(form_.preamble.data(), form_.preamble.size());
  return StateChunk{segment_count_, writer.finish()};
}

bool KeyedState::Copy::export_segment(StateWriter& writer, std::size_t max_bytes) {
  RE_CHECK(segment_ < segment_count_);
  const std::size_t behind = std::min((segment_ + 1) << table_.segment_shift_, slots_);
  if (segments_[segment_].is_skipped.load(std::memory_order_relaxed)) {
    given_ = true;
    group_ = (behind + kSlots - 1) / kSlots;
    return true;
  }
  for (; group_ * kSlots < behind; ++group_) {
    if (!has_room(writer, max_bytes)) return false;
    if (abandoned_.load(std::memory_order_relaxed)) throw StateError("the copy of the state was abandoned");
    if (form_.rest) {
      export_singly(group_, writer);
    } else {
      export_group(group_, writer);
    }
  }
  std::vector<StateWriter>& aside = segments_[segment_].aside;
  for (; piece_ < aside.size(); ++piece_) {
    if (!has_room(writer, max_bytes)) return false;
    writer.append_keys(aside[piece_]);
    if (form_.rest) form_.rest();
  }
  RE_CHECK(group_ * kSlots >= behind);
  aside = {};
  return true;
}

void KeyedState::Copy::export_group(std::size_t group, StateWriter& writer) {
  const std::size_t first = group * kSlots;
  const std::size_t behind = std::min(first + kSlots, slots_);
  const std::size_t ahead = std::min(behind + kSlots, slots_);
  for (std::size_t number = behind; number < ahead; ++number) __builtin_prefetch(slot_at(number));
  CopyMarks& marks = marks_[group];
  const std::uint32_t taken = marks.begin_export();
  const Claimed claimed{[&] { marks.exported(); }};
  for (std::size_t number = first; number < behind; ++number) {
    if ((taken >> (number - first) & 1) != 0) continue;
    const Slot* const slot = slot_at(number);
    if (table_.is_kept(slot)) write(slot, writer);
  }
}

void KeyedState::Copy::export_singly(std::size_t group, StateWriter& writer) {
  const std::size_t first = group * kSlots;
  const std::size_t behind = std::min(first + kSlots, slots_);
  CopyMarks& marks = marks_[group];
  for (std::size_t number = first; number < behind; ++number) {
    const auto at = static_cast<unsigned>(number - first);
    if (!marks.begin_keep(at)) continue;
    {
      const Claimed claimed{[&] { marks.kept(at); }};
      if (const Slot* const slot = slot_at(number); table_.is_kept(slot)) write(slot, writer);
    }
    form_.rest();
  }
}

std::shared_ptr<StateCopy> KeyedState::begin_copy(CopyForm form) {
  if (copy_ != nullptr) copy_->abandon();
  ++version_;
  copy_ = std::make_shared<Copy>(*this, std::move(form));
  return copy_;
}

bool KeyedState::is_copied() const noexcept { return copy_ != nullptr && !copy_->is_over(); }

void KeyedState::keep_for_copy(std::uint32_t number) {
  if (copy_->is_over()) {
    copy_.reset();
  } else {
    copy_->keep(number);
  }
}

}  // namespace rayelastic
