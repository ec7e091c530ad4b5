// Several streams in the order of their times. Records wait until the watermark, the least of all inputs', has come to them.
#include <algorithm>
#include <stdexcept>

#include "operator/output_writer.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "record/time_field.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

// `reached`: the watermark.
struct Merge final : TimedState {
  std::shared_ptr<const Schema> schema;
  TimeField time;
  WaitingRecords waiting;

  Merge(std::shared_ptr<const Schema> records, TimeField field, std::size_t ports)
      : schema(std::move(records)),
        time(field),
        waiting(
            schema, static_cast<std::uint32_t>(ports), [this](const std::byte* record) { return time.of(record); },
            [](std::int64_t at) { return at; }) {
    keep(nullptr, &waiting);
  }

  [[nodiscard]] std::uint64_t form() const noexcept override { return time.form(); }
};

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& merge = *static_cast<Merge*>(state);
  const std::int64_t watermark = merge.reached = std::max(merge.reached, context->watermark());
  if (n == 0) {
    OutputWriter writer(*merge.schema, out, capacity, context);
    while (merge.waiting.is_due(watermark)) {
      std::byte* record = writer.next();
      if (record == nullptr) return REL_STOPPED;
      std::memcpy(record, merge.waiting.top().record, merge.schema->record_size());
      writer.detach(record);
      merge.waiting.pop();
    }
    if (watermark == kEndOfTime) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
  const auto* record = static_cast<const std::byte*>(in);
  for (std::int64_t i = 0; i < n; ++i, record += merge.schema->record_size()) {
    const std::int64_t at = merge.time.of(record);
    if (at > watermark) {
      merge.waiting.push(record, at, static_cast<std::uint32_t>(context->port()));
    } else if (!context->emit(1, record, 1)) {
      return REL_STOPPED;
    }
  }
  merge.publish();
  return 0;
}

}  // namespace

OperatorSpec make_merge(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports, const std::string& time,
                        std::int64_t shift) try {
  if (ports < 1) throw std::invalid_argument("there is nothing to merge");
  OperatorSpec spec;
  spec.process = process;
  spec.flags = REL_ON_FINISH | REL_ON_WATERMARK;
  auto merge = std::make_shared<Merge>(schema, TimeField(*schema, time, shift), ports);
  spec.store = merge;
  spec.state = std::move(merge);
  spec.input = schema;
  spec.further_inputs.assign(ports - 1, schema);
  spec.output = schema;
  spec.further_outputs.push_back(std::move(schema));
  spec.name = std::move(name);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
