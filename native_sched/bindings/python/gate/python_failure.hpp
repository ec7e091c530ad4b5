// What is told of an operator's Python function: the exception that stopped it, with its traceback, kept until somebody asks the
// scheduler for it; and the thread that is inside now.
#pragma once

#include <Python.h>

#include <atomic>
#include <string>
#include <utility>

namespace rayelastic::python {

class PythonFailure {
 public:
  explicit PythonFailure(std::string of = {}) : name(std::move(of)) {}
  ~PythonFailure();  // takes the GIL itself
  PythonFailure(const PythonFailure&) = delete;
  PythonFailure& operator=(const PythonFailure&) = delete;

  // GIL, a Python error is set. Keeps the exception if it is the first one, clears the error, and returns "Type: message".
  [[nodiscard]] std::string keep();

  // GIL. Raises GeneratorExit in the function, where it is in Python code. False: nobody is inside.
  bool interrupt() noexcept;

  // GIL. Borrowed, null if there was none.
  [[nodiscard]] PyObject* exception() const noexcept { return exception_; }

  const std::string name;                // of the operator
  std::atomic<unsigned long> thread{0};  // Python's number of the one that is inside (inside.hpp), 0: none

 private:
  PyObject* exception_ = nullptr;  // guarded by the GIL
};

}  // namespace rayelastic::python
