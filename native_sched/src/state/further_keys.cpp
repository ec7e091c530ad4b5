#include "rayelastic/state/further_keys.hpp"

#include "record/time_field.hpp"

namespace rayelastic {

FurtherKeys::FurtherKeys(const std::shared_ptr<const Schema>& input, const std::vector<std::string>& keys, const std::string& time,
                         std::int64_t shift)
    : extractor_(input, keys),
      time_(time.empty() ? nullptr : std::make_unique<const TimeField>(*input, time, shift)),
      stride_(input->record_size()) {}
FurtherKeys::~FurtherKeys() = default;
FurtherKeys::FurtherKeys(FurtherKeys&&) noexcept = default;

void FurtherKeys::lookup(KeyedState& table, const std::byte* records, std::size_t count, void** slots) {
  keys_.resize(count);
  extractor_.extract(records, count, keys_.data());
  times_.clear();
  for (std::size_t i = 0; time_ != nullptr && i < count; ++i) times_.push_back(time_->of(records + i * stride_));
  table.lookup_keys(keys_.data(), count, slots, time_ == nullptr ? nullptr : times_.data());
}

}  // namespace rayelastic
