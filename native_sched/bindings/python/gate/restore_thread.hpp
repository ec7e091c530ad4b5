// Taking the GIL, also when the interpreter is about to end. CPython before 3.14 then ends the thread with pthread_exit, which would
// unwind through code that doesn't expect it, with an unwinder that may be another one than ours. Here the thread waits for the
// end of the process instead, as 3.14 does.
#pragma once

#include <Python.h>

namespace rayelastic::python {

// Takes the GIL with a thread state; doesn't return if the interpreter is about to end.
void restore_thread(PyThreadState* state) noexcept;

[[noreturn]] void wait_for_the_end() noexcept;

}  // namespace rayelastic::python
