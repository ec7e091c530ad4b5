// How a record of two is put together: which fields go where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rayelastic/record/schema.hpp"

namespace rayelastic {

// A record that is kept until its time has come, or is over.
struct KeptRecord {
  std::int64_t time;
  std::byte* record;
  bool matched = false;  // it has been given with another one
};

struct FieldCopy {
  const Field* from;
  const Field* to;
};

// From fields of a schema to those of the output from number `first` on. Where there may be no record they have to be nullable there, but for
// keys. Throws std::invalid_argument.
[[nodiscard]] inline std::vector<FieldCopy> joined_fields(const Schema& from, std::span<const std::string> names, const Schema& output,
                                                          std::size_t first, bool outer, std::span<const std::string> keys = {}) {
  std::vector<FieldCopy> copies;
  for (const std::string& name : names) {
    const Field* const field = from.find(name);
    if (first >= output.fields().size()) throw std::invalid_argument("the output schema has too few fields");
    const Field& to = output.fields()[first++];
    if (field == nullptr || field->type != to.type)
      throw std::invalid_argument("field '" + to.name + "' of the output schema isn't what it is made of");
    const bool may_lack = outer && std::ranges::find(keys, name) == keys.end();
    if ((field->nullable || may_lack) && !to.nullable)
      throw std::invalid_argument("field '" + to.name + "' of the output schema has to be nullable");
    copies.push_back({field, &to});
  }
  return copies;
}

[[nodiscard]] inline std::vector<std::string> names_of(const Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields()) names.push_back(field.name);
  return names;
}

inline void set_valid(const Field& field, const Schema& schema, std::byte* record) {
  if (field.validity < 0) return;
  const auto bit = static_cast<std::size_t>(field.validity);
  record[schema.validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
}

inline void copy_fields(const std::vector<FieldCopy>& fields, const Schema& from, const std::byte* record, const Schema& to,
                        std::byte* target) {
  for (const FieldCopy& field : fields) {
    if (!from.is_valid(record, *field.from)) continue;  // the target is zero, and so null
    std::memcpy(target + field.to->offset, record + field.from->offset, size_of(field.to->type));
    set_valid(*field.to, to, target);
  }
}

}  // namespace rayelastic
