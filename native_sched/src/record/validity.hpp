// The validity bits of records.
#pragma once

#include <cstddef>

#include "rayelastic/record/schema.hpp"

namespace rayelastic {

// Marks a field of a record as present, or as null; nothing where the field can't be null.
inline void set_valid(const Field& field, const Schema& schema, std::byte* record, bool valid = true) noexcept {
  if (field.validity < 0) return;
  const auto bit = static_cast<std::size_t>(field.validity);
  std::byte& bits = record[schema.validity_offset() + bit / 8];
  const auto mask = static_cast<std::byte>(1U << (bit % 8));
  bits = valid ? bits | mask : bits & ~mask;
}

}  // namespace rayelastic
