// Keyed state as flat bytes, for migration and checkpoints. Little-endian, without padding:
//   header   magic "RELKEYS1" (the format), layout of key and state record, number of keys, bytes after the header (8 bytes each)
//   per key  key length (4), 1 if null (1), key bytes, with a time to live the last touch (8), state record (a long text's pointer as
//            zero), bytes of its long texts
// Import trusts nothing: everything is parsed and compared before anything is changed.
#include <algorithm>
#include <cstring>

#include "keyed_state_lives.hpp"
#include "rayelastic/hash.hpp"
#include "rayelastic/keyed_state.hpp"
#include "rayelastic/state_bytes.hpp"

namespace rayelastic {

namespace {

constexpr char kMagic[8] = {'R', 'E', 'L', 'K', 'E', 'Y', 'S', '1'};

struct Entry {
  StringView key;
  std::uint64_t hash;
  std::int64_t touch;
  const std::byte* state;  // texts of it follow
};

StringView text_at(const std::byte* state, std::size_t offset) {
  StringView text;
  std::memcpy(static_cast<void*>(&text), state + offset, sizeof text);
  return text;
}

}  // namespace

std::uint64_t KeyedState::layout() const noexcept {
  std::uint64_t digest = hash_of(state_size_);
  for (const std::size_t offset : text_offsets_) digest = hash_of(digest ^ offset);
  for (const Field* field : extractor_.fields()) {
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field->type) * 2 + (field->nullable ? 1 : 0)));
  }
  return lives_ == nullptr ? digest : lives_->layout(digest);
}

std::vector<std::byte> KeyedState::export_chunk(std::uint64_t low, std::uint64_t high, std::uint64_t& at, std::size_t max_bytes) {
  StateWriter writer(kMagic, layout());
  at = for_each_from(at, [&](const StringView& key, std::byte* state) {
    const std::uint64_t hash = hash_of_slot(state);
    if (hash < low || hash > high) return true;
    if (writer.keys() > 0 && writer.size() >= max_bytes) return false;
    writer.key(key);
    write_touch(state, writer);
    std::byte* const record = writer.append(state, state_size_);
    for (const std::size_t offset : text_offsets_) {
      const StringView text = text_at(state, offset);
      if (text.is_inline()) continue;
      std::memset(record + offset + offsetof(StringView, rest), 0, sizeof text.rest);
    }
    for (const std::size_t offset : text_offsets_) {
      const StringView text = text_at(state, offset);
      if (!text.is_inline()) (void)writer.append(text.pointer, text.length);
    }
    return true;
  });
  return writer.finish();
}

std::size_t KeyedState::import_range(std::span<const std::byte> bytes) {
  StateReader reader(bytes, kMagic, layout());
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(reader.keys()));
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    Entry entry;
    entry.key = reader.key(extractor_);
    entry.hash = hash_of(entry.key);
    entry.touch = read_touch(reader);
    entry.state = reader.take(state_size_);
    for (const std::size_t offset : text_offsets_) {
      const StringView field = text_at(entry.state, offset);
      if (!field.is_inline()) (void)reader.take(field.length);
    }
    if (find_slot(entry.key, entry.hash) != nullptr) throw StateError("exported state has a key that is here already");
    entries.push_back(entry);
  }
  if (!reader.empty()) throw StateError("exported state has bytes after its last key");

  std::vector<const Entry*> sorted(entries.size());
  std::ranges::transform(entries, sorted.begin(), [](const Entry& entry) { return &entry; });
  std::ranges::sort(sorted, {}, &Entry::hash);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t k = i + 1; k < sorted.size() && sorted[k]->hash == sorted[i]->hash; ++k) {
      if (sorted[k]->key == sorted[i]->key) throw StateError("exported state has a key twice");
    }
  }

  reserve(size() + entries.size());
  for (const Entry& entry : entries) {
    Slot* const slot = insert(entry.key, entry.hash);
    if (lives_ != nullptr) touch_of(slot) = entry.touch;
    auto* state = static_cast<std::byte*>(state_of(slot));
    std::memcpy(state, entry.state, state_size_);
    const auto* next = reinterpret_cast<const char*>(entry.state + state_size_);
    for (const std::size_t offset : text_offsets_) {
      const StringView text = text_at(entry.state, offset);
      const StringView owned = texts_.copy(text.is_inline() ? text.prefix : next, text.length);
      if (!text.is_inline()) next += text.length;
      std::memcpy(state + offset, &owned, sizeof owned);
    }
  }
  publish();
  return entries.size();
}

}  // namespace rayelastic
