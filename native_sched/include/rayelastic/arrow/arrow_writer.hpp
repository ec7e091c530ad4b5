// Records as growing Arrow columns, given away as a record batch whenever the caller likes. Copies everything, text too: the
// batch stands for itself. Text columns have 32-bit offsets (formats u, z) unless the field's format is U or Z.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rayelastic/arrow/arrow_c.h"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

// Fills `out` with the struct schema of batches of this writer; to be released by its receiver.
void export_schema(const Schema& schema, ArrowSchema* out);

class ArrowWriter {
 public:
  static constexpr std::size_t kMostTextBytes = 0x7fffffff;

  // most_text_bytes is what 32-bit offsets of one column can reach, or less.
  explicit ArrowWriter(std::shared_ptr<const Schema> schema, std::size_t expected_rows = 0, std::size_t most_text_bytes = kMostTextBytes);
  ~ArrowWriter();
  ArrowWriter(const ArrowWriter&) = delete;
  ArrowWriter& operator=(const ArrowWriter&) = delete;

  // Appends records, all of them or as many as fit before a text column with 32-bit offsets is full; returns how many.
  [[nodiscard]] std::size_t append(const std::byte* records, std::size_t count);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  // Moves what was appended into `out`, to be released by its receiver, and starts anew.
  void take(ArrowArray* out);

  struct Column;

 private:
  std::shared_ptr<const Schema> schema_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
  std::size_t expected_rows_;
  std::size_t most_text_bytes_;
};

}  // namespace rayelastic
