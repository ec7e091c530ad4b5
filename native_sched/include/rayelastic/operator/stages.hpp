// Where the records of a conjunctive operator wait until all its ports have what it wants, as a part of what it keeps: so they are saved and
// go on elsewhere. An operator that has none of these has stages of the engine's, which nobody saves.
#pragma once

#include <memory>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyless_state.hpp"

namespace rayelastic {

// Makes the stages of an operator whose inputs and demands are set, and its table of them and of `own`, what it keeps besides (null: nothing).
void keep_stages(OperatorSpec& spec, std::shared_ptr<KeylessState> own);

}  // namespace rayelastic
