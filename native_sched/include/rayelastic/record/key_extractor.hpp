// From a record to its key: one canonical 16-byte StringView, so that the keyed table and the hash ring know one kind
// of key only. Equal keys have equal views; null is neither empty nor zero. Knows nothing of tables.
//
//   no field           the empty key: one global group
//   one text field     the text itself, pointing to where the record's text is
//   one fixed field    its bytes, length = size (floats: -0.0 becomes 0.0, every NaN the same NaN, as in Spark's grouping)
//   several fields     for each: a byte 1, then the bytes, for text after a 4-byte length; a byte 0 alone for null
//   one null field     null_key(): length 0 with a mark in the unused bytes, which no text has
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rayelastic/record/schema.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

[[nodiscard]] StringView null_key() noexcept;
[[nodiscard]] bool is_null_key(const StringView& key) noexcept;

class KeyExtractor {
 public:
  // Throws std::invalid_argument naming a field that the schema doesn't have.
  KeyExtractor(std::shared_ptr<const Schema> schema, std::span<const std::string> names);

  // keys[i] = key of record i. Keys of several fields point into this object until the next call.
  void extract(const std::byte* records, std::size_t count, StringView* keys);

  // The single text field whose 16 bytes are the key as they stand, at this offset; -1 if keys have to be built.
  [[nodiscard]] std::ptrdiff_t direct_offset() const noexcept { return direct_offset_; }

  // Writes the key's fields into `record`, whose `targets` stand for the key fields in order. Texts point where the key does.
  void restore(const StringView& key, const Schema& target, std::span<const Field* const> targets, std::byte* record) const;

  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] std::span<const Field* const> fields() const noexcept { return fields_; }

 private:
  void extract_single(const std::byte* records, std::size_t count, StringView* keys) const;
  void extract_several(const std::byte* records, std::size_t count, StringView* keys);

  std::shared_ptr<const Schema> schema_;
  std::vector<const Field*> fields_;
  std::ptrdiff_t direct_offset_ = -1;
  std::vector<char> scratch_;
  std::vector<std::size_t> ends_;
};

}  // namespace rayelastic
