// How a run of records looks to a Python function, and how what it returns becomes records again. One view per operator.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic::python {

inline constexpr std::size_t kUnknownIndex = std::numeric_limits<std::size_t>::max();

class RunView {
 public:
  virtual ~RunView() = default;  // GIL

  // GIL. The argument of the user's function, a new reference; null with a Python error set.
  [[nodiscard]] virtual PyObject* to_python(const std::byte* records, std::size_t count) = 0;

  // GIL. Takes the result in; false with a Python error set, and `*failed` the input record that it belongs to if that is known.
  // `expected`: records that there must be, kUnknownIndex for any number.
  [[nodiscard]] virtual bool from_python(PyObject* result, std::size_t expected, std::size_t* failed) = 0;

  // GIL. One byte per input record, 1 to keep it; false as above.
  [[nodiscard]] virtual bool mask_from_python(PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask,
                                              std::size_t* failed) = 0;

  // Touches no Python object: flush leaves the GIL. Submits what from_python took in; returns what a rel_process returns.
  [[nodiscard]] virtual std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) = 0;
};

// GIL; a Python error is set. The input that raised, as the callables that rayelastic.compile builds tell it; kUnknownIndex if not.
[[nodiscard]] std::size_t index_of_error();

// GIL. `input` or `output` may be null (sources, sinks, filters). Throw std::invalid_argument, or nb::python_error.
[[nodiscard]] std::unique_ptr<RunView> make_tuple_view(const std::string& name, std::shared_ptr<const Schema> input,
                                                       std::shared_ptr<const Schema> output, PyObject* input_type);
[[nodiscard]] std::unique_ptr<RunView> make_numpy_view(const std::string& name, std::shared_ptr<const Schema> input,
                                                       std::shared_ptr<const Schema> output);
[[nodiscard]] std::unique_ptr<RunView> make_arrow_view(const std::string& name, std::shared_ptr<const Schema> input,
                                                       std::shared_ptr<const Schema> output);

// GIL. What `call` returns, a PyObject*; null with a Python error set where nanobind's wrappers throw one.
template <typename Call>
[[nodiscard]] PyObject* with_python_errors(Call&& call) {
  try {
    return call();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (nanobind::builtin_exception& error) {
    PyErr_SetString(error.type() == nanobind::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, error.what());
  }
  return nullptr;
}

// GIL. A bool mask from anything that NumPy makes an array of `count` bools from.
[[nodiscard]] bool mask_from_array(const std::string& name, PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask);

}  // namespace rayelastic::python
