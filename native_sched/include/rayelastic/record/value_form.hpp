// What a field holds that isn't one plain Arrow value: an enum, a list, a struct, a map, an object of Python's, JSON. And how such a value lies
// in bytes: in a record it is a 16-byte view of them (an enum is the number of its member), so whatever moves text moves these.
//
// The text of a form, the same in rayelastic/graph/records/forms.py; names are percent-encoded:
//   plain       an Arrow C Data Interface format string
//   +e<class;u;one;two>   enum, of texts (u) or of numbers (l)
//   +l<item>  +t<item>    list, as Python's list or tuple
//   +s<class;name=form;name=form>   struct
//   +m<key;value>         map
//   +o  +j                object of Python's (sealed bytes), JSON (its text)
// and ? behind a form that may be null.
//
// Bytes, little-endian, without padding:
//   text, bytes, object, JSON   themselves
//   sequence of n items   u32 n; validity bits, if items may be null; then n values of fixed width, or n u32 ends and the bytes of all items
//   list                  the sequence of its items
//   struct                validity bits of the fields that may be null; then each field's value of fixed width, or u32 end; then the bytes
//   map                   u32 bytes of the keys; sequence of the keys; sequence of the values
// Absent values are zeroes; ends count from the first byte behind the last end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/record/schema.hpp"

namespace rayelastic {

struct ValueForm {
  enum class Kind : std::uint8_t { Plain, Enum, List, Struct, Map, Object, Json };

  Kind kind = Kind::Plain;
  Type type = Type::Int64;  // in a record
  bool nullable = false;
  std::string name;                  // of a struct's field
  std::string format;                // Arrow's; of a value that isn't plain its first letters
  std::vector<ValueForm> children;   // of a list its items, of a map keys and values
  std::vector<std::string> members;  // of an enum, as Arrow has them
  bool numbers = false;              // of an enum: its members are numbers there

  [[nodiscard]] bool is_variable() const noexcept { return type == Type::String || type == Type::Binary; }
  [[nodiscard]] std::size_t width() const noexcept { return is_variable() ? sizeof(std::uint32_t) : size_of(type); }  // among others
};

// Throws std::invalid_argument.
[[nodiscard]] ValueForm parse_form(const std::string& text);

// Bytes that aren't a value of their form.
class ValueError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using ValueBytes = std::span<const char>;

// A sequence; every access is within its bytes, or throws ValueError.
class SequenceView {
 public:
  SequenceView(ValueBytes bytes, const ValueForm& item);

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool is_valid(std::size_t i) const noexcept {
    return !item_->nullable || (static_cast<unsigned char>(bytes_[sizeof(std::uint32_t) + i / 8]) >> (i % 8) & 1U) != 0;
  }
  [[nodiscard]] ValueBytes at(std::size_t i) const;

 private:
  ValueBytes bytes_;
  const ValueForm* item_;
  std::size_t count_ = 0;
  std::size_t begin_ = 0;  // of the values, or of their ends
};

// A struct, likewise.
class StructView {
 public:
  StructView(ValueBytes bytes, const ValueForm& form);

  [[nodiscard]] bool is_valid(std::size_t i) const noexcept;
  [[nodiscard]] ValueBytes at(std::size_t i) const;

 private:
  ValueBytes bytes_;
  const ValueForm* form_;
};

// Keys and values of a map.
struct MapView {
  SequenceView keys, values;
};
[[nodiscard]] MapView map_view(ValueBytes bytes, const ValueForm& form);

// Appends values to `out`: reserve the place of all, then give each in its order.
class ValueWriter {
 public:
  // `count` items of one form.
  ValueWriter(std::string& out, const ValueForm& item, std::size_t count);
  // The fields of a struct.
  ValueWriter(std::string& out, const ValueForm& form);

  void absent();                // the next one is null
  [[nodiscard]] char* fixed();  // where the next one, of fixed width, is to be written
  void begin();                 // the next one, of variable width, is appended from here on...
  void end();                   // ...to here. Throws ValueError: 4 GiB

 private:
  [[nodiscard]] const ValueForm& form() const noexcept { return item_ != nullptr ? *item_ : struct_->children[next_]; }
  void present();

  std::string& out_;
  const ValueForm* item_ = nullptr;
  const ValueForm* struct_ = nullptr;
  std::size_t next_ = 0;
  std::size_t validity_ = 0;  // where it begins
  std::size_t bit_ = 0;
  std::size_t place_ = 0;  // of the next value or end
  std::size_t data_ = 0;   // where the bytes begin
};

// Appends a map: its keys, `keys_written`, its values.
class MapWriter {
 public:
  explicit MapWriter(std::string& out) : out_(out), begin_(out.size()) { out.append(sizeof(std::uint32_t), '\0'); }
  void keys_written();

 private:
  std::string& out_;
  std::size_t begin_;
};

}  // namespace rayelastic
