#include "operators/aggregate/aggregate_step.hpp"

#include "operators/aggregate/ranking.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

StateNeed need_of(AggregateFunction function, Type field) noexcept {
  switch (function) {
    case AggregateFunction::Count:
      return {8, false};
    case AggregateFunction::WeightedMean:
    case AggregateFunction::Stddev:
      return {24, false};
    case AggregateFunction::Distinct:
    case AggregateFunction::Largest:
    case AggregateFunction::Quantile:
    case AggregateFunction::Top:
      return {16, true};
    case AggregateFunction::Sum:
    case AggregateFunction::Mean:
      return {field == Type::Decimal128 ? std::size_t{24} : std::size_t{16}, false};
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::First:
    case AggregateFunction::Last:
    case AggregateFunction::Own:
      break;
  }
  if (is_text(field)) return {24, true};
  return size_of(field) > 8 ? StateNeed{24, false} : StateNeed{16, false};
}

void choose_code(AggregateStep& step) {
  switch (step.aggregate.function) {
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::First:
    case AggregateFunction::Last:
      return choose_selection(step);
    case AggregateFunction::Distinct:
    case AggregateFunction::Largest:
    case AggregateFunction::Quantile:
      return choose_collection(step);
    case AggregateFunction::Top:
      return Ranking::choose_code(step);
    default:
      return choose_sums(step);
  }
}

}  // namespace rayelastic
