// The built-in aggregate: groups by key fields and keeps aggregates of other fields, natively. Nulls are ignored as in SQL and Arrow. Without key fields there is one global group, which exists once a tuple came.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

class OwnAggregate;  // own_aggregate.hpp

enum class AggregateFunction : std::uint8_t {
  Count,
  Sum,
  Min,
  Max,
  Mean,
  First,
  Last,
  WeightedMean,  // sum(value * weight) / sum(weight); NaN if the weights sum to 0
  Stddev,        // by Welford; null for as many values as degrees of freedom, or fewer
  Distinct,      // how many different values, exactly
  Largest,       // the value of a rank from above; null if there are fewer
  Quantile,      // of a sketch with relative error: quantile_sketch.hpp; NaNs are left out
  Top,           // of windows, without others beside it: a record of the result for each of the best records, the best first; ranking.hpp
  Own            // a user's, which has no other aggregates beside it and gives all fields of the result
};

struct Aggregate {
  AggregateFunction function = AggregateFunction::Count;
  std::string field = {};  // empty for a count of tuples; a count of a field counts what isn't null
  std::string weight =
      {};  // field of the weights of WeightedMean; First, Last, Top: of the event time by which they go, empty: as they come
  double first =
      0;  // Stddev: degrees of freedom taken away; Largest: rank, from 0; Quantile: probability; First, Last: 1 if nulls count; Top: 1 if the least are best
  double second = 0;  // Largest: ranks kept; Top: records; Quantile: relative error
  std::shared_ptr<OwnAggregate> own = {};
};

[[nodiscard]] inline bool is_first_or_last(AggregateFunction function) noexcept {
  return function == AggregateFunction::First || function == AggregateFunction::Last;
}

// First and Last: whether a null is a value like others.
[[nodiscard]] inline bool counts_nulls(const Aggregate& aggregate) noexcept {
  return is_first_or_last(aggregate.function) && aggregate.first != 0;
}

enum class Emit : std::uint8_t {
  Final,   // one record a key when the input ends, in the order in which the keys came, but for those that came by `partial`
  Update,  // one record for each input record: the aggregates after it
  Run      // one record a key of each run, of this run alone: the first of two steps; nothing is kept between runs
};

// "count", "sum", ...; throws std::invalid_argument. Own has no name.
[[nodiscard]] AggregateFunction aggregate_function_of(std::string_view name);

// The type of an aggregate of a field: count and distinct int64; sum int64 of integers and bool, float64 of floats, duration of
// durations, decimal of decimals; means, stddev and quantile float64; top int64, the place; min, max, first, last, largest the field's own. Throws std::invalid_argument for a sum
// of texts and the like.
[[nodiscard]] Type type_of_aggregate(AggregateFunction function, Type field);

// `output` is the key fields, then one field an aggregate, in order; an aggregate (not a count) of a nullable field is nullable, and so are
// Stddev and Largest.
// Throws std::invalid_argument naming operator and field if input, keys, aggregates and output don't fit. An int64 sum that
// overflows fails the operator; where it takes runs in parts (Operator::takes_partial_runs), a part's sum that does, too. Only with Emit::Update is
// there a time to live. The operator looks its keys up itself: it is not REL_KEYED for the engine. With Emit::Run it has no `store`: there is
// nothing to export.
[[nodiscard]] std::shared_ptr<Operator> make_aggregate(std::string name, std::shared_ptr<const Schema> input,
                                                       std::shared_ptr<const Schema> output, const std::vector<std::string>& keys,
                                                       const std::vector<Aggregate>& aggregates, Emit emit, const TimeToLive& ttl = {});

// The table of an operator that make_aggregate made.
[[nodiscard]] KeyedState& table_of_aggregate(Operator& op);

}  // namespace rayelastic
