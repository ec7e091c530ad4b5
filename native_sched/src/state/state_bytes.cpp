#include "rayelastic/state/state_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/text/text.h"

namespace rayelastic {

namespace {

constexpr std::size_t kLeastPerKey = 5;                       // bytes
constexpr std::size_t kMostExpected = std::size_t{16} << 20;  // bytes; more is a bound, not what will come

void check_text(const StringView& text) {
  if (rel_text_is_valid(text.data(), text.length) == 0) throw StateError("exported state has a text that isn't UTF-8");
}

StateHeader header_of(std::span<const std::byte> bytes) {
  StateHeader header;
  if (bytes.size() < sizeof header) throw StateError("exported state is shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

StringView text_at(const std::byte* record, std::size_t offset) {
  StringView text;
  std::memcpy(static_cast<void*>(&text), record + offset, sizeof text);
  return text;
}

}  // namespace

TextCheck check_of_texts(Type type) { return type == Type::String ? TextCheck(check_text) : TextCheck(); }

void RecordShape::restore(const std::byte* exported, std::byte* record, TextRooms& rooms) const {
  RE_CHECK(checks.empty() || checks.size() == texts.size());
  std::memcpy(record, exported, size);
  const auto* next = reinterpret_cast<const char*>(exported + size);
  for (const std::size_t offset : texts) {
    const StringView text = text_at(exported, offset);
    const StringView owned = rooms.copy(text.is_inline() ? text.prefix : next, text.length);
    if (!text.is_inline()) next += text.length;
    RE_CHECK(owned.length == text.length);
    std::memcpy(record + offset, &owned, sizeof owned);
  }
}

StateWriter::StateWriter(const StateMagic& magic, std::uint64_t layout, std::size_t expected)
    : header_{.magic = {}, .layout = layout, .keys = 0, .bytes = 0} {
  if (expected <= kMostExpected) bytes_.reserve(expected + expected / 8 + sizeof header_);
  bytes_.resize(sizeof header_);
  std::memcpy(header_.magic, magic, sizeof magic);
}

void StateWriter::key(const StringView& key) {
  RE_CHECK(!is_null_key(key) || key.length == 0);  // as StateReader::key() reads it
  ++header_.keys;
  const std::uint8_t null = is_null_key(key) ? 1 : 0;
  append(&key.length, sizeof key.length);
  append(&null, 1);
  append(key.data(), key.length);
}

std::byte* StateWriter::append(const void* data, std::size_t size) {
  RE_CHECK(bytes_.size() >= sizeof header_);  // else it has finished
  const auto* begin = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), begin, begin + size);
  return bytes_.data() + bytes_.size() - size;
}

void StateWriter::record(const std::byte* record, const RecordShape& shape) {
  const std::size_t start = bytes_.size();
  std::size_t text_bytes = 0;
  std::byte* const copy = append(record, shape.size);
  if (shape.schema != nullptr) {
    RE_CHECK(shape.schema->record_size() == shape.size);
    shape.schema->clear_unused(copy, 1);
  }
  for (const std::size_t offset : shape.texts) {
    RE_CHECK(offset + sizeof(StringView) <= shape.size);
    const StringView text = text_at(copy, offset);
    text_bytes += text.is_inline() ? 0 : text.length;
    if (!text.is_inline()) std::memset(copy + offset + offsetof(StringView, rest), 0, sizeof text.rest);
  }
  for (const std::size_t offset : shape.texts) {
    const StringView text = text_at(bytes_.data() + start, offset);
    if (!text.is_inline()) (void)append(text_at(record, offset).pointer, text.length);
  }
  RE_CHECK(bytes_.size() == start + shape.size + text_bytes);
}

void StateWriter::append_keys(const StateWriter& other) {
  RE_CHECK(header_.layout == other.header_.layout && std::ranges::equal(header_.magic, other.header_.magic));
  header_.keys += other.header_.keys;
  (void)append(other.bytes_.data() + sizeof header_, other.bytes_.size() - sizeof header_);
}

std::vector<std::byte> StateWriter::finish() {
  RE_CHECK(bytes_.size() >= sizeof header_);
  header_.bytes = bytes_.size() - sizeof header_;
  RE_CHECK(header_.keys <= header_.bytes / kLeastPerKey);
  std::memcpy(bytes_.data(), &header_, sizeof header_);
  return std::move(bytes_);
}

StateReader::StateReader(std::span<const std::byte> bytes, const StateMagic& magic, std::uint64_t layout) {
  const StateHeader header = header_of(bytes);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0)
    throw StateError("these bytes aren't exported state of this kind and of this version of the format");
  if (header.layout != layout) throw StateError("exported state is of an operator with other keys or another state record");
  if (header.bytes != bytes.size() - sizeof header) throw StateError("exported state doesn't have the length in its header");
  if (header.keys > header.bytes / kLeastPerKey) throw StateError("exported state is too short for its number of keys");
  bytes_ = bytes.subspan(sizeof header);
  keys_ = header.keys;
  RE_CHECK(bytes_.size() == header.bytes);
}

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
    if (field->type == Type::String) check_text(StringView(bytes + at, static_cast<std::uint32_t>(size)));
    at += size;
  }
  if (at != key.length) refuse();
}

StringView StateReader::key(const KeyExtractor& extractor) {
  const auto size = number<std::uint32_t>();
  const auto null = number<std::uint8_t>();
  if (null > 1 || (null == 1 && size != 0)) throw StateError("exported state has a damaged key");
  const auto* text = reinterpret_cast<const char*>(take(size));
  const StringView key = null == 1 ? null_key() : StringView(text, size);
  check_key(extractor, key);
  return key;
}

const std::byte* StateReader::take(std::size_t size) {
  if (size > bytes_.size()) throw StateError("exported state ends in the middle of a key");
  const std::byte* taken = bytes_.data();
  bytes_ = bytes_.subspan(size);
  RE_CHECK(bytes_.empty() || bytes_.data() == taken + size);
  return taken;
}

const std::byte* StateReader::record(const RecordShape& shape) {
  const std::byte* const record = take(shape.size);
  for (std::size_t i = 0; i < shape.texts.size(); ++i) {
    const StringView text = text_at(record, shape.texts[i]);
    const auto* const bytes = text.is_inline() ? text.prefix : reinterpret_cast<const char*>(take(text.length));
    if (i < shape.checks.size() && shape.checks[i]) shape.checks[i](StringView(bytes, text.length));
  }
  return record;
}

std::uint64_t keys_in(std::span<const std::byte> bytes) { return header_of(bytes).keys; }

void check_distinct(std::span<const StringView> keys) {
  struct Hashed {
    std::uint64_t hash;
    const StringView* key;
  };
  std::vector<Hashed> sorted;
  sorted.reserve(keys.size());
  for (const StringView& key : keys) sorted.push_back({hash_of(key), &key});
  std::ranges::sort(sorted, {}, &Hashed::hash);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t k = i + 1; k < sorted.size() && sorted[k].hash == sorted[i].hash; ++k) {
      if (*sorted[k].key == *sorted[i].key) throw StateError("exported state has a key twice");
    }
  }
}

}  // namespace rayelastic
