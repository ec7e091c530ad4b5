// Writes encoded values of a column as Arrow arrays: enums as members, lists, structs and maps as such, objects as bytes, JSON as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/record/value_form.hpp"

namespace rayelastic {

// A column as ArrowWriter has gathered it.
struct GatheredColumn {
  std::size_t rows = 0;
  const std::uint8_t* validity = nullptr;  // null: all present
  const std::int32_t* values = nullptr;    // offsets, or numbers of members
  const char* heap = nullptr;
};

// Fills `out`, to be released by its receiver. Throws ArrowError: bytes that aren't values of the field, more than 2 GiB in one array.
void export_column(const Field& field, const GatheredColumn& column, ArrowArray* out);

// Arrow's type of a value, recursively, as batches have it; to be released by its receiver.
void export_form(const ValueForm& form, const std::string& name, bool nullable, ArrowSchema* out);

// The same of a plain one, or the outermost of others, with room for children, which are to be filled.
void export_type(std::string format, std::string name, std::int64_t flags, std::size_t children, ArrowSchema* out);

}  // namespace rayelastic
