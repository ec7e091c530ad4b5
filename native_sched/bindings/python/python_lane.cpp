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

struct PythonLane {
  std::string name;
  ObjectRef function;
  std::unique_ptr<RunView> view;
  std::shared_ptr<ObjectStates> states;
  std::shared_ptr<PythonFailure> failure;
  std::size_t record_size = 0;
  std::uint32_t flags = 0;
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
  const bool is_filter = (lane.flags & REL_FILTER) != 0;
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
  if ((lane.flags & REL_SINK) == 0) {
    done = is_filter ? lane.view->mask_from_python(result, count, lane.mask, failed)
                     : lane.view->from_python(result, (lane.flags & REL_ONE_TO_ONE) != 0 ? count : kUnknownIndex, failed);
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

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& lane = *static_cast<PythonLane*>(state);
  const auto* records = static_cast<const std::byte*>(in);
  const auto count = static_cast<std::size_t>(n);
  std::size_t failed = kUnknownIndex;
  if (!call(lane, records, count, context, &failed)) return fail(lane, failed, count, context);
  if ((lane.flags & REL_SINK) != 0) return 0;
  if ((lane.flags & REL_FILTER) != 0) return keep_marked(lane, records, count, static_cast<std::byte*>(out));
  return lane.view->submit(static_cast<std::byte*>(out), capacity, context);
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

OperatorSpec make_python_operator(const PythonFunction& function, std::shared_ptr<PythonFailure> failure) {
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

  std::shared_ptr<PythonLane> lane(new PythonLane, [](PythonLane* self) {
    const GilScope gil;
    if (gil) delete self;
  });
  const std::shared_ptr<const Schema> encoded = is_filter || is_sink ? nullptr : function.output;
  lane->name = function.name;
  lane->function = ObjectRef::share(function.function);
  lane->view = function.view == View::Tuples  ? make_tuple_view(function.name, function.input, encoded, function.input_type)
               : function.view == View::Numpy ? make_numpy_view(function.name, function.input, encoded)
                                              : make_arrow_view(function.name, function.input, encoded);
  lane->states = function.states;
  lane->failure = std::move(failure);
  lane->record_size = function.input->record_size();
  lane->flags = function.flags;

  OperatorSpec spec;
  spec.name = function.name;
  spec.process = process;
  // The lane looks its keys up itself: with REL_KEYED it would get slots in place of itself.
  spec.flags = (function.flags & ~static_cast<std::uint32_t>(REL_KEYED)) | REL_NEEDS_TOKEN;
  spec.input = function.input;
  spec.output = is_sink ? nullptr : is_filter ? function.input : function.output;
  spec.state = lane;
  spec.store = function.states;
  spec.called_for = function.view == View::Tuples ? CalledFor::Record : CalledFor::Run;
  return spec;
}

}  // namespace rayelastic::python
