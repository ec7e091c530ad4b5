// An owned Python reference inside objects that any thread may destroy.
#pragma once

#include <Python.h>

#include <utility>

#include "python/gate/python_gate.hpp"

namespace rayelastic::python {

// Made and used under the GIL; the destructor takes it itself, and leaves the object alone when the interpreter is gone.
class ObjectRef {
 public:
  ObjectRef() noexcept = default;
  [[nodiscard]] static ObjectRef share(PyObject* object) noexcept { return ObjectRef(Py_XNewRef(object)); }
  [[nodiscard]] static ObjectRef take(PyObject* object) noexcept { return ObjectRef(object); }
  ObjectRef(ObjectRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjectRef() {
    if (object_ == nullptr) return;
    const GilScope gil;
    if (gil) Py_DECREF(object_);
  }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  explicit ObjectRef(PyObject* object) noexcept : object_(object) {}

  PyObject* object_ = nullptr;
};

}  // namespace rayelastic::python
