// What the Python classes of rayelastic._native hold. Each keeps a shared_ptr to the core's object instead of being it, so
// that the core never owns a Python reference and its threads can drop the last owner without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "rayelastic/operator.hpp"
#include "rayelastic/schema.hpp"

namespace rayelastic::python {

namespace nb = nanobind;

struct SchemaObject {
  std::shared_ptr<const Schema> schema;
};

class PythonFailure;

// One operator, ready to be added to a scheduler.
struct OperatorObject {
  OperatorSpec spec;
  std::shared_ptr<PythonFailure> failure;  // of the lanes that run Python; null otherwise
};

void bind_schema(nb::module_& module);
void bind_keyed_state(nb::module_& module);
void bind_operator(nb::module_& module);
void bind_scheduler(nb::module_& module);
void bind_arrow(nb::module_& module);
void bind_link(nb::module_& module);
void bind_symbols(nb::module_& module);

}  // namespace rayelastic::python
