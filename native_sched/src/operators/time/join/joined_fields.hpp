// The common part of joins: how the fields of two records are combined, and the operator around the state of a join.
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
#include "rayelastic/state/state_rows.hpp"
#include "record/validity.hpp"

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

inline void copy_fields(const std::vector<FieldCopy>& fields, const Schema& from, const std::byte* record, const Schema& to,
                        std::byte* target) {
  for (const FieldCopy& field : fields) {
    if (!from.is_valid(record, *field.from)) continue;  // the target is zero, and so null
    std::memcpy(target + field.to->offset, record + field.from->offset, size_of(field.to->type));
    set_valid(*field.to, to, target);
  }
}

// Rows of a join's state: the side of a record, then the fields of the left and of the right.
inline void add_left(StateRows& rows, const Schema& left, const std::byte* record) {
  rows.add();
  rows.set(0, "left");
  rows.set(1, left, record);
}
inline void add_right(StateRows& rows, const Schema& left, const Schema& right, const std::byte* record) {
  rows.add();
  rows.set(0, "right");
  rows.set(1 + left.fields().size(), right, record);
}

// Whether a key field of a record is null: such a record matches nothing, as in SQL.
[[nodiscard]] inline bool lacks_key(const KeyExtractor& keys, const std::byte* record) {
  return std::ranges::any_of(keys.fields(), [&](const Field* field) { return !keys.schema().is_valid(record, *field); });
}

// A join by its state. A run of one side: right records are kept (`take_right`; false: stop). Left ones are joined, at their time if there is one
// (`match`; false: stop); late ones go to the output of their own. With event time (left_time, right_time) what comes too late is the left
// input's, on another output.
template <class Join>
class JoinOperator : public Operator {
 public:
  JoinOperator(std::string name, std::unique_ptr<Join> state, const JoinOptions& options)
      : Operator(std::move(name), {state->left, state->right}, outputs_of(*state, options), flags_of(options)), join(std::move(state)) {
    if (options.left_time.empty()) return;
    join->left_time.emplace(*join->left, options.left_time, options.left_shift);
    join->right_time.emplace(*join->right, options.right_time, options.right_shift);
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) final {
    const std::int64_t watermark = join->reached = std::max(join->reached, context->watermark());
    OutputWriter writer(*join->output, out, capacity, context);
    if (!join->begin_run(writer)) return REL_STOPPED;
    const bool from_left = context->port() == 0;
    const std::size_t stride = inputs()[from_left ? 0 : 1]->record_size();
    for (std::int64_t i = 0; i < n; ++i, in += stride) {
      if (!from_left) {
        if (!join->take_right(in, watermark, writer)) return REL_STOPPED;
      } else if (!join->is_timed()) {
        if (!join->match(in, 0, writer)) return REL_STOPPED;
      } else if (const std::int64_t at = join->left_time->of(in); at > watermark) {
        join->waiting.push(in, at, 0);
      } else if (!context->emit(1, in, 1)) {
        return REL_STOPPED;
      }
    }
    join->publish();
    return writer.result();
  }
  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) final {
    join->reached = std::max(join->reached, watermark);
    OutputWriter writer(*join->output, out, capacity, context);
    return join->begin_run(writer) ? advance(join->reached, writer, context) : REL_STOPPED;
  }
  std::int64_t on_port_end(std::byte* out, std::int64_t capacity, rel_context* context) final {
    return on_watermark(context->watermark(), out, capacity, context);
  }
  [[nodiscard]] StateTable* state() final { return join.get(); }

 protected:
  // Without records the time advances, or a port has ended.
  [[nodiscard]] virtual std::int64_t advance(std::int64_t watermark, OutputWriter& writer, rel_context* context) = 0;

  const std::unique_ptr<Join> join;

 private:
  static Schemas outputs_of(const Join& join, const JoinOptions& options) {
    return options.left_time.empty() ? Schemas{join.output} : Schemas{join.output, join.left};
  }
  static std::uint32_t flags_of(const JoinOptions& options) {
    if (!options.left_time.empty()) return REL_ON_FINISH | REL_ON_WATERMARK;
    return options.kind == JoinKind::Pairs ? REL_ON_FINISH | REL_ON_PORT_END : 0;
  }
};

}  // namespace rayelastic
