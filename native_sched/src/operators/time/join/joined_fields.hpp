// The common part of joins: how the fields of two records are combined, how incoming records are handled, and the description of a join for
// the scheduler.
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

#include "operator/output_writer.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/record/key_extractor.hpp"
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

// Whether a key field of a record is null: such a record matches nothing, as in SQL.
[[nodiscard]] inline bool lacks_key(const KeyExtractor& keys, const std::byte* record) {
  return std::ranges::any_of(keys.fields(), [&](const Field* field) { return !keys.schema().is_valid(record, *field); });
}

// A run of one side. Right records are kept (`take_right`; false: stop). Left ones are joined, at their time if there is one (`match`; false:
// stop); late ones go to the output of their own. Without records the time goes on, by `advance`.
template <class Join, std::int64_t (*advance)(Join&, std::int64_t watermark, OutputWriter&, rel_context*)>
std::int64_t process_join(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& join = *static_cast<Join*>(state);
  const std::int64_t watermark = join.reached = std::max(join.reached, context->watermark());
  OutputWriter writer(*join.output, out, capacity, context);
  if (!join.begin_run(writer)) return REL_STOPPED;
  if (n == 0) return advance(join, watermark, writer, context);
  const bool from_left = context->port() == 0;
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t stride = (from_left ? join.left : join.right)->record_size();
  for (std::int64_t i = 0; i < n; ++i, record += stride) {
    if (!from_left) {
      if (!join.take_right(record, watermark, writer)) return REL_STOPPED;
    } else if (!join.is_timed()) {
      if (!join.match(record, 0, writer)) return REL_STOPPED;
    } else if (const std::int64_t at = join.left_time->of(record); at > watermark) {
      join.waiting.push(record, at, 0);
    } else if (!context->emit(1, record, 1)) {
      return REL_STOPPED;
    }
  }
  join.publish();
  return writer.result();
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
  spec.flags = timed ? REL_ON_FINISH | REL_ON_WATERMARK : options.kind == JoinKind::Pairs ? REL_ON_FINISH | REL_ON_PORT_END : 0U;
  spec.state = std::move(join);
  spec.input = left;
  spec.further_inputs.push_back(std::move(right));
  spec.output = std::move(output);
  if (timed) spec.further_outputs.push_back(std::move(left));
  spec.name = std::move(name);
  return spec;
}

}  // namespace rayelastic
