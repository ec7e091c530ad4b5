// Where event time starts: passes records on and says, by watermarks between them, up to which time they have come. Knows no windows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Records may be up to `lateness` ticks behind the greatest time so far; those that are more are late, and find a watermark in front of
// them that says so, exactly: which records are late doesn't depend on how they came in runs. Else there is a watermark after each run.
// Throws std::invalid_argument, naming the operator.
[[nodiscard]] OperatorSpec make_event_time(std::string name, std::shared_ptr<const Schema> schema, const std::string& field,
                                           std::int64_t lateness);

}  // namespace rayelastic
