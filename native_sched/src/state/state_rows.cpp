#include "rayelastic/state/state_rows.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/state_table.hpp"
#include "record/numbers.hpp"
#include "record/validity.hpp"

namespace rayelastic {

void StateTable::write_rows(StateRows& /*rows*/) { throw StateError("this kind of state has no rows"); }

StateRows::StateRows(std::shared_ptr<const Schema> schema)
    : schema_(std::move(schema)), writer_(schema_), buffer_(kBuffered * schema_->record_size()) {}

StateRows::~StateRows() {
  for (ArrowArray& batch : batches_) batch.release(&batch);
}

void StateRows::add() {
  if (buffered_ == kBuffered) flush();
  ++buffered_;
  ++rows_;
  std::memset(row(), 0, schema_->record_size());
}

const Field& StateRows::field_of(std::size_t field, Type type) const {
  RE_CHECK(buffered_ > 0);  // a row was added
  if (field >= schema_->fields().size() || schema_->fields()[field].type != type)
    throw std::invalid_argument("the schema of the rows isn't that of this state");
  return schema_->fields()[field];
}

void StateRows::set(std::size_t field, std::int64_t value) {
  const Field& target = field_of(field, schema_->fields().at(field).type == Type::Duration ? Type::Duration : Type::Int64);
  store(row() + target.offset, value);
  set_valid(target, *schema_, row());
}

void StateRows::set(std::size_t field, std::string_view text) {
  const Field& target = field_of(field, Type::String);
  store(row() + target.offset, StringView(text.data(), static_cast<std::uint32_t>(text.size())));
  set_valid(target, *schema_, row());
}

void StateRows::set(std::size_t first, const Schema& from, const std::byte* record) {
  for (const Field& field : from.fields()) {
    const Field& target = field_of(first++, field.type);
    if (!from.is_valid(record, field)) continue;
    std::memcpy(row() + target.offset, record + field.offset, size_of(field.type));
    set_valid(target, *schema_, row());
  }
}

void StateRows::set_key(const KeyExtractor& extractor, const StringView& key) {
  std::vector<const Field*> targets;
  for (const Field* const field : extractor.fields()) targets.push_back(&field_of(targets.size(), field->type));
  extractor.restore(key, *schema_, targets, row());
}

void StateRows::flush() {
  for (std::size_t done = 0; done < buffered_;) {
    const std::size_t appended = writer_.append(buffer_.data() + done * schema_->record_size(), buffered_ - done);
    if (appended == 0 && writer_.rows() == 0) throw std::length_error("a text of 2 GiB or more doesn't fit into an Arrow column");
    done += appended;
    RE_CHECK(done <= buffered_);
    if (done < buffered_) take_batch();
  }
  buffered_ = 0;
}

void StateRows::take_batch() {
  batches_.emplace_back();
  writer_.take(&batches_.back());
}

std::vector<ArrowArray> StateRows::finish() {
  flush();
  if (writer_.rows() > 0) take_batch();
  RE_CHECK(rows_ == std::accumulate(batches_.begin(), batches_.end(), std::int64_t{0},
                                    [](std::int64_t rows, const ArrowArray& batch) { return rows + batch.length; }));
  rows_ = 0;
  return std::exchange(batches_, {});
}

}  // namespace rayelastic
