// Where the records of a conjunctive operator wait until all its ports have what it wants, as a part of what it keeps: so they are saved and
// go on elsewhere. An operator that has none of these has stages of the engine's, which nobody saves.
#pragma once

#include <memory>
#include <utility>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyless_state.hpp"

namespace rayelastic {

// The stages of an operator with these input ports, and the table of them and of `own`, what it keeps besides (null: nothing).
[[nodiscard]] std::pair<std::shared_ptr<Stages>, std::shared_ptr<StateTable>> make_stages(const Schemas& ports,
                                                                                          std::shared_ptr<KeylessState> own);

}  // namespace rayelastic
