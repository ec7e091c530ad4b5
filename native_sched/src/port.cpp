#include "port.hpp"

namespace rayelastic {

template class BasicPort<std::atomic, PortWorld>;

}  // namespace rayelastic
