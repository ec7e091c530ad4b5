// Operators that know the time of day and nothing of event time: a throttle, and a delay. Both hold back whoever submits to them, by making its
// thread wait; a stop ends the wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Both throw std::invalid_argument, naming the operator: no such rate, no such time, no room.

// Passes records on at so many a second on average, evenly, as Schedule says; in parts of what is due in 10 ms, so that a fast one doesn't
// wait for each.
[[nodiscard]] std::shared_ptr<Operator> make_throttle(std::string name, std::shared_ptr<const Schema> schema, double per_second);

// Passes everything on, records and marks, so long after it came. Keeps at most `most` records meanwhile. Somebody has to poke it now and
// then (Scheduler::poke): what is due goes out then, or when something else comes; at the end it waits itself.
[[nodiscard]] std::shared_ptr<Operator> make_delay(std::string name, std::shared_ptr<const Schema> schema, std::chrono::nanoseconds delay,
                                                   std::size_t most);

}  // namespace rayelastic
