#include "python/gate/python_failure.hpp"

#include "python/gate/python_gate.hpp"

namespace rayelastic::python {

PythonFailure::~PythonFailure() {
  if (exception_ == nullptr) return;
  const GilScope gil;
  if (gil) Py_DECREF(exception_);
}

bool PythonFailure::interrupt() noexcept {
  const unsigned long inside = thread.load();
  return inside != 0 && PyThreadState_SetAsyncExc(inside, PyExc_GeneratorExit) == 1;
}

std::string PythonFailure::keep() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  std::string message = value != nullptr ? Py_TYPE(value)->tp_name : "unknown Python error";
  PyObject* text = value != nullptr ? PyObject_Str(value) : nullptr;
  const char* characters = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  if (characters != nullptr && *characters != '\0') message.append(": ").append(characters);
  PyErr_Clear();  // an exception whose __str__ raises is still the exception
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  if (exception_ == nullptr) {
    exception_ = value;
  } else {
    Py_XDECREF(value);
  }
  return message;
}

}  // namespace rayelastic::python
