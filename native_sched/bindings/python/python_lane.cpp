#include "python/python_lane.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "python/gate/inside.hpp"
#include "record/object_ref.hpp"
#include "record/run_view.hpp"

namespace rayelastic::python {

namespace {

// The failing input's number within the run; the callables that rayelastic.compile builds put it on what they raise.
constexpr const char* kIndexAttribute = "rel_index";

constexpr std::int64_t kFailedSomewhere = REL_FAILED(INT64_MAX - 1);  // no input of the run has this number

// The lane looks its keys up itself: it isn't REL_KEYED for the engine.
struct PythonLane final : Operator {
  PythonLane(const PythonFunction& described, std::shared_ptr<PythonFailure> where)
      : Operator(described.name, {described.input}, outputs_of(described),
                 (described.flags & ~static_cast<std::uint32_t>(REL_KEYED)) | REL_NEEDS_TOKEN),
        function(ObjectRef::share(described.function)),
        states(described.states),
        failure(std::move(where)),
        record_size(described.input->record_size()),
        calls(described.view == View::Tuples ? CalledFor::Record : CalledFor::Run) {
    const std::shared_ptr<const Schema> encoded = has_any(REL_FILTER | REL_SINK) ? nullptr : described.output;
    view = described.view == View::Tuples  ? make_tuple_view(name(), described.input, encoded, described.input_type)
           : described.view == View::Numpy ? make_numpy_view(name(), described.input, encoded)
                                           : make_arrow_view(name(), described.input, encoded);
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override;
  [[nodiscard]] StateTable* state() override { return states.get(); }
  [[nodiscard]] CalledFor called_for() const override { return calls; }
  [[nodiscard]] bool bounds_runs() const override { return states != nullptr; }
  [[nodiscard]] std::size_t longest_run() const override { return states->longest_run(); }

  static Schemas outputs_of(const PythonFunction& described) {
    if ((described.flags & REL_SINK) != 0) return {};
    return {(described.flags & REL_FILTER) != 0 ? described.input : described.output};
  }

  ObjectRef function;
  std::unique_ptr<RunView> view;
  const std::shared_ptr<ObjectStates> states;
  const std::shared_ptr<PythonFailure> failure;
  const std::size_t record_size;
  const CalledFor calls;
  std::vector<void*> slots;
  std::vector<std::uint8_t> mask;
};

// Token held, and a Python error is set.
std::int64_t fail(const PythonLane& lane, std::size_t index, std::size_t count, rel_context* context) {
  if (index == kUnknownIndex && count == 1) index = 0;
  context->fail(lane.failure->keep());
  return index < count ? REL_FAILED(index) : kFailedSomewhere;
}

// Calls the function and takes its result into lane.view or lane.mask. Token held. False: a Python error is set.
bool call(PythonLane& lane, const std::byte* in, std::size_t count, const rel_context* context, std::size_t* failed) {
  const bool is_filter = lane.has_any(REL_FILTER);
  PyObject* states = nullptr;
  if (lane.states != nullptr) {
    lane.slots.resize(count);
    {
      const Turn turn = lane.states->turn();
      lane.states->begin_run(context->watermark(), count);
      lane.states->table().lookup(in, count, lane.slots.data());
    }
    states = lane.states->values(lane.slots.data(), count, failed);
    if (states == nullptr) return false;
  }
  PyObject* argument = lane.view->to_python(in, count);
  if (argument == nullptr) {
    Py_XDECREF(states);
    return false;
  }
  PyObject* arguments[] = {argument, states};
  PyObject* result = nullptr;
  {
    const Inside inside(*lane.failure);
    result = PyObject_Vectorcall(lane.function.get(), arguments, states != nullptr ? 2 : 1, nullptr);
  }
  Py_XDECREF(states);
  Py_DECREF(argument);
  if (result == nullptr) {
    *failed = index_of_error();
    return false;
  }
  bool done = true;
  if (!lane.has_any(REL_SINK)) {
    done = is_filter ? lane.view->mask_from_python(result, count, lane.mask, failed)
                     : lane.view->from_python(result, lane.has_any(REL_ONE_TO_ONE) ? count : kUnknownIndex, failed);
  }
  Py_DECREF(result);
  return done;
}

std::int64_t keep_marked(const PythonLane& lane, const std::byte* in, std::size_t count, std::byte* out) {
  std::byte* to = out;
  for (std::size_t i = 0; i < count; ++i) {
    if (lane.mask[i] == 0) continue;
    std::memcpy(to, in + i * lane.record_size, lane.record_size);
    to += lane.record_size;
  }
  return static_cast<std::int64_t>(static_cast<std::size_t>(to - out) / lane.record_size);
}

std::int64_t PythonLane::process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) {
  const auto count = static_cast<std::size_t>(n);
  std::size_t failed = kUnknownIndex;
  if (!call(*this, in, count, context, &failed)) return fail(*this, failed, count, context);
  if (has_any(REL_SINK)) return 0;
  return has_any(REL_FILTER) ? keep_marked(*this, in, count, out) : view->submit(out, capacity, context);
}

}  // namespace

std::size_t index_of_error() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* index = value != nullptr ? PyObject_GetAttrString(value, kIndexAttribute) : nullptr;
  const Py_ssize_t number = index != nullptr && PyLong_Check(index) ? PyLong_AsSsize_t(index) : -1;
  Py_XDECREF(index);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return number < 0 ? kUnknownIndex : static_cast<std::size_t>(number);
}

std::shared_ptr<Operator> make_python_operator(const PythonFunction& function, std::shared_ptr<PythonFailure> failure) {
  const std::string where = "operator '" + function.name + "': ";
  const bool is_filter = (function.flags & REL_FILTER) != 0;
  const bool is_sink = (function.flags & REL_SINK) != 0;
  if (PyCallable_Check(function.function) == 0) throw std::invalid_argument(where + "function must be callable");
  if (function.input == nullptr) throw std::invalid_argument(where + "needs an input schema");
  if (function.output == nullptr && !is_sink && !is_filter) throw std::invalid_argument(where + "needs an output schema");
  if (function.states != nullptr && function.view != View::Tuples) throw std::invalid_argument(where + "keyed state needs view='tuples'");
  if (function.states == nullptr && (function.flags & REL_KEYED) != 0)
    throw std::invalid_argument(where + "REL_KEYED needs keyed=KeyedState.objects(...)");
  if ((function.flags & (REL_SOURCE | REL_IN_PLACE)) != 0)
    throw std::invalid_argument(where + "a Python function is no source here and works not in place");

  return make_with_references<PythonLane>(function, std::move(failure));
}

}  // namespace rayelastic::python
