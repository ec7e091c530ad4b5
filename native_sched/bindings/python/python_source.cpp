// A source whose tuples come from a Python iterator.
//
// How many it takes before it submits adapts: one at first, twice as many whenever a batch came quickly, one again when it had to
// wait. So a fast iterator pays little per tuple, and a slow one's tuples don't lie around.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "python/gate/inside.hpp"
#include "python/python_lane.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"

namespace rayelastic::python {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kQuickBatch = std::chrono::milliseconds(1);  // a batch that took longer had to wait

struct PythonSource final : Operator {
  PythonSource(const PythonFunction& described, std::shared_ptr<PythonFailure> where)
      : Operator(described.name, {}, {described.output},
                 described.flags | REL_SOURCE | ((described.flags & REL_NEEDS_TOKEN) == 0 ? REL_BESIDE_TOKEN : 0)),
        function(ObjectRef::share(described.function)),
        codec(described.name, described.output, nullptr),
        failure(std::move(where)) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override;
  // Raises GeneratorExit in the iterator where it waits in Python code, so that its finally clauses run. A call that waits in C
  // and never comes back to Python can't be interrupted by anybody.
  void interrupt() override {
    interrupted.store(true);
    const GilScope gil;
    if (gil) (void)failure->interrupt();
  }

  ObjectRef function;
  ObjectRef iterator;  // made by the first call
  RecordCodec codec;
  const std::shared_ptr<PythonFailure> failure;
  std::int64_t limit = 1;
  EncodedRecords encoded;
  std::atomic<bool> interrupted{false};
};

enum class Pulled : std::uint8_t { More, End, Failed };

// GIL.
Pulled pull(PythonSource& source, std::int64_t limit) {
  if (!source.iterator) {
    source.iterator = ObjectRef::take(PyObject_CallNoArgs(source.function.get()));
    PyObject* made = source.iterator.get();
    if (made == nullptr) return Pulled::Failed;
    source.iterator = ObjectRef::take(PyObject_GetIter(made));
    if (!source.iterator) return Pulled::Failed;
  }
  PyObject* iterator = source.iterator.get();
  const auto deadline = Clock::now() + kQuickBatch;
  for (std::int64_t i = 0; i < limit; ++i) {
    PyObject* item = Py_TYPE(iterator)->tp_iternext(iterator);
    if (item == nullptr) {
      if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) != 0) PyErr_Clear();
      return PyErr_Occurred() != nullptr ? Pulled::Failed : Pulled::End;
    }
    const bool done = source.codec.encode_one(item, source.encoded);
    Py_DECREF(item);
    if (!done) return Pulled::Failed;
    if (Clock::now() >= deadline) {
      source.limit = 1;
      return Pulled::More;
    }
  }
  source.limit = limit * 2;
  return Pulled::More;
}

std::int64_t PythonSource::process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) {
  encoded.clear();
  // Tuples that came before an exception or the end are submitted all the same.
  Pulled pulled = Pulled::End;
  {
    const Inside inside(*failure);
    if (!interrupted.load()) pulled = pull(*this, std::clamp<std::int64_t>(limit, 1, capacity));
  }
  std::string message;
  if (pulled == Pulled::Failed) {
    if (interrupted.load()) {  // GeneratorExit, or what the user's code made of it
      PyErr_Clear();
      pulled = Pulled::End;
    } else {
      message = failure->keep();
    }
  }
  const std::int64_t left = emit(codec.schema(), encoded, out, capacity, context);
  if (left < 0 || pulled == Pulled::More) return left;
  if (pulled == Pulled::End) {
    context->finish();
    return left;
  }
  if (left > 0 && !context->flush(left)) return REL_STOPPED;
  context->fail(message);
  return REL_FAILED(0);
}

}  // namespace

std::shared_ptr<Operator> make_python_source(const PythonFunction& function, std::shared_ptr<PythonFailure> failure) {
  const std::string where = "operator '" + function.name + "': ";
  if (PyCallable_Check(function.function) == 0) throw std::invalid_argument(where + "function must be callable and return an iterator");
  if (function.output == nullptr || function.input != nullptr)
    throw std::invalid_argument(where + "a source has an output schema and no input schema");
  return make_with_references<PythonSource>(function, std::move(failure));
}

}  // namespace rayelastic::python
