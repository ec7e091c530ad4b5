// Operators whose calls wait at the same time: hundreds of requests under way, none of which has a thread of the engine.
//
// The engine calls an object, under the GIL and without the Python token:
//   room() -> int              how many tuples it takes now
//   begin(list of tuples)      takes them, no more than that, and returns at once
//   bar()                      what was begun before comes before what is begun from now on
//   wait()                     until something is done, for a moment at most
//   collect()                  None, if nothing is done that may go out; else (a list for each output port, how many tuples and bars that is,
//                              how many tuples were left out, whether it ends with a bar), the bar being the last; raises what a call raised
// Whoever has the object pokes the operator (Scheduler::poke) when something is done.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "python/gate/python_failure.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic::python {

struct ConcurrentCalls {
  std::string name;
  PyObject* calls = nullptr;  // borrowed
  std::shared_ptr<const Schema> input;
  std::vector<std::shared_ptr<const Schema>> outputs;
  PyObject* input_type = nullptr;  // borrowed; NamedTuple class, or null for plain tuples
  bool ordered = true;             // what it gives is in the order of what it got
};

// GIL. Throws std::invalid_argument for schemas of no sense.
[[nodiscard]] std::shared_ptr<Operator> make_concurrent(const ConcurrentCalls& described, std::shared_ptr<PythonFailure> failure);

}  // namespace rayelastic::python
