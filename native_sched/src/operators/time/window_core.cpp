#include "operators/time/window_core.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>

#include "record/time_field.hpp"

namespace rayelastic {

WindowCore::WindowCore(std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, const std::vector<std::string>& keys,
                       std::size_t bounds, const std::vector<Aggregate>& aggregates, const TimeToLive& ttl,
                       std::shared_ptr<WindowFunction> function)
    : input_(std::move(input)), output_(std::move(output)), function_(std::move(function)) {
  constexpr std::array<std::byte, sizeof(void*)> kNothing = {};
  table_ = std::make_unique<KeyedState>(input_, keys, kNothing.size(), kNothing, std::span<const std::size_t>(), ttl);
  if (function_ == nullptr) {
    accumulators_.emplace(input_, output_, keys.size() + bounds, aggregates);
    accumulators_->keep_in(table_->texts());
  } else {
    bounds = 2;
    moment_.resize(function_->moment()->record_size());
    if (function_->moment()->fields().size() != keys.size() + bounds) throw std::invalid_argument("moments are the keys, then two times");
  }
  const std::vector<Field>& fields = (function_ == nullptr ? output_ : function_->moment())->fields();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Field& key = *table_->extractor().fields()[i];
    if (fields[i].type != key.type || (key.nullable && !fields[i].nullable))
      throw std::invalid_argument("field '" + fields[i].name + "' can't hold key '" + keys[i] + "'");
    key_fields_.push_back(&fields[i]);
  }
  if (bounds > 0) {
    start_ = &fields[keys.size()];
    end_ = &fields[keys.size() + 1];
  }
  if (bounds > 2) corrected_ = &fields[keys.size() + 2];
}

std::byte* WindowCore::make() {
  if (function_ != nullptr) {
    std::byte* state = nullptr;
    return function_->begin(state) ? state : nullptr;
  }
  if (free_.empty()) {
    blocks_.push_back(std::make_unique<std::uint64_t[]>(words() * kBlockStates));
    free_.reserve(blocks_.size() * kBlockStates);  // so that drop() never fails
    for (std::size_t i = kBlockStates; i-- > 0;) {
      free_.push_back(reinterpret_cast<std::byte*>(blocks_.back().get() + i * words()));
      std::memcpy(free_.back(), accumulators_->initial().data(), accumulators_->state_size());
    }
  }
  std::byte* state = free_.back();
  free_.pop_back();
  return state;
}

void WindowCore::drop(std::byte* state) noexcept {
  if (function_ != nullptr) return function_->drop(state);
  accumulators_->clear(state);
  free_.push_back(state);
}

std::byte* WindowCore::read(StateReader& reader, bool make_it) {
  if (function_ != nullptr) return function_->read(reader, make_it);
  const std::byte* const exported = reader.record(shape());
  if (!make_it) return nullptr;
  std::byte* const state = make();
  shape().restore(exported, state, table_->texts());
  return state;
}

bool WindowCore::give(const void* slot, const std::byte* state, const std::int64_t* bounds, OutputWriter& writer, bool corrected) {
  const std::size_t results = accumulators_->results(state);
  for (std::size_t i = 0; i < results; ++i) {
    std::byte* record = writer.next();
    if (record == nullptr) return false;
    table_->extractor().restore(KeyedState::key_of(slot), *output_, key_fields_, record);
    if (bounds != nullptr) {
      TimeField::write(start_->type, bounds[0], record + start_->offset);
      TimeField::write(end_->type, bounds[1], record + end_->offset);
    }
    if (corrected_ != nullptr) record[corrected_->offset] = static_cast<std::byte>(corrected ? 1 : 0);
    if (!accumulators_->write(state, record, i)) return false;
    writer.detach(record);
    accumulators_->settle();
  }
  return true;
}

bool WindowCore::emit(const void* slot, std::byte* state, const Span& bounds, bool final, bool corrected) {
  std::ranges::fill(moment_, std::byte{0});
  table_->extractor().restore(KeyedState::key_of(slot), *function_->moment(), key_fields_, moment_.data());
  TimeField::write(start_->type, bounds.start, moment_.data() + start_->offset);
  TimeField::write(end_->type, bounds.end, moment_.data() + end_->offset);
  return function_->emit(moment_.data(), state, final, corrected);
}

}  // namespace rayelastic
