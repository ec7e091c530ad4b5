#include "rayelastic/record/key_extractor.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "record/numbers.hpp"
#include "record/validity.hpp"

namespace rayelastic {

namespace {

// Equal numbers have equal bytes: one zero, one NaN.
template <typename Float>
void normalise_float(char* bytes) noexcept {
  Float value;
  std::memcpy(&value, bytes, sizeof value);
  if (value == 0) value = 0;
  if (std::isnan(value)) value = std::numeric_limits<Float>::quiet_NaN();
  std::memcpy(bytes, &value, sizeof value);
}

void normalise(Type type, char* bytes) noexcept {
  if (type == Type::Float64) return normalise_float<double>(bytes);
  if (type == Type::Float32) return normalise_float<float>(bytes);
  if (type == Type::Float16) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    if ((bits & 0x7fff) == 0) bits = 0;
    if ((bits & 0x7fff) > 0x7c00) bits = 0x7e00;
    std::memcpy(bytes, &bits, 2);
  }
}

StringView load_text(const std::byte* field) noexcept {
  StringView text;
  std::memcpy(static_cast<void*>(&text), field, sizeof text);
  return text;
}

template <std::uint32_t kBytes>
struct NumberKey {
  Type type;

  StringView operator()(const std::byte* value) const noexcept {
    char bytes[8];  // of the largest number
    std::memcpy(bytes, value, kBytes);
    if (is_float(type)) normalise(type, bytes);
    return StringView(bytes, kBytes);
  }
};

// keys[i] = key_of(field of record i), or the key of null.
template <typename KeyOf>
void extract_each(const Schema& schema, const Field& field, const std::byte* records, std::size_t count, StringView* keys, KeyOf&& key_of) {
  const std::size_t stride = schema.record_size();
  if (field.validity < 0) {
    for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(records + i * stride + field.offset);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    keys[i] = schema.is_valid(record, field) ? key_of(record + field.offset) : null_key();
  }
}

}  // namespace

StringView null_key() noexcept {
  StringView key;
  key.prefix[0] = 1;
  return key;
}

bool is_null_key(const StringView& key) noexcept { return key.length == 0 && key.prefix[0] == 1; }

KeyExtractor::KeyExtractor(std::shared_ptr<const Schema> schema, std::span<const std::string> names) : schema_(std::move(schema)) {
  for (const std::string& name : names) {
    const Field* field = schema_->find(name);
    if (field == nullptr) throw std::invalid_argument("key field '" + name + "' is not a field of the schema");
    fields_.push_back(field);
  }
  if (fields_.size() == 1 && is_text(fields_[0]->type) && !fields_[0]->nullable)
    direct_offset_ = static_cast<std::ptrdiff_t>(fields_[0]->offset);
}

void KeyExtractor::extract(const std::byte* records, std::size_t count, StringView* keys) {
  if (fields_.empty()) {
    for (std::size_t i = 0; i < count; ++i) keys[i] = StringView();
  } else if (fields_.size() == 1) {
    extract_single(records, count, keys);
  } else {
    extract_several(records, count, keys);
  }
}

void KeyExtractor::extract_single(const std::byte* records, std::size_t count, StringView* keys) const {
  const Field& field = *fields_[0];
  if (is_text(field.type)) return extract_each(*schema_, field, records, count, keys, load_text);
  switch (size_of(field.type)) {  // with a size that is known a key takes a few instructions
    case 1:
      return extract_each(*schema_, field, records, count, keys, NumberKey<1>{field.type});
    case 2:
      return extract_each(*schema_, field, records, count, keys, NumberKey<2>{field.type});
    case 4:
      return extract_each(*schema_, field, records, count, keys, NumberKey<4>{field.type});
    case 8:
      return extract_each(*schema_, field, records, count, keys, NumberKey<8>{field.type});
    default:  // it stays where it is
      extract_each(*schema_, field, records, count, keys, [size = static_cast<std::uint32_t>(size_of(field.type))](const std::byte* value) {
        return StringView(reinterpret_cast<const char*>(value), size);
      });
  }
}

void KeyExtractor::extract_several(const std::byte* records, std::size_t count, StringView* keys) {
  const std::size_t stride = schema_->record_size();
  scratch_.clear();
  ends_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride;
    for (const Field* field : fields_) {
      const bool valid = schema_->is_valid(record, *field);
      scratch_.push_back(valid ? 1 : 0);
      if (!valid) continue;
      if (is_text(field->type)) {
        const StringView text = load_text(record + field->offset);
        const auto* length = reinterpret_cast<const char*>(&text.length);
        scratch_.insert(scratch_.end(), length, length + sizeof text.length);
        scratch_.insert(scratch_.end(), text.data(), text.data() + text.length);
      } else {
        const auto* bytes = reinterpret_cast<const char*>(record + field->offset);
        scratch_.insert(scratch_.end(), bytes, bytes + size_of(field->type));
        normalise(field->type, scratch_.data() + scratch_.size() - size_of(field->type));
      }
    }
    ends_.push_back(scratch_.size());
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {  // now that scratch_ doesn't move any more
    if (ends_[i] - begin > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a key of several fields has 4 GiB or more");
    keys[i] = StringView(scratch_.data() + begin, static_cast<std::uint32_t>(ends_[i] - begin));
    begin = ends_[i];
  }
}

void KeyExtractor::restore(const StringView& key, const Schema& target, std::span<const Field* const> targets, std::byte* record) const {
  const char* next = key.data();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Type type = fields_[i]->type;
    const bool single = fields_.size() == 1;
    const bool valid = single ? !is_null_key(key) : *next++ != 0;
    std::byte* place = record + targets[i]->offset;
    set_valid(*targets[i], target, record, valid);
    if (!valid) {
      std::memset(place, 0, size_of(type));
    } else if (!is_text(type)) {
      std::memcpy(place, next, size_of(type));
      next += size_of(type);
    } else {
      std::uint32_t length = key.length;
      if (!single) {
        std::memcpy(&length, next, sizeof length);
        next += sizeof length;
      }
      const StringView text(next, length);
      std::memcpy(place, &text, sizeof text);
      next += length;
    }
  }
}

}  // namespace rayelastic
