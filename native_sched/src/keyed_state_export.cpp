// Keyed state as flat bytes, for migration and checkpoints. Little-endian, without padding:
//   header   magic "RELKEYS1", layout digest, number of keys, bytes after the header (8 bytes each)
//   per key  key length (4), 1 if null (1), key bytes, state record (a long text's pointer as zero), bytes of its long texts
// Import trusts nothing: everything is parsed and compared before anything is changed.
#include <algorithm>
#include <cstring>

#include "rayelastic/hash.hpp"
#include "rayelastic/keyed_state.hpp"

namespace rayelastic {

namespace {

struct Header {
  char magic[8];
  std::uint64_t digest;
  std::uint64_t keys;
  std::uint64_t bytes;
};
constexpr char kMagic[8] = {'R', 'E', 'L', 'K', 'E', 'Y', 'S', '1'};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] const std::byte* take(std::size_t size) {
    if (size > bytes_.size()) throw StateError("exported state ends in the middle of a key");
    const std::byte* taken = bytes_.data();
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  template <typename Value>
  [[nodiscard]] Value read() {
    Value value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

struct Entry {
  StringView key;
  std::uint64_t hash;
  const std::byte* state;  // texts of it follow
};

StringView text_at(const std::byte* state, std::size_t offset) {
  StringView text;
  std::memcpy(static_cast<void*>(&text), state + offset, sizeof text);
  return text;
}

// Keys that extract() can't have made would crash restore() later.
void check_key(const KeyExtractor& extractor, const StringView& key) {
  const auto fields = extractor.fields();
  const auto refuse = [] { throw StateError("exported state has a key of another layout"); };
  const auto is_text = [](const Field* field) { return field->type == Type::String || field->type == Type::Binary; };
  if (is_null_key(key)) {
    if (fields.size() != 1 || !fields[0]->nullable) refuse();
    return;
  }
  std::size_t at = 0;
  const char* bytes = key.data();
  for (const Field* field : fields) {
    const bool single = fields.size() == 1;
    if (!single) {
      if (at == key.length || static_cast<unsigned char>(bytes[at]) > 1 || (bytes[at] == 0 && !field->nullable)) refuse();
      if (bytes[at++] == 0) continue;
    }
    std::size_t size = is_text(field) ? key.length : size_of(field->type);
    if (!single && is_text(field)) {
      std::uint32_t length = 0;
      if (key.length - at < sizeof length) refuse();
      std::memcpy(&length, bytes + at, sizeof length);
      at += sizeof length;
      size = length;
    }
    if (key.length - at < size) refuse();
    at += size;
  }
  if (at != key.length) refuse();
}

}  // namespace

std::uint64_t KeyedState::layout_digest() const {
  std::uint64_t digest = hash_of(state_size_);
  for (const std::size_t offset : text_offsets_) digest = hash_of(digest ^ offset);
  for (const Field* field : extractor_.fields()) {
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field->type) * 2 + (field->nullable ? 1 : 0)));
  }
  return digest;
}

std::vector<std::byte> KeyedState::export_range(std::uint64_t low, std::uint64_t high) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.digest = layout_digest();
  std::vector<std::byte> bytes(sizeof header);
  for_each([&](const StringView& key, std::byte* state) {
    const std::uint64_t hash = hash_of_slot(state);
    if (hash < low || hash > high) return;
    ++header.keys;
    const std::uint8_t null = is_null_key(key) ? 1 : 0;
    append(bytes, &key.length, sizeof key.length);
    append(bytes, &null, 1);
    append(bytes, key.data(), key.length);
    const std::size_t record = bytes.size();
    append(bytes, state, state_size_);
    for (const std::size_t offset : text_offsets_) {
      const StringView text = text_at(state, offset);
      if (text.is_inline()) continue;
      std::memset(bytes.data() + record + offset + offsetof(StringView, rest), 0, sizeof text.rest);
      append(bytes, text.pointer, text.length);
    }
  });
  header.bytes = bytes.size() - sizeof header;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

std::size_t KeyedState::import_range(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header)) throw StateError("exported state is shorter than its header");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) throw StateError("these bytes aren't an exported state of this version");
  if (header.digest != layout_digest()) throw StateError("exported state is of an operator with other keys or another state record");
  if (header.bytes != bytes.size() - sizeof header) throw StateError("exported state doesn't have the length that its header tells");
  if (header.keys > header.bytes / 5) throw StateError("exported state is too short for its number of keys");

  Input input(bytes.subspan(sizeof header));
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(header.keys));
  for (std::uint64_t i = 0; i < header.keys; ++i) {
    const auto length = input.read<std::uint32_t>();
    const auto null = input.read<std::uint8_t>();
    if (null > 1 || (null == 1 && length != 0)) throw StateError("exported state has a damaged key");
    const auto* text = reinterpret_cast<const char*>(input.take(length));
    Entry entry;
    entry.key = null == 1 ? null_key() : StringView(text, length);
    check_key(extractor_, entry.key);
    entry.hash = hash_of(entry.key);
    entry.state = input.take(state_size_);
    for (const std::size_t offset : text_offsets_) {
      const StringView field = text_at(entry.state, offset);
      if (!field.is_inline()) (void)input.take(field.length);
    }
    if (find_slot(entry.key, entry.hash) != nullptr) throw StateError("exported state has a key that is here already");
    entries.push_back(entry);
  }
  if (!input.empty()) throw StateError("exported state has bytes after its last key");

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
    auto* state = static_cast<std::byte*>(state_of(insert(entry.key, entry.hash)));
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
