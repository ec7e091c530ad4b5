// What joins share: how a record of two is put together, which fields go where; and what the scheduler is told of a join.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operators/time/join.hpp"
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

// With event time (join.left_time, join.right_time) what comes too late is the left input's, on another output.
template <class Join>
[[nodiscard]] OperatorSpec spec_of_join(std::string name, rel_process process, std::shared_ptr<Join> join,
                                        std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                                        std::shared_ptr<const Schema> output, const JoinOptions& options) {
  const bool timed = !options.left_time.empty();
  if (timed) {
    join->left_time.emplace(*left, options.left_time, options.left_shift);
    join->right_time.emplace(*right, options.right_time, options.right_shift);
  }
  OperatorSpec spec;
  spec.store = join;
  spec.process = process;
  spec.flags = timed ? REL_ON_FINISH | REL_ON_WATERMARK : 0U;
  spec.state = std::move(join);
  spec.input = left;
  spec.further_inputs.push_back(std::move(right));
  spec.output = std::move(output);
  if (timed) spec.further_outputs.push_back(std::move(left));
  spec.name = std::move(name);
  return spec;
}

}  // namespace rayelastic
