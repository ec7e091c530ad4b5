// Lets an operator go on behind a tuple on which its function failed: the tuple is left out, or goes to an output port of its own
// with the reason. What the function did to the state of the tuple's key before it failed stays.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Says why the function failed on a record. Called while nothing else of the operator runs.
using Explain = std::function<std::string(const std::byte* record)>;

// `inner`: of one input and one output port, no source, sink or Python function. Its function has to be the same for the same input
// but for its state. letters: of the last output port, see DeadLetters; null: failed tuples are left out.
// Throws std::invalid_argument for what can't be made tolerant.
[[nodiscard]] std::shared_ptr<Operator> make_tolerant(const std::shared_ptr<Operator>& inner, std::shared_ptr<const Schema> letters,
                                                      Explain explain);

}  // namespace rayelastic
