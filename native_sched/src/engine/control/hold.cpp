#include "engine/control/hold.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rayelastic {

namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool hold::register_fence() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

void fence_everywhere() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (hold::reaches_everybody) (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace rayelastic
