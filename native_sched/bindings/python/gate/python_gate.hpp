// The way of a native thread into Python: one kept PyThreadState per thread (43 ns to come back with it, against 306 ns for
// PyGILState_Ensure; findings section 4), and the hooks by which the engine's Python token takes the GIL.
//
// Lifetime: a thread's state is made at its first visit and deleted when the thread ends. Once the gate is closed (the
// interpreter is about to be finalised) nobody gets in any more; a thread that is inside then is stopped by the interpreter.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>

#include "rayelastic/engine/token.hpp"

namespace rayelastic::python {

// Takes the GIL on a thread that doesn't hold it, native or Python's own. Never returns once the gate is closed: there is no
// Python left to go on with, and the process is ending.
void enter_python() noexcept;
void leave_python() noexcept;

// Holds the GIL for a scope, on any thread, whether it holds it already or not. False: the interpreter is gone.
class GilScope {
 public:
  GilScope() noexcept;
  ~GilScope();
  GilScope(const GilScope&) = delete;
  GilScope& operator=(const GilScope&) = delete;
  explicit operator bool() const noexcept { return alive_; }

 private:
  bool alive_;
  bool entered_ = false;
  PyGILState_STATE state_{};
};

// An object with Python references, which is destroyed with the GIL, or not at all once the interpreter is gone.
template <class Object, class... Arguments>
[[nodiscard]] std::shared_ptr<Object> make_with_references(Arguments&&... arguments) {
  return std::shared_ptr<Object>(new Object(std::forward<Arguments>(arguments)...), [](Object* object) {
    const GilScope gil;
    if (gil) delete object;
  });
}

// What makes a scheduler's Python token take and release the GIL.
[[nodiscard]] ThreadHooks python_hooks() noexcept;

// Nobody enters any more.
void close_gate() noexcept;

}  // namespace rayelastic::python
