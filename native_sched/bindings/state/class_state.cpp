#include "state/class_state.hpp"

#include <cstddef>

#include "python/gate/python_failure.hpp"
#include "python/gate/python_gate.hpp"

namespace rayelastic::python {

namespace {

// GIL. The Python error that is set, as a StateError.
[[noreturn]] void raise_error() {
  PythonFailure failure;
  throw StateError(failure.keep());
}

}  // namespace

std::uint64_t ClassState::form() const noexcept {
  return 0x7373616c63;  // "class"
}

void ClassState::write(StateWriter& writer) const {
  const GilScope gil;
  if (!gil) throw StateError("the interpreter is gone");
  const ObjectRef saved = ObjectRef::take(PyObject_CallNoArgs(save_.get()));
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!saved || PyBytes_AsStringAndSize(saved.get(), &bytes, &size) != 0) raise_error();
  writer.number(static_cast<std::uint64_t>(size));
  (void)writer.append(bytes, static_cast<std::size_t>(size));
}

void ClassState::read(StateReader& reader, bool restored) {
  const auto size = reader.number<std::uint64_t>();
  const auto* bytes = reinterpret_cast<const char*>(reader.take(size));
  if (!restored) return;
  const GilScope gil;
  if (!gil) throw StateError("the interpreter is gone");
  const ObjectRef saved = ObjectRef::take(PyBytes_FromStringAndSize(bytes, static_cast<Py_ssize_t>(size)));
  const ObjectRef done = ObjectRef::take(saved ? PyObject_CallOneArg(load_.get(), saved.get()) : nullptr);
  if (!done) raise_error();
}

}  // namespace rayelastic::python
