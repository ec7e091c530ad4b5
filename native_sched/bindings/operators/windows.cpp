// rayelastic._native.Operator.window, and WindowFunction: what a user's Python functions accumulate and emit of windows.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operators/aggregates/named.hpp"
#include "operators/named_options.hpp"
#include "operators/window_times.hpp"
#include "python/gate/inside.hpp"
#include "python/gate/python_gate.hpp"
#include "python/port_context.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "record/encoded_records.hpp"
#include "record/record_codec.hpp"
#include "state/object_copy.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

constexpr std::int64_t kAtOnce = 256;        // records that are submitted together outside of a run
constexpr const char* kTuple = "rel_tuple";  // of an exception: the tuple that it is about (python_lane.py)

std::byte* state_of(ObjectRef object) noexcept { return reinterpret_cast<std::byte*>(Py_XNewRef(object.get())); }
PyObject* object_of(std::byte* state) noexcept { return reinterpret_cast<PyObject*>(state); }

// States are Python objects, and their pickled bytes are exported: their length (4), then they.
class PythonWindowFunction final : public WindowFunction {
 public:
  // GIL. `methods`: see WindowFunction below.
  PythonWindowFunction(const std::string& name, const std::shared_ptr<const Schema>& input, PyObject* record,
                       const std::shared_ptr<const Schema>& output, const std::shared_ptr<const Schema>& moment, const nb::object& methods,
                       std::shared_ptr<PythonFailure> failure)
      : WindowFunction(moment),
        input_(name, input, record),
        output_(name, output, nullptr),
        moments_(name, moment, nullptr),
        new_(method(methods, "new")),
        add_(method(methods, "add")),
        over_(method(methods, "over")),
        results_(method(methods, "results")),
        assign_(method(methods, "assign")),
        loads_(method(methods, "loads")),
        failure_(std::move(failure)) {}

  [[nodiscard]] bool assigns() const noexcept override { return static_cast<bool>(assign_); }

  [[nodiscard]] std::shared_ptr<void> enter() override {
    struct Scope {
      GilScope gil;
      std::optional<Turn> turn;
    };
    auto scope = std::make_shared<Scope>();
    if (!scope->gil) return nullptr;
    scope->turn.emplace(turns_);
    checked_.clear();
    return scope;
  }

  [[nodiscard]] bool take(const std::byte* record) override {
    tuple_ = ObjectRef::take(input_.decode_one(record));
    return static_cast<bool>(tuple_);
  }
  [[nodiscard]] bool assign(std::int64_t at, std::vector<Span>& spans) override {
    const ObjectRef time = ObjectRef::take(PyLong_FromLongLong(at));
    const ObjectRef assigned = time ? call(assign_, tuple_.get(), time.get()) : ObjectRef();
    const ObjectRef pairs = ObjectRef::take(assigned ? PySequence_Fast(assigned.get(), "spans are no list") : nullptr);
    for (Py_ssize_t i = 0; pairs && i < PySequence_Fast_GET_SIZE(pairs.get()); ++i) {
      long long start = 0;
      long long end = 0;
      if (PyArg_ParseTuple(PySequence_Fast_GET_ITEM(pairs.get(), i), "LL", &start, &end) == 0) return false;
      spans.push_back({start, end});
    }
    return pairs || is_about_tuple();
  }
  [[nodiscard]] bool begin(std::byte*& state) override {
    state = state_of(call(new_));
    return state != nullptr || is_about_tuple();
  }
  [[nodiscard]] bool add(std::byte*& state, bool& complete) override {
    ObjectRef added = call(add_, object_of(state), tuple_.get());
    if (!added) return is_about_tuple();
    drop(std::exchange(state, state_of(std::move(added))));
    if (!over_) return true;
    const ObjectRef over = call(over_, object_of(state), tuple_.get());
    const int truth = over ? PyObject_IsTrue(over.get()) : -1;
    complete = truth > 0;
    return truth >= 0 || is_about_tuple();
  }
  [[nodiscard]] bool emit(const std::byte* moment, std::byte* state, bool final, bool corrected) override {
    const ObjectRef about = ObjectRef::take(moments_.decode_one(moment));
    if (!about)
      return raised([](PyObject* error) { Py_XDECREF(PyObject_CallMethod(error, "add_note", "s", "pass the event time as a number")); });
    const ObjectRef results = call(results_, about.get(), object_of(state), final ? Py_True : Py_False, corrected ? Py_True : Py_False);
    const ObjectRef items = ObjectRef::take(results ? PySequence_Fast(results.get(), "results are no list") : nullptr);
    bool done = static_cast<bool>(items);
    for (Py_ssize_t i = 0; done && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      done = output_.encode_one(PySequence_Fast_GET_ITEM(items.get(), i), encoded_);
    return done;
  }
  void drop(std::byte* state) noexcept override { Py_XDECREF(object_of(state)); }
  [[nodiscard]] std::string problem() override { return failure_->keep(); }

  [[nodiscard]] std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) override {
    std::int64_t left = 0;
    if (out != nullptr) {
      left = python::emit(output_.schema(), encoded_, out, capacity, context);
    } else {
      std::vector<std::byte> buffer(static_cast<std::size_t>(kAtOnce) * output_.schema().record_size());
      PortContext aside(*context, 0, buffer.data());
      left = python::emit(output_.schema(), encoded_, buffer.data(), kAtOnce, &aside);
      if (left >= 0) left = aside.flush(left) ? 0 : REL_STOPPED;
    }
    encoded_.clear();
    return left;
  }

  void write(std::byte* state, StateWriter& writer, bool of_copy) override {
    const ObjectRef bytes = of_copy ? copying_->bytes_of(object_of(state)) : pickler_(object_of(state));
    const auto length = static_cast<std::uint32_t>(bytes ? PyBytes_GET_SIZE(bytes.get()) : 0);
    writer.number(length);
    if (length > 0) (void)writer.append(PyBytes_AS_STRING(bytes.get()), length);
  }
  [[nodiscard]] std::byte* read(StateReader& reader, bool make_it) override {
    if (make_it && !checked_.empty()) {
      (void)reader.take(reader.number<std::uint32_t>());
      std::byte* const state = state_of(std::move(checked_.front()));
      checked_.pop_front();
      return state;
    }
    const auto length = reader.number<std::uint32_t>();
    const auto* pickled = reinterpret_cast<const char*>(reader.take(length));
    const ObjectRef bytes = ObjectRef::take(PyBytes_FromStringAndSize(pickled, length));
    checked_.push_back(ObjectRef::take(bytes ? PyObject_CallOneArg(loads_.get(), bytes.get()) : nullptr));
    if (checked_.back()) return nullptr;
    PythonFailure failure;
    throw StateError("a value can't be unpickled: " + failure.keep());
  }
  [[nodiscard]] std::shared_ptr<StateCopy> copy(const BeginCopy& begin) override {
    const WithoutGil released;  // whoever reads the last copy may wait for it
    auto copying = std::make_shared<ObjectCopying>(turns_, pickler_, false);
    std::shared_ptr<StateCopy> keys = begin([copying] { copying->rest(); });
    copying_ = copying;
    return std::make_shared<ObjectCopy>(std::move(keys), std::move(copying));
  }

 private:
  static ObjectRef method(const nb::object& methods, const char* name) {
    const nb::object bound = methods.attr(name);
    return bound.is_none() ? ObjectRef() : ObjectRef::share(bound.ptr());
  }
  template <typename... Arguments>
  ObjectRef call(const ObjectRef& function, Arguments... arguments) {
    PyObject* stack[] = {arguments..., nullptr};
    const Inside inside(*failure_);
    return ObjectRef::take(PyObject_Vectorcall(function.get(), stack, sizeof...(arguments), nullptr));
  }
  // Changes the Python error that is set by change(exception). False.
  template <typename Change>
  static bool raised(Change&& change) {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    change(value);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return false;
  }
  bool is_about_tuple() {
    return raised([this](PyObject* error) {
      const ObjectRef text = ObjectRef::take(tuple_ ? PyObject_Repr(tuple_.get()) : nullptr);
      if (text) (void)PyObject_SetAttrString(error, kTuple, text.get());
    });
  }

  const RecordCodec input_;
  const RecordCodec output_;
  const RecordCodec moments_;
  const ObjectRef new_;
  const ObjectRef add_;
  const ObjectRef over_;
  const ObjectRef results_;
  const ObjectRef assign_;
  const ObjectRef loads_;
  const std::shared_ptr<PythonFailure> failure_;
  const Pickler pickler_;
  std::mutex turns_;
  std::shared_ptr<ObjectCopying> copying_;  // of the last copy
  ObjectRef tuple_;
  EncodedRecords encoded_;         // what was emitted in this call
  std::deque<ObjectRef> checked_;  // what a first reading of an export has unpickled
};

struct WindowFunctionObject {
  std::shared_ptr<WindowFunction> function;
  std::shared_ptr<PythonFailure> failure;
};

void make_function(WindowFunctionObject* self, const std::string& name, const SchemaObject& input, nb::object record,
                   const SchemaObject& output, const SchemaObject& moment, const nb::object& methods) {
  auto failure = std::make_shared<PythonFailure>(name);
  new (self) WindowFunctionObject{make_with_references<PythonWindowFunction>(name, input.schema, record.is_none() ? nullptr : record.ptr(),
                                                                             output.schema, moment.schema, methods, failure),
                                  failure};
}

WindowKind kind_named(const std::string& operator_name, const std::string& kind) {
  if (kind == "count") return WindowKind::Count;
  if (kind == "time") return WindowKind::Time;
  if (kind == "session") return WindowKind::Session;
  if (kind == "assigned") return WindowKind::Assigned;
  if (kind == "batch") return WindowKind::Batch;
  throw std::invalid_argument("operator '" + operator_name + "': kind is '" + kind +
                              "', not 'count', 'time', 'session', 'assigned' or 'batch'");
}

std::int64_t microseconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

OperatorObject window(const std::string& name, const SchemaObject& input, const SchemaObject& output, const std::vector<std::string>& keys,
                      const nb::dict& described, const std::vector<NamedAggregate>& aggregates, const OwnAggregateObject* own,
                      const WindowFunctionObject* function) {
  NamedOptions named(name, described);
  WindowOptions options{.kind = kind_named(name, named.get<std::string>("kind"))};
  named.read("size", options.size);
  named.read("slide", options.slide);
  named.read("time", options.time);
  named.read("shift", options.shift);
  named.read("rest", options.rest);
  named.read("lateness", options.lateness);
  named.read("punctual", options.punctual);
  named.read("in_order", options.in_order);
  named.read("within", options.within);
  named.read("every", options.every);
  named.read("update", options.update);
  named.read("tick", options.tick);
  options.times = times_of(named.get<GivenTimes>("times"));
  options.ttl = ttl_of(named.get<GivenTtl>("ttl"));
  OperatorObject result;
  if (const auto* assigner = named.get<const OperatorObject*>("assigner"); assigner != nullptr) {
    result.failure = assigner->failure;
    options.assigner = assigner->op;
  }
  if (function != nullptr) {
    result.failure = function->failure;
    options.function = function->function;
    if (options.time.empty()) options.now = microseconds_since_1970;
  }
  named.check_all_read();
  result.op = make_window(name, input.schema, output.schema, keys, options, aggregates_of(aggregates, own));
  return result;
}

}  // namespace

void bind_windows(nb::module_& module) {
  nb::class_<WindowFunctionObject>(module, "WindowFunction", "What a user's Python functions accumulate of a window, and emit.")
      .def("__init__", make_function, nb::arg("name"), nb::arg("input"), nb::arg("record").none(), nb::arg("output"), nb::arg("moment"),
           nb::arg("methods"),
           nb::sig("def __init__(self, name: str, input: Schema, record: object, output: Schema, moment: Schema, methods: object) -> None"),
           "record: the class of input tuples. moment: the keys, start and end of a window. methods has new() -> state, "
           "add(state, tuple) -> state,\nresults(moment, state, final, corrected) -> tuples, loads(bytes) -> state; each of these or "
           "None: over(state, tuple) -> whether the window\nis complete, assign(tuple, ticks) -> pairs of start and end, in ticks.");
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "window", window, nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("keys"), nb::arg("options"),
          nb::arg("aggregates") = std::vector<NamedAggregate>(), nb::arg("own").none() = nb::none(),
          nb::arg("function").none() = nb::none(),
          nb::sig(
              "def window(name: str, input: Schema, output: Schema, keys: collections.abc.Sequence[str], options: "
              "collections.abc.Mapping[str, typing.Any], aggregates: collections.abc.Sequence[tuple[str, str, str, float, float]] = ..., "
              "own: OwnAggregate | None = None, function: WindowFunction | None = None) -> Operator"),
          "Windows, of which one is emitted: aggregates, a user's own aggregate, or what a function makes. options by name, as "
          "WindowOptions "
          "(window.hpp)\nhas them: kind 'count', 'time', 'session', 'assigned' or 'batch'; times: an offset, from which days on days are "
          "of "
          "24 hours and when they\nbegin, if windows are of days, and the ticks of a second; ttl: as of KeyedState; assigner: an operator "
          "that "
          "emits start and end of each\nwindow of a record. A function without a time follows the clock, and is to be poked now and then.");
}

}  // namespace rayelastic::python
