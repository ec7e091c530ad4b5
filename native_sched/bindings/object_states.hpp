// Keyed state of operators that run in Python: the state record of a key is one pointer to a Python object, made by the user's
// factory when the key comes first, owned by the table.
//
// Export and import pickle the values; bytes are only ever taken from Ray's own authenticated channel, never from a port.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/keyed_state.hpp"

namespace rayelastic::python {

class ObjectStates {
 public:
  // GIL. A table for keys of `input` whose values `factory()` makes.
  ObjectStates(std::shared_ptr<const Schema> input, const std::vector<std::string>& keys, PyObject* factory);
  ~ObjectStates();  // takes the GIL itself
  ObjectStates(const ObjectStates&) = delete;
  ObjectStates& operator=(const ObjectStates&) = delete;

  [[nodiscard]] KeyedState& table() noexcept { return table_; }

  // GIL. New reference to the list of the values in `slots`, those that are new made now. Null with a Python error and `*failed` set
  // to the index of the slot whose factory raised.
  [[nodiscard]] PyObject* values(void* const* slots, std::size_t count, std::size_t* failed);

  // GIL. New bytes: the pickled values of keys whose hash lies in [low, high]. Null with a Python error set.
  [[nodiscard]] PyObject* export_range(std::uint64_t low, std::uint64_t high);
  // GIL. Number of keys, or -1 with a Python error set; then nothing was imported.
  [[nodiscard]] Py_ssize_t import_range(PyObject* bytes);
  // GIL.
  std::size_t remove_range(std::uint64_t low, std::uint64_t high);

 private:
  KeyedState table_;
  PyObject* factory_;
};

}  // namespace rayelastic::python
