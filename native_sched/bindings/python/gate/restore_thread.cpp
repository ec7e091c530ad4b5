#include "python/gate/restore_thread.hpp"

#include <pthread.h>
#include <unistd.h>

// Compiled without exceptions (CMakeLists.txt), so that pthread_cleanup_push jumps to its handler instead of unwinding.
#if defined(__EXCEPTIONS)
#error "this file is to be compiled with -fno-exceptions"
#endif

namespace rayelastic::python {

namespace {

[[noreturn]] void wait(void*) {
  for (;;) pause();
}

}  // namespace

void wait_for_the_end() noexcept { wait(nullptr); }

void restore_thread(PyThreadState* state) noexcept {
  pthread_cleanup_push(wait, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

}  // namespace rayelastic::python
