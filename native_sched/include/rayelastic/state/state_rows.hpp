// State as rows, for people: what a table or an operator keeps, in a schema that the reader chooses, as Arrow record batches.
// Whoever keeps state writes its rows from its own slots (StateTable::write_rows). So exported bytes are read in one place only,
// by the import of the table that wrote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "rayelastic/arrow/arrow_c.h"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

class StateRows {
 public:
  explicit StateRows(std::shared_ptr<const Schema> schema);
  ~StateRows();
  StateRows(const StateRows&) = delete;
  StateRows& operator=(const StateRows&) = delete;

  // Starts a row. Its fields are null, or zero where they can't be null. Texts have to stay where they are until finish().
  void add();
  // Set fields of the row by number. Throw std::invalid_argument for a field of another type, or one that doesn't exist.
  void set(std::size_t field, std::int64_t value);
  void set(std::size_t field, std::string_view text);
  // The fields of a record, from number `first` on.
  void set(std::size_t first, const Schema& from, const std::byte* record);
  // The fields of a key, which are the first ones.
  void set_key(const KeyExtractor& extractor, const StringView& key);

  // All rows, as batches that the caller releases.
  [[nodiscard]] std::vector<ArrowArray> finish();

 private:
  static constexpr std::size_t kBuffered = 256;  // rows

  [[nodiscard]] std::byte* row() noexcept { return buffer_.data() + (buffered_ - 1) * schema_->record_size(); }
  [[nodiscard]] const Field& field_of(std::size_t field, Type type) const;
  void flush();
  void take_batch();

  std::shared_ptr<const Schema> schema_;
  ArrowWriter writer_;
  std::vector<std::byte> buffer_;
  std::size_t buffered_ = 0;
  std::int64_t rows_ = 0;
  std::vector<ArrowArray> batches_ = {};
};

}  // namespace rayelastic
