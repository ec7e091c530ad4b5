// A sink whose Python function gets Arrow batches.
#include <cstdio>
#include <stdexcept>

#include "arrow/arrow_capsules.hpp"
#include "python/gate/inside.hpp"
#include "python/python_lane.hpp"
#include "rayelastic/arrow/arrow_sink.hpp"
#include "record/object_ref.hpp"

namespace rayelastic::python {

namespace {

struct BatchConsumer {
  ObjectRef function;
  std::shared_ptr<PythonFailure> failure;
};

// Takes the GIL alone, not the token: one short call per tens of thousands of rows, and the conversion before it needs neither.
int consume(void* user, ArrowArray* array, ArrowSchema* schema, char* error, std::size_t error_size) {
  auto& consumer = *static_cast<BatchConsumer*>(user);
  const GilScope gil;
  if (!gil) {
    std::snprintf(error, error_size, "the Python interpreter has ended");
    return 1;
  }
  try {
    const nb::object batch = export_batch(array, schema);
    const Inside inside(*consumer.failure);
    if (PyObject* result = PyObject_CallOneArg(consumer.function.get(), batch.ptr()); result != nullptr) {
      Py_DECREF(result);
      return 0;
    }
  } catch (nb::python_error& raised) {
    raised.restore();
  } catch (const std::exception& raised) {
    std::snprintf(error, error_size, "%s", raised.what());
    return 1;
  }
  std::snprintf(error, error_size, "%s", consumer.failure->keep().c_str());
  return 1;
}

}  // namespace

std::shared_ptr<Operator> make_batch_sink(const PythonFunction& function, std::size_t batch_rows, std::shared_ptr<PythonFailure> failure) {
  if (PyCallable_Check(function.function) == 0) throw std::invalid_argument("operator '" + function.name + "': function must be callable");
  if (batch_rows == 0) throw std::invalid_argument("operator '" + function.name + "': batch_rows must be at least 1");
  auto consumer = std::make_shared<BatchConsumer>();
  consumer->function = ObjectRef::share(function.function);
  consumer->failure = std::move(failure);
  return make_arrow_sink(function.name, function.input, consume, consumer, batch_rows);
}

}  // namespace rayelastic::python
