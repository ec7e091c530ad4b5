#include "rayelastic/record/schema.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "rayelastic/record/value_form.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

struct FormatEntry {
  std::string_view format;
  Type type;
};

// Arrow C Data Interface, "Data type description -- format strings". Zoned timestamps are matched by prefix below.
constexpr std::array kFormats = {
    FormatEntry{"b", Type::Bool},       FormatEntry{"c", Type::Int8},       FormatEntry{"s", Type::Int16},
    FormatEntry{"i", Type::Int32},      FormatEntry{"l", Type::Int64},      FormatEntry{"C", Type::UInt8},
    FormatEntry{"S", Type::UInt16},     FormatEntry{"I", Type::UInt32},     FormatEntry{"L", Type::UInt64},
    FormatEntry{"e", Type::Float16},    FormatEntry{"f", Type::Float32},    FormatEntry{"g", Type::Float64},
    FormatEntry{"tdD", Type::Date32},   FormatEntry{"tdm", Type::Date64},   FormatEntry{"tts", Type::Time32},
    FormatEntry{"ttm", Type::Time32},   FormatEntry{"ttu", Type::Time64},   FormatEntry{"ttn", Type::Time64},
    FormatEntry{"tDs", Type::Duration}, FormatEntry{"tDm", Type::Duration}, FormatEntry{"tDu", Type::Duration},
    FormatEntry{"tDn", Type::Duration}, FormatEntry{"u", Type::String},     FormatEntry{"U", Type::String},
    FormatEntry{"vu", Type::String},    FormatEntry{"z", Type::Binary},     FormatEntry{"Z", Type::Binary},
    FormatEntry{"vz", Type::Binary},
};

}  // namespace

std::size_t size_of(Type type) noexcept {
  switch (type) {
    case Type::Bool:
    case Type::Int8:
    case Type::UInt8:
      return 1;
    case Type::Int16:
    case Type::UInt16:
    case Type::Float16:
      return 2;
    case Type::Int32:
    case Type::UInt32:
    case Type::Float32:
    case Type::Date32:
    case Type::Time32:
      return 4;
    case Type::Int64:
    case Type::UInt64:
    case Type::Float64:
    case Type::Date64:
    case Type::Time64:
    case Type::Timestamp:
    case Type::Duration:
      return 8;
    case Type::String:
    case Type::Binary:
    case Type::Decimal128:
    case Type::Uuid:
      return 16;
  }
  return 0;
}

Schema::Schema(std::vector<Field> fields) : fields_(std::move(fields)) {
  std::unordered_set<std::string_view> names;
  std::size_t end = 0;
  std::int32_t bits = 0;
  for (Field& field : fields_) {
    if (!names.insert(field.name).second) throw std::invalid_argument("field '" + field.name + "' is declared twice");
    const std::size_t size = size_of(field.type);
    field.offset = round_up(end, std::min<std::size_t>(size, 8));
    field.validity = field.nullable ? bits++ : -1;
    if (field.format.starts_with('+')) field.form = std::make_shared<const ValueForm>(parse_form(field.format));
    end = field.offset + size;
    has_text_ = has_text_ || field.type == Type::String || field.type == Type::Binary;
  }
  validity_offset_ = end;
  record_size_ = std::max<std::size_t>(8, round_up(end + (static_cast<std::size_t>(bits) + 7) / 8, 8));
  find_unused(static_cast<std::size_t>(bits));
}

void Schema::find_unused(std::size_t validity_bits) {
  std::vector<std::uint8_t> used(record_size_, 0);
  for (const Field& field : fields_) {
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(field.offset), size_of(field.type), std::uint8_t{0xFF});
  }
  for (std::size_t bit = 0; bit < validity_bits; ++bit) used[validity_offset_ + bit / 8] |= static_cast<std::uint8_t>(1U << (bit % 8));
  for (std::size_t offset = 0; offset < record_size_; offset += 8) {
    std::uint64_t mask;
    std::memcpy(&mask, used.data() + offset, sizeof mask);
    if (mask != UINT64_MAX) partly_used_.push_back({offset, mask});
  }
}

void Schema::clear_unused(std::byte* records, std::size_t count) const noexcept {
  for (const auto& [offset, mask] : partly_used_) {
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const place = records + i * record_size_ + offset;
      std::uint64_t word;
      std::memcpy(&word, place, sizeof word);
      word &= mask;
      std::memcpy(place, &word, sizeof word);
    }
  }
  for (const Field& field : fields_) {
    for (std::size_t i = 0; field.nullable && i < count; ++i) {
      std::byte* const record = records + i * record_size_;
      if (!is_valid(record, field)) std::memset(record + field.offset, 0, size_of(field.type));
    }
  }
}

const Field* Schema::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  return found == fields_.end() ? nullptr : &*found;
}

Type type_of_format(const std::string& format, const std::string& field) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.format == format) return entry.type;
  }
  if (format.size() >= 4 && format.starts_with("ts") && std::string_view("smun").find(format[2]) != std::string_view::npos &&
      format[3] == ':')
    return Type::Timestamp;
  if (format.starts_with("d:")) return Type::Decimal128;
  if (format == "w:16") return Type::Uuid;
  if (format.starts_with("+")) return parse_form(format).type;
  throw std::invalid_argument("field '" + field + "' has Arrow format '" + format + "', which a record can't hold");
}

}  // namespace rayelastic
