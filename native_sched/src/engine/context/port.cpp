#include "engine/context/port.hpp"

namespace rayelastic {

template class BasicPort<std::atomic, PortWorld>;

}  // namespace rayelastic
