#include "rayelastic/net/router/held_records.hpp"

#include <utility>

#include "operator/record_buffer.hpp"

namespace rayelastic {

HeldRecords::HeldRecords(std::size_t record_bytes) : record_bytes_(record_bytes), records_(std::make_unique<RecordBuffer>(record_bytes)) {}

HeldRecords::~HeldRecords() = default;

void HeldRecords::add(const Run& run) {
  total_ += run.count;
  records_->append(run, run.count);
}

std::unique_ptr<RecordBuffer> HeldRecords::take() { return std::exchange(records_, std::make_unique<RecordBuffer>(record_bytes_)); }

std::size_t HeldRecords::size() const noexcept { return records_->size(); }
std::size_t HeldRecords::bytes() const noexcept { return records_->bytes(); }

}  // namespace rayelastic
