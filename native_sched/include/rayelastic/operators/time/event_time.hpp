// Where event time starts: passes records on and says, by watermarks between them, up to which time they have come. Knows no windows.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// What becomes of the time when no record has come for so long. Somebody has to poke the operator now and then (Scheduler::poke).
struct Idleness {
  std::chrono::nanoseconds after{0};  // 0: it is never idle
  double ticks_per_second = 0;        // above 0: the watermark goes on with the clock; else it doesn't keep those of other streams waiting
};

// How far records may be ahead of the clock of this machine, which counts from 1970; those that are more go by output port 1.
struct Ahead {
  std::chrono::nanoseconds most{0};
  double ticks_per_second = 0;  // 0: as far as they like, and there is no such port
};

// With `splits` each split that the marks of its stream tell of (splits.hpp) has a watermark of its own, and the least of them counts;
// without, the whole stream is one. Records may be up to `lateness` ticks behind the greatest time of their split so far; those that are more are late, and find a watermark in front of
// them that says so, exactly: which records are late doesn't depend on how they came in runs. Else there is a watermark after each run.
// Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_event_time(std::string name, std::shared_ptr<const Schema> schema, const std::string& field,
                                                        std::int64_t lateness, Idleness idleness = {}, bool splits = false,
                                                        Ahead ahead = {});

}  // namespace rayelastic
