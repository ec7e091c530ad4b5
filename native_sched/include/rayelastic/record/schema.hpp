// The layout of a record: an aligned C struct, the same bytes being a NumPy structured dtype and a compiled
// function's tuple. Rule (the same in rayelastic/graph/records/schema.py, a test compares them): fields in declared
// order, each at its natural alignment; then one validity bit per nullable field, in field order, bit 0 first,
// 1 = present; size rounded up to 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rayelastic {

enum class Type : std::uint8_t {
  Bool,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  Float32,
  Float64,
  Date32,
  Date64,
  Time32,
  Time64,
  Timestamp,
  Duration,  // stored as their Arrow integers; unit and zone in Field::format
  String,
  Binary,
  Decimal128,  // a little-endian integer of 16 bytes, scale in Field::format
  Uuid         // 16 bytes
};

struct ValueForm;  // value_form.hpp

[[nodiscard]] std::size_t size_of(Type type) noexcept;  // bytes in a record; also the alignment, but at most 8

struct Field {
  std::string name;
  Type type = Type::Int64;
  bool nullable = false;
  std::string format;                          // Arrow C Data Interface format string, e.g. "l", "u", "tsu:UTC"
  std::size_t offset = 0;                      // set by Schema
  std::int32_t validity = -1;                  // bit index in the validity bytes, -1 if not nullable; set by Schema
  std::shared_ptr<const void> known = {};      // what the bindings know of its values; the core never looks at it
  std::shared_ptr<const ValueForm> form = {};  // of a format that begins with '+', else null; set by Schema
};

class Schema {
 public:
  // Lays the fields out. Throws std::invalid_argument naming a duplicate field.
  explicit Schema(std::vector<Field> fields);

  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  [[nodiscard]] std::size_t record_size() const noexcept { return record_size_; }
  [[nodiscard]] std::size_t validity_offset() const noexcept { return validity_offset_; }
  [[nodiscard]] bool has_text() const noexcept { return has_text_; }
  [[nodiscard]] const Field* find(const std::string& name) const noexcept;
  // Zeroes all bytes of records that belong to no value: padding, unused validity bits, and fields that are null. Functions write only
  // values, so memory of something else would leave the process with them.
  void clear_unused(std::byte* records, std::size_t count) const noexcept;

  [[nodiscard]] bool is_valid(const std::byte* record, const Field& field) const noexcept {
    if (field.validity < 0) return true;
    const auto bit = static_cast<std::size_t>(field.validity);
    return (static_cast<std::uint8_t>(record[validity_offset_ + bit / 8]) >> (bit % 8) & 1U) != 0;
  }

 private:
  struct UsedBits {  // of a word of the record that has unused ones
    std::size_t offset;
    std::uint64_t mask;
  };

  void find_unused(std::size_t validity_bits);

  std::vector<Field> fields_;
  std::vector<UsedBits> partly_used_;
  std::size_t record_size_ = 0;
  std::size_t validity_offset_ = 0;
  bool has_text_ = false;
};

// Maps an Arrow format string to a type; throws std::invalid_argument naming `field` and the format otherwise.
[[nodiscard]] Type type_of_format(const std::string& format, const std::string& field);

}  // namespace rayelastic
