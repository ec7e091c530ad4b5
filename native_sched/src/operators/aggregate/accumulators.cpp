#include "operators/aggregate/accumulators.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/record/hash.hpp"
#include "record/numbers.hpp"
#include "record/validity.hpp"

namespace rayelastic {

namespace {

constexpr double kMostRanks = 1000;
constexpr double kMostRecords = 1'000'000;  // of a ranking

// Steps of one state: quantiles of one sketch, ranks of one list.
bool share_state(const Aggregate& one, const Aggregate& other) {
  const bool shareable = one.function == AggregateFunction::Quantile || one.function == AggregateFunction::Largest;
  return shareable && one.function == other.function && one.field == other.field && one.second == other.second;
}

std::string overflow_of(const AggregateStep& step) {
  const bool decimal = step.field->type == Type::Decimal128;
  return "the sum of field '" + step.field->name + "' doesn't fit into " + (decimal ? "38 digits" : "int64") +
         "; map the field to float first";
}

void check_parameters(const Aggregate& aggregate) {
  const auto& [function, field, weight, first, second, own] = aggregate;
  if (function == AggregateFunction::Stddev && !(first >= 0)) throw std::invalid_argument("the degrees of freedom are less than 0");
  if (function == AggregateFunction::Quantile && !(first >= 0 && first <= 1 && second > 0 && second < 1))
    throw std::invalid_argument("a quantile needs a probability between 0 and 1 and an error between 0 and 1");
  if (function == AggregateFunction::Largest && !(first >= 0 && first < second && second <= kMostRanks))
    throw std::invalid_argument("the largest values need a rank, from 0, less than how many are kept, at most 1000");
  if (function == AggregateFunction::Top && !(second >= 1 && second <= kMostRecords))
    throw std::invalid_argument("the best records are 1 to 1000000");
}

}  // namespace

Accumulators::Accumulators(std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output, std::size_t first,
                           const std::vector<Aggregate>& aggregates)
    : input_(std::move(input)), output_(std::move(output)), first_(first) {
  const std::vector<Field>& results = output_->fields();
  if (aggregates.empty()) throw std::invalid_argument("nothing to aggregate");
  if (aggregates.size() == 1 && aggregates[0].own != nullptr) {
    own_ = aggregates[0].own;
    own_->check_output(std::span(results).subspan(std::min(first, results.size())));
    initial_.assign(own_->initial().begin(), own_->initial().end());
    text_offsets_.assign(own_->text_offsets().begin(), own_->text_offsets().end());
    text_checks_.assign(own_->text_checks().begin(), own_->text_checks().end());
    return;
  }
  const bool ranks = aggregates.size() == 1 && aggregates[0].function == AggregateFunction::Top;
  if (ranks) {
    ranking_ = std::make_unique<Ranking>(input_, *output_, first);
  } else if (results.size() != first + aggregates.size())
    throw std::invalid_argument("the output schema has to have one field per aggregate, after " + std::to_string(first) + " others");
  for (std::size_t i = 0; i < aggregates.size(); ++i) {
    const Aggregate& aggregate = aggregates[i];
    const auto field_named = [&](const std::string& name) {
      const Field* field = input_->find(name);
      if (field == nullptr) throw std::invalid_argument("there is no field '" + name + "' to aggregate");
      return field;
    };
    check_parameters(aggregate);
    AggregateStep step;
    step.aggregate = aggregate;
    step.input = input_.get();
    step.output = &results[first + i];
    const bool counts = aggregate.function == AggregateFunction::Count;
    if (!counts || !aggregate.field.empty()) step.field = field_named(aggregate.field);
    if (aggregate.function == AggregateFunction::WeightedMean) {
      step.weight = field_named(aggregate.weight);
      (void)type_of_aggregate(AggregateFunction::WeightedMean, step.weight->type);
    }
    if (aggregate.function == AggregateFunction::Top && !ranks) throw std::invalid_argument("a ranking has no aggregates beside it");
    const bool goes_by_time = (ranks || is_first_or_last(aggregate.function)) && !aggregate.weight.empty();
    if (goes_by_time) step.time.emplace(*input_, aggregate.weight);
    if (aggregate.function == AggregateFunction::Distinct) {
      const std::string names[] = {aggregate.field};
      step.value = std::make_shared<KeyExtractor>(input_, names);
    }
    const Type type = step.field == nullptr ? Type::Int64 : step.field->type;
    if (step.output->type != type_of_aggregate(aggregate.function, type))
      throw std::invalid_argument("field '" + step.output->name + "' of the output schema has another type than its aggregate");
    const bool always = aggregate.function == AggregateFunction::Stddev || aggregate.function == AggregateFunction::Largest;
    const bool never = counts || aggregate.function == AggregateFunction::Distinct || ranks;
    const bool may_be_null = always || (!never && (step.field->nullable || (step.weight != nullptr && step.weight->nullable)));
    if (may_be_null && !step.output->nullable)
      throw std::invalid_argument("field '" + step.output->name + "' has to be nullable, because its aggregate may be null");
    choose_code(step);
    const AggregateStep* same = nullptr;
    for (const AggregateStep& earlier : steps_) {
      if (share_state(earlier.aggregate, aggregate)) same = &earlier;
    }
    if (same != nullptr) {
      step.update = nullptr;
      step.merge = nullptr;
      step.state_offset = same->state_offset;
    } else {
      StateNeed need = need_of(aggregate.function, type);
      if (goes_by_time && !ranks) need.bytes += sizeof(std::int64_t);
      step.state_offset = initial_.size();
      if (need.text) {
        text_offsets_.push_back(initial_.size());
        text_checks_.push_back(ranks ? Ranking::check(input_, static_cast<std::size_t>(aggregate.second)) : check_of(aggregate, type));
      }
      initial_.resize(initial_.size() + need.bytes);
    }
    steps_.push_back(std::move(step));
  }
}

void Accumulators::keep_in(TextRooms& rooms) noexcept {
  rooms_ = &rooms;
  if (own_ != nullptr) own_->keep_in(rooms);
  for (AggregateStep& step : steps_) step.rooms = &rooms;
}

bool Accumulators::in_any_order() const noexcept {
  if (own_ != nullptr) return false;  // nobody knows
  return std::ranges::all_of(steps_, [](const AggregateStep& step) {
    switch (step.aggregate.function) {
      case AggregateFunction::Count:
      case AggregateFunction::Min:
      case AggregateFunction::Max:
      case AggregateFunction::Distinct:
      case AggregateFunction::Largest:
      case AggregateFunction::Quantile:
        return true;
      case AggregateFunction::Sum:
        return !is_float(step.field->type);
      default:
        return false;
    }
  });
}

std::uint64_t Accumulators::layout() const noexcept {
  if (own_ != nullptr) return own_->layout();
  std::uint64_t digest = hash_of(state_size());
  for (const AggregateStep& step : steps_) {
    const std::uint64_t type = step.field == nullptr ? 0 : static_cast<std::uint64_t>(step.field->type) + 1;
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(step.aggregate.function) << 32 | type << 16 | step.state_offset));
    digest = hash_of(digest ^ std::bit_cast<std::uint64_t>(step.aggregate.second) ^ (counts_nulls(step.aggregate) ? 1 : 0));
  }
  if (ranking_ != nullptr) digest = hash_of(digest ^ ranking_->layout() ^ std::bit_cast<std::uint64_t>(steps_[0].aggregate.first));
  return digest;
}

std::ptrdiff_t Accumulators::update(const std::byte* records, std::size_t count, void* const* states) {
  if (own_ != nullptr) return own_->add(records, count, states);
  for (const AggregateStep& step : steps_) {
    const std::ptrdiff_t failed = step.update == nullptr ? -1 : step.update(step, records, count, states);
    if (failed < 0) continue;
    problem_ = overflow_of(step);
    return failed;
  }
  return -1;
}

bool Accumulators::merge(std::byte* into, const std::byte* later) {
  if (own_ != nullptr) return own_->merge(into, later);
  for (const AggregateStep& step : steps_) {
    if (step.merge == nullptr || step.merge(step, into + step.state_offset, later + step.state_offset)) continue;
    problem_ = overflow_of(step);
    return false;
  }
  return true;
}

void Accumulators::copy(std::byte* into, const std::byte* from) {
  std::memcpy(into, from, state_size());
  for (const std::size_t offset : text_offsets_) {
    const auto text = load<StringView>(from + offset);
    *reinterpret_cast<StringView*>(into + offset) = rooms_->copy(text.data(), text.length);
  }
}

void Accumulators::clear(std::byte* state) noexcept {
  for (const std::size_t offset : text_offsets_) rooms_->clear(*reinterpret_cast<StringView*>(state + offset));
  std::memcpy(state, initial_.data(), state_size());
}

std::size_t Accumulators::results(const std::byte* state) {
  if (ranking_ == nullptr) return 1;
  ranked_ = &ranking_->in_order(steps_[0], state + steps_[0].state_offset);
  return ranked_->size();
}

bool Accumulators::write(const std::byte* state, std::byte* record, std::size_t number) const {
  if (ranking_ != nullptr) {
    ranking_->write((*ranked_)[number], static_cast<std::int64_t>(number) + 1, *output_, record);
    return true;
  }
  if (own_ != nullptr) return own_->write(state, *output_, std::span(output_->fields()).subspan(first_), record);
  for (const AggregateStep& step : steps_) {
    const Field& field = *step.output;
    const bool valid = step.result(step, state + step.state_offset, record + field.offset);
    if (valid) set_valid(field, *output_, record);
  }
  return true;
}

}  // namespace rayelastic
