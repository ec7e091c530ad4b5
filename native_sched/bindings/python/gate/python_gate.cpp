#include "python/gate/python_gate.hpp"

#include <atomic>

#include "python/gate/restore_thread.hpp"

namespace rayelastic::python {

namespace {

std::atomic<bool> closed{false};  // relaxed: set by the thread that finalises, after all schedulers were told to stop

struct KeptState {
  PyThreadState* state = nullptr;

  void drop() noexcept {
    if (state == nullptr || closed.load(std::memory_order_relaxed) || Py_IsInitialized() == 0) return;
    PyEval_RestoreThread(state);
    PyThreadState_Clear(state);
    PyThreadState_DeleteCurrent();
    state = nullptr;
  }
  ~KeptState() { drop(); }
};

thread_local KeptState kept;

}  // namespace

void enter_python() noexcept {
  if (closed.load(std::memory_order_relaxed) || Py_IsInitialized() == 0) wait_for_the_end();
  PyThreadState* state = kept.state;
  if (state == nullptr) {
    state = PyGILState_GetThisThreadState();  // a thread that Python knows already keeps the state that it has
    if (state == nullptr) state = kept.state = PyThreadState_New(PyInterpreterState_Main());
    if (state == nullptr) Py_FatalError("rayelastic: no memory for a Python thread state");
  }
  restore_thread(state);
}

void leave_python() noexcept { PyEval_SaveThread(); }

GilScope::GilScope() noexcept : alive_(Py_IsInitialized() != 0) {
  if (!alive_ || PyGILState_Check() != 0) return;
  if (closed.load(std::memory_order_relaxed)) {
    alive_ = false;
    return;
  }
  state_ = PyGILState_Ensure();
  entered_ = true;
}

GilScope::~GilScope() {
  if (entered_) PyGILState_Release(state_);
}

ThreadHooks python_hooks() noexcept {
  return {.owner = nullptr,
          .started = nullptr,
          .stopped = [](void*, void**) { kept.drop(); },
          .enter = [](void*, void**) { enter_python(); },
          .leave = [](void*, void**) { leave_python(); }};
}

void close_gate() noexcept { closed.store(true, std::memory_order_relaxed); }

}  // namespace rayelastic::python
