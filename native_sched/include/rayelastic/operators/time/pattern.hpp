// Sequences of records of a key, with times within which they have to come: what complex event processing calls a pattern. Native, over
// records; knows neither queues nor threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// The steps of a pattern behind the first one. Step i holds for a record whose mark has bit 2i.
struct PatternStep {
  std::string name = {};
  std::int64_t within = 0;  // ticks behind the record of the step before, at most
  bool strict = false;      // bit 2i + 1 of a mark means that the record breaks what waits for the step
};

struct PatternOptions {
  std::vector<std::string> keys = {};
  std::string time = {};  // the event time, with ticks to be added
  std::int64_t shift = 0;
  std::vector<std::string> fields = {};  // of each step's record, that the output has
  std::vector<PatternStep> steps = {};   // 2 to 31
  bool outer = false;                    // sequences whose next step doesn't come in time are given too
};

// `marks` is an operator that gives an int64 for each record: its mark. All records go by event time, those of equal times as they came. Each
// record for which the first step holds begins a sequence; every sequence takes the next record for which its next step holds. Sequences
// that are complete are given: the keys, then `fields` of each step. With `outer` so are those whose next step doesn't come in time, when the
// watermark is past that time, with null for what there isn't; the last field is then the name of the step, null of those that are complete.
// Late records leave by output port 1. Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_pattern(const std::shared_ptr<Operator>& marks, std::shared_ptr<const Schema> output,
                                                     const PatternOptions& options);

}  // namespace rayelastic
