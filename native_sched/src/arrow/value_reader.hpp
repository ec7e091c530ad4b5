// Reads columns of enums, lists, structs, maps, objects and JSON: encoded once, when their batch arrives, then read like text or numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/record/value_form.hpp"

namespace rayelastic {

// Rows of a column in the form that ArrowBatch reads: 64-bit offsets and bytes, or numbers of an enum's members.
struct EncodedColumn {
  std::vector<std::int64_t> offsets;
  std::string bytes;
  const void* heap = nullptr;  // of `bytes`
  std::vector<std::int32_t> numbers;
  std::vector<std::uint8_t> validity;
};

// Rows [first, first + count) of a column. Throws ArrowError: another type than the field's, a null that can't be, bounds beyond a buffer, a
// value that is no member.
[[nodiscard]] EncodedColumn encode_column(const Field& field, const ArrowSchema& type, const ArrowArray& array, std::size_t first,
                                          std::size_t count);

}  // namespace rayelastic
