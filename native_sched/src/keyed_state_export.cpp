// Keyed state as flat bytes, for migration and checkpoints. Little-endian, without padding:
//   header   magic "RELKEYS1" (the format), layout of key and state record, number of keys, bytes after the header (8 bytes each)
//   per key  key length (4), 1 if null (1), key bytes, with a time to live the last touch (8), state record (a long text's pointer as
//            zero), bytes of its long texts
// Import trusts nothing: everything is parsed and compared before anything is changed.
#include <bit>
#include <utility>

#include "keyed_state_lives.hpp"
#include "rayelastic/hash.hpp"
#include "rayelastic/keyed_state.hpp"
#include "rayelastic/state_bytes.hpp"

namespace rayelastic {

namespace {

constexpr char kMagic[8] = {'R', 'E', 'L', 'K', 'E', 'Y', 'S', '1'};

}  // namespace

std::uint64_t KeyedState::layout() const noexcept {
  std::uint64_t digest = hash_of(state_size_);
  for (const std::size_t offset : text_offsets_) digest = hash_of(digest ^ offset);
  for (const Field* field : extractor_.fields()) {
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field->type) * 2 + (field->nullable ? 1 : 0)));
  }
  return lives_ == nullptr ? digest : lives_->layout(digest);
}

// By the buckets, which have half of each hash and lie close together; then in the order of the places, as memory likes it.
KeySelection KeyedState::select(HashRanges of) const {
  constexpr unsigned kTop = 12;  // bits of a hash that tell for most buckets that they aren't meant
  constexpr std::uint64_t kLowHalf = UINT32_MAX;
  KeySelection found{.of = std::move(of)};
  std::vector<std::uint8_t> may_be(std::size_t{1} << kTop);
  for (std::uint64_t top = 0; top < may_be.size(); ++top) {
    may_be[top] = found.of.overlaps({top << (64 - kTop), (top << (64 - kTop)) | (UINT64_MAX >> kTop)}) ? 1 : 0;
  }
  std::vector<std::uint64_t> chosen(slot_count_ / 64 + 1);  // a bit a slot
  for (const Bucket& bucket : buckets_) {
    if (bucket.slot == 0 || may_be[bucket.tag >> (32 - kTop)] == 0) continue;
    const std::uint64_t least = static_cast<std::uint64_t>(bucket.tag) << 32;
    if (found.of.overlaps({least, least | kLowHalf})) chosen[(bucket.slot - 1) / 64] |= std::uint64_t{1} << (bucket.slot - 1) % 64;
  }
  for (std::size_t word = 0; word < chosen.size(); ++word) {
    for (std::uint64_t bits = chosen[word]; bits != 0; bits &= bits - 1) {
      found.slots.push_back(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
    }
  }
  return found;
}

std::vector<std::byte> KeyedState::export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) {
  StateWriter writer(kMagic, layout(), max_bytes);
  at = for_each_of(keys, at, [&](const StringView& key, std::byte* state) {
    if (writer.keys() > 0 && writer.size() >= max_bytes) return false;
    writer.key(key);
    write_touch(state, writer);
    writer.record(state, {state_size_, text_offsets_});
    return true;
  });
  return writer.finish();
}

std::size_t KeyedState::import_range(std::span<const std::byte> bytes) {
  const RecordShape shape{state_size_, text_offsets_};
  StateReader reader(bytes, kMagic, layout());
  std::vector<StringView> keys;
  std::vector<std::int64_t> touches;
  std::vector<const std::byte*> states;
  keys.reserve(static_cast<std::size_t>(reader.keys()));
  touches.reserve(static_cast<std::size_t>(reader.keys()));
  states.reserve(static_cast<std::size_t>(reader.keys()));
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    keys.push_back(reader.key(extractor_));
    touches.push_back(read_touch(reader));
    states.push_back(reader.record(shape));
    if (find(keys.back()) != nullptr) throw StateError("exported state has a key that is here already");
  }
  if (!reader.empty()) throw StateError("exported state has bytes after its last key");
  check_distinct(keys);

  reserve(size() + keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Slot* const slot = insert(keys[i], hash_of(keys[i]));
    if (lives_ != nullptr) touch_of(slot) = touches[i];
    shape.restore(states[i], static_cast<std::byte*>(state_of(slot)), texts_);
  }
  publish();
  return keys.size();
}

}  // namespace rayelastic
