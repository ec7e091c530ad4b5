// The bytes of files that Python opens: compressed ones, and those of other file systems.
#pragma once

#include <Python.h>

#include "rayelastic/operators/text_source.hpp"

namespace rayelastic::python {

// GIL. `open(path)` gives an object with `readinto(buffer) -> int`. What it raises fails the source with "Type: message".
[[nodiscard]] OpenStream stream_opener(PyObject* open);

}  // namespace rayelastic::python
