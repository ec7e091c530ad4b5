// Several streams in the order of their times. Records wait until the watermark, the least of all inputs', has come to them.
#include <algorithm>
#include <stdexcept>

#include "operator/output_writer.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/state/state_rows.hpp"
#include "record/time_field.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

// `reached`: the watermark.
class MergeOperator final : public Operator, public TimedState {
 public:
  MergeOperator(std::string name, const std::shared_ptr<const Schema>& schema, TimeField field, std::size_t ports)
      : Operator(std::move(name), Schemas(ports, schema), {schema, schema}, REL_ON_FINISH | REL_ON_WATERMARK),
        time_(field),
        waiting_(
            schema, static_cast<std::uint32_t>(ports), [this](const std::byte* record) { return time_.of(record); },
            [](std::int64_t at) { return at; }) {
    keep(nullptr, &waiting_);
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    reached = std::max(reached, context->watermark());
    for (std::int64_t i = 0; i < n; ++i, in += inputs().front()->record_size()) {
      const std::int64_t at = time_.of(in);
      if (at > reached) {
        waiting_.push(in, at, static_cast<std::uint32_t>(context->port()));
      } else if (!context->emit(1, in, 1)) {
        return REL_STOPPED;
      }
    }
    publish();
    return 0;
  }
  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) override {
    reached = std::max(reached, watermark);
    OutputWriter writer(*outputs().front(), out, capacity, context);
    while (waiting_.is_due(reached)) {
      std::byte* record = writer.next();
      if (record == nullptr) return REL_STOPPED;
      std::memcpy(record, waiting_.top().record, outputs().front()->record_size());
      writer.detach(record);
      waiting_.pop();
    }
    if (reached == kEndOfTime) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, reached});
    return 0;
  }
  [[nodiscard]] StateTable* state() override { return this; }
  [[nodiscard]] std::uint64_t form() const noexcept override { return time_.form(); }
  // Rows of the number of an input, and the fields of a record.
  void write_rows(StateRows& rows) override {
    waiting_.for_each([&](const Waiting& each) {
      rows.add();
      rows.set(0, std::int64_t{each.port});
      rows.set(1, *inputs().front(), each.record);
    });
  }

 private:
  const TimeField time_;
  WaitingRecords waiting_;
};

}  // namespace

std::shared_ptr<Operator> make_merge(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports, const std::string& time,
                                     std::int64_t shift) try {
  if (ports < 1) throw std::invalid_argument("there is nothing to merge");
  return std::make_shared<MergeOperator>(name, schema, TimeField(*schema, time, shift), ports);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
