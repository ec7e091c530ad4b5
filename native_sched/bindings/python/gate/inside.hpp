// Which operator's Python function a thread is in: for those who want it back, and for the last words of a process that crashes there.
#pragma once

#include "python/gate/python_failure.hpp"

namespace rayelastic::python {

// GIL, for the time of one call of the user's code.
class Inside {
 public:
  explicit Inside(PythonFailure& of) noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  PythonFailure& of_;
};

// Has the signals of a crash write the name of the operator to standard error, before they do what they did so far.
void tell_crashes();

}  // namespace rayelastic::python
