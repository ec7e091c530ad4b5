// What the object of a user's class keeps, as a table without keys: bytes that a Python function gives, and another takes.
#pragma once

#include <Python.h>

#include <cstdint>

#include "rayelastic/state/keyless_state.hpp"
#include "record/object_ref.hpp"

namespace rayelastic::python {

class ClassState final : public KeylessState {
 public:
  // GIL. save() gives bytes, load(bytes) takes them.
  ClassState(PyObject* save, PyObject* load) : save_(ObjectRef::share(save)), load_(ObjectRef::share(load)) {}

  // They take the GIL themselves. What save or load raises is a StateError, too.
  [[nodiscard]] std::uint64_t form() const noexcept override;
  void write(StateWriter& writer) const override;
  void read(StateReader& reader, bool restored) override;

 private:
  ObjectRef save_;
  ObjectRef load_;
};

}  // namespace rayelastic::python
