// The Python exception that stopped an operator, with its traceback, kept until somebody asks the scheduler for it.
#pragma once

#include <Python.h>

#include <string>

namespace rayelastic::python {

class PythonFailure {
 public:
  PythonFailure() = default;
  ~PythonFailure();  // takes the GIL itself
  PythonFailure(const PythonFailure&) = delete;
  PythonFailure& operator=(const PythonFailure&) = delete;

  // GIL, a Python error is set. Keeps the exception if it is the first one, clears the error, and returns "Type: message".
  [[nodiscard]] std::string keep();

  // GIL. Borrowed, null if there was none.
  [[nodiscard]] PyObject* exception() const noexcept { return exception_; }

 private:
  PyObject* exception_ = nullptr;  // guarded by the GIL
};

}  // namespace rayelastic::python
