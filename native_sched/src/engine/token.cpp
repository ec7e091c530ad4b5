#include "rayelastic/engine/token.hpp"

namespace rayelastic {

bool Token::try_enter(void** user) {
  if (!lock_.try_lock()) return false;
  if (hooks_.enter != nullptr) hooks_.enter(hooks_.owner, user);
  return true;
}

void Token::enter(void** user) {
  lock_.lock();
  if (hooks_.enter != nullptr) hooks_.enter(hooks_.owner, user);
}

std::uint32_t Token::leave(void** user) {
  if (hooks_.leave != nullptr) hooks_.leave(hooks_.owner, user);
  return lock_.unlock();
}

void Token::enter_beside(void** user) {
  if (hooks_.enter != nullptr) hooks_.enter(hooks_.owner, user);
}

void Token::leave_beside(void** user) {
  if (hooks_.leave != nullptr) hooks_.leave(hooks_.owner, user);
}

}  // namespace rayelastic
