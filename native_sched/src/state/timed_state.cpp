#include "state/timed_state.hpp"

#include <algorithm>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "record/time_field.hpp"
#include "state/copy/written_copy.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

constexpr char kMagic[8] = {'R', 'E', 'L', 'T', 'I', 'M', 'E', '2'};
constexpr std::size_t kWaitingBytes = std::size_t{4} << 20;  // of a chunk of records that wait
constexpr std::uint64_t kWaiting = std::uint64_t{1} << 63;   // places from here on are of records that wait

bool can_be_reached(std::int64_t time) noexcept { return time == kNoWatermark || (time >= kFirstTime - kLongestSpan && time <= kLastTime); }

bool is_kept(const std::byte* slot) noexcept { return load<void*>(slot) != nullptr; }

}  // namespace

std::uint64_t TimedState::layout() const noexcept {
  std::uint64_t digest = form();
  if (keys_ != nullptr) digest = hash_of(digest ^ keys_->layout());
  if (waiting_ != nullptr) digest = hash_of(digest ^ waiting_->layout());
  return digest;
}

void TimedState::select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const {
  if (keys_ == nullptr) {
    at = 0;
  } else {
    keys_->select_chunk(keys, at, max_places);
  }
}

void TimedState::reserve_more(std::size_t keys) {
  if (keys_ != nullptr) keys_->reserve_more(keys);
}

std::vector<std::byte> TimedState::export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) {
  StateWriter writer(kMagic, layout(), max_bytes);
  write_preamble(keys.of.has_all(), writer);
  if (at < kWaiting) {
    const std::int64_t now = keys_ == nullptr ? 0 : keys_->now_for_touches();
    at = keys_ == nullptr ? 0 : keys_->for_each_of(keys, at, [&](const StringView& key, const std::byte* slot) {
      if (writer.keys() > 0 && writer.size() >= max_bytes) return false;
      if (!is_kept(slot) || !keys_->is_live(slot, now)) return true;
      writer.key(key);
      keys_->write_touch(slot, writer, now);
      write(slot, writer);
      return true;
    });
    RE_CHECK(writer.keys() <= keys.slots.size());
    if (at == 0) at = kWaiting;
  }
  if (at >= kWaiting) {
    std::uint64_t place = at - kWaiting;
    at = waiting_ != nullptr && waiting_->write(writer, keys.of, place, max_bytes) ? kWaiting + place : 0;
  }
  std::vector<std::byte> bytes = writer.finish();
  RE_ASSERT(holds_objects() || read_keys(bytes).size() == keys_in(bytes));  // objects would have to be made
  return bytes;
}

// Records that wait are read at once, in the order in which they are due: there are as many as the watermark is behind.
std::shared_ptr<StateCopy> TimedState::begin_copy(std::function<void()> rest_of_reader) {
  StateWriter preamble(kMagic, layout(), 0);
  write_preamble(true, preamble);
  std::vector<std::vector<std::byte>> rest;
  std::uint64_t place = 0;
  for (bool more = waiting_ != nullptr && !waiting_->empty(); more;) {
    StateWriter writer(kMagic, layout(), kWaitingBytes);
    write_preamble(true, writer);
    more = waiting_->write(writer, HashRanges(), place, kWaitingBytes);
    rest.push_back(writer.finish());
  }
  if (keys_ == nullptr) {
    if (rest.empty()) rest.push_back(preamble.finish());
    return std::make_shared<WrittenCopy>(++copies_, std::move(rest));
  }
  return keys_->begin_copy({.magic = &kMagic,
                            .layout = layout(),
                            .write =
                                [this, now = keys_->now_for_touches()](const StringView& key, const std::byte* slot, StateWriter& writer) {
                                  if (!is_kept(slot) || !keys_->is_live(slot, now)) return;
                                  writer.key(key);
                                  keys_->write_touch(slot, writer, now);
                                  write(slot, writer);
                                },
                            .tells_all_changes = false,
                            .preamble = preamble.body(),
                            .more = std::move(rest),
                            .rest = std::move(rest_of_reader)});
}

void TimedState::write_preamble(bool all, StateWriter& writer) const {
  RE_ASSERT(can_be_reached(reached));
  writer.number(reached);
  writer.number(static_cast<std::uint8_t>(all ? 1 : 0));
  write_common(writer);
}

// Reads exported bytes without a change. Throws StateError.
std::vector<StringView> TimedState::read_keys(std::span<const std::byte> bytes) {
  StateReader reader(bytes, kMagic, layout());
  const auto until = reader.number<std::int64_t>();
  if (!can_be_reached(until)) throw StateError("exported state is of a time that there isn't");
  const auto all = reader.number<std::uint8_t>();
  if (all > 1) throw StateError("exported state is of all keys or of some, and this of neither");
  if (reader.keys() > 0 && keys_ == nullptr) throw StateError("exported state has keys, and this operator has none");
  read_common(reader, false, all == 1);
  std::vector<StringView> keys;
  keys.reserve(static_cast<std::size_t>(reader.keys()));
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    keys.push_back(reader.key(keys_->extractor()));
    (void)keys_->read_touch(reader);
    read(reader, nullptr, until);
  }
  while (waiting_ != nullptr && !reader.empty()) waiting_->read(reader, false);
  if (!reader.empty()) throw StateError("exported state has bytes after its last key");
  return keys;
}

std::size_t TimedState::import_range(std::span<const std::byte> bytes) {
  const std::vector<StringView> keys = read_keys(bytes);
  const auto is_here = [this](const StringView& key) { return keys_->find(key) != nullptr; };
  if (std::ranges::any_of(keys, is_here)) throw StateError("exported state has a key that is here already");
  check_distinct(keys);

  StateReader reader(bytes, kMagic, layout());
  const auto until = reader.number<std::int64_t>();
  const bool all = reader.number<std::uint8_t>() == 1;
  const std::size_t before = size();
  read_common(reader, true, all);
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    const StringView key = reader.key(keys_->extractor());
    const std::int64_t touched = keys_->read_touch(reader);
    void* slot = nullptr;
    keys_->lookup_keys(&key, 1, &slot, &touched);
    read(reader, slot, until);
  }
  while (!reader.empty()) waiting_->read(reader, true);
  if (all) reached = std::max(reached, until);
  RE_CHECK(size() == before + keys.size() && (!all || reached >= until));
  publish();
  return keys.size();
}

std::size_t TimedState::remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) {
  const auto forgotten = [this](std::byte* slot) {
    if (is_kept(slot)) forget(slot);
  };
  const std::size_t removed = keys_ == nullptr ? 0 : keys_->remove_chunk(keys, at, max_keys, forgotten);
  if (at == 0 && waiting_ != nullptr) waiting_->remove(keys.of);
  publish();
  return removed;
}

void TimedState::publish() noexcept {
  if (keys_ != nullptr) keys_->publish();
  kept_bytes_.store(kept_bytes() + (waiting_ == nullptr ? 0 : waiting_->bytes()), std::memory_order_relaxed);
}

}  // namespace rayelastic
