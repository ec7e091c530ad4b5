// An Arrow record batch as a row of records: checked once, then read in bulk, column by column, into any buffer. Text
// isn't copied: the records' views point into the batch's buffers, which live as long as chunk() does. Knows no queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "rayelastic/arrow/arrow_c.h"
#include "rayelastic/record/chunk.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

// A batch that doesn't fit a schema; names the field, and the row where there is one.
class ArrowError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ArrowBatch {
 public:
  // Takes the array over (array->release becomes null, also when this throws); `arrow` is only read. Columns are matched by name, further
  // ones are ignored. Formats have to be the fields', except that every text layout will do and that a timestamp's zone isn't compared.
  // Fields that are marked as unread are zero, empty or null, and need no column.
  // Throws ArrowError: a missing or other column, a null in a field that isn't nullable, types that a record can't hold, broken offsets.
  ArrowBatch(std::shared_ptr<const Schema> schema, ArrowArray* array, const ArrowSchema& arrow, const std::vector<bool>& unread = {});

  // Writes rows [first, first + count) as records, every byte of them. The caller keeps within rows().
  void read(std::size_t first, std::size_t count, std::byte* records) const noexcept;

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  // of these rows, not of what a slice keeps alive
  [[nodiscard]] Chunk* chunk() const noexcept { return chunk_.get(); }

  struct Column;
  using Reader = void (*)(const Column&, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept;
  struct Column {
    Reader reader = nullptr;
    const std::uint8_t* validity = nullptr;  // null: all present
    const void* values = nullptr;            // or offsets, or views
    const void* const* heaps = nullptr;      // text bytes, or the buffers of views
    std::size_t offset = 0;                  // first row, in elements
    std::size_t target = 0;                  // byte in the record
    std::size_t width = 0;                   // bytes in the record
    std::int32_t validity_bit = -1;
    bool separate_validity = false;  // the reader leaves it to a second pass
    std::size_t validity_byte = 0;
  };

 private:
  std::shared_ptr<const Schema> schema_;
  ChunkRef chunk_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  bool padded_ = false;  // between fields, which has to be zeroed
};

}  // namespace rayelastic
