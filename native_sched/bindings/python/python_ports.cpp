// Python functions over runs of several ports. See python_lane.hpp; the same rules for the token.
#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "python/gate/inside.hpp"
#include "python/gate/python_gate.hpp"
#include "python/port_context.hpp"
#include "python/python_lane.hpp"
#include "rayelastic/operator/dead_letters.hpp"
#include "rayelastic/operator/stages.hpp"
#include "rayelastic/state/further_keys.hpp"
#include "record/object_ref.hpp"
#include "record/run_view.hpp"

namespace rayelastic::python {

namespace {

constexpr std::int64_t kAtOnce = 256;                                 // records that are submitted together outside of a run
constexpr std::int64_t kFailedSomewhere = REL_FAILED(INT64_MAX - 1);  // no input of the run has this number
// In place of port or firings.
constexpr std::int64_t kAtEnd = -1;
constexpr std::int64_t kAtTime = -2;  // the watermark has advanced
constexpr std::int64_t kPoked = -3;

struct PortLane final : Operator {
  // by_time: keys live by the event time.
  PortLane(const PythonPorts& described, std::shared_ptr<PythonFailure> where, bool by_time);

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override;
  std::int64_t on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) override;
  std::int64_t finish(std::byte* out, std::int64_t capacity, rel_context* context) override;
  void on_command(rel_context* context) override;
  [[nodiscard]] StateTable* state() override { return table.get(); }
  [[nodiscard]] Stages* stages() override { return waiting.get(); }
  [[nodiscard]] const std::vector<Demand>& demands() const override { return wanted; }
  [[nodiscard]] CalledFor called_for() const override { return calls; }
  [[nodiscard]] bool bounds_runs() const override { return states != nullptr; }
  [[nodiscard]] std::size_t longest_run() const override { return states->longest_run(); }

  ObjectRef function;
  std::vector<std::shared_ptr<RunView>> in_views;
  std::vector<std::shared_ptr<RunView>> out_views;  // without that of the dead letters
  std::unique_ptr<DeadLetters> letters;
  std::size_t record_size = 0;       // of the first input port
  std::vector<std::size_t> strides;  // of the outputs
  std::vector<char> given;           // which outputs the call gave something for
  const std::shared_ptr<ObjectStates> states;
  std::vector<FurtherKeys> further;  // of further input ports
  const std::shared_ptr<PythonFailure> failure;
  const std::vector<Demand> wanted;
  const CalledFor calls;
  std::shared_ptr<Stages> waiting;    // with demands
  std::shared_ptr<StateTable> table;  // of all that it keeps
  std::vector<void*> slots;
  std::vector<std::byte> buffer;
};

// What the function is called with: a run, or runs. Token held. Null: a Python error is set.
PyObject* runs_of(PortLane& lane, const std::byte* in, std::size_t n, rel_context* context) {
  if (context->firings() < 0) return lane.in_views[static_cast<std::size_t>(context->port())]->to_python(in, n);
  PyObject* runs = PyList_New(static_cast<Py_ssize_t>(lane.in_views.size()));
  for (std::size_t port = 0; runs != nullptr && port < lane.in_views.size(); ++port) {
    std::int64_t count = 0;
    const void* records = context->staged(static_cast<std::int32_t>(port), count);
    PyObject* run = lane.in_views[port]->to_python(static_cast<const std::byte*>(records), static_cast<std::size_t>(count));
    if (run == nullptr) Py_CLEAR(runs);
    if (runs != nullptr) PyList_SET_ITEM(runs, static_cast<Py_ssize_t>(port), run);
  }
  return runs;
}

PyObject* states_of(PortLane& lane, const std::byte* in, std::size_t n, const rel_context* context, std::size_t* failed) {
  const auto port = static_cast<std::size_t>(context->port());
  lane.slots.resize(n);
  const Turn turn = lane.states->turn();
  lane.states->begin_run(context->watermark(), n);
  if (port == 0) {
    lane.states->table().lookup(in, n, lane.slots.data());
  } else {
    lane.further[port - 1].lookup(lane.states->table(), in, n, lane.slots.data());
  }
  return lane.states->values(lane.slots.data(), n, failed);
}

// Token held. False: a Python error is set.
bool take_letters(PortLane& lane, PyObject* pairs, const std::byte* in, std::size_t n) {
  if (pairs == Py_None) return true;
  for (Py_ssize_t i = 0; PyList_Check(pairs) && i < PyList_GET_SIZE(pairs); ++i) {
    Py_ssize_t index = 0;
    PyObject* error = nullptr;
    if (PyArg_ParseTuple(PyList_GET_ITEM(pairs, i), "nU", &index, &error) == 0) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(error, &size);
    if (text == nullptr) return false;
    if (index < 0 || static_cast<std::size_t>(index) >= n) {
      PyErr_Format(PyExc_IndexError, "operator '%s': there is no tuple %zd in a run of %zu", lane.name().c_str(), index, n);
      return false;
    }
    lane.letters->add(in + static_cast<std::size_t>(index) * lane.record_size, {text, static_cast<std::size_t>(size)});
  }
  return true;
}

// One result more than there are ports says how many tuples were left out. Token held. False: a Python error is set.
bool take_results(PortLane& lane, PyObject* result, const std::byte* in, std::size_t n, rel_context* context, std::size_t* failed) {
  lane.given.assign(lane.out_views.size(), 0);
  if (result == Py_None) return true;
  PyObject* results = PySequence_Fast(result, "");
  const std::size_t ports = lane.out_views.size() + (lane.letters != nullptr ? 1 : 0);
  const auto given = static_cast<std::size_t>(results != nullptr ? PySequence_Fast_GET_SIZE(results) : 0);
  PyObject* left_out = given == ports + 1 ? PySequence_Fast_GET_ITEM(results, given - 1) : nullptr;
  if (left_out != nullptr && PyLong_CheckExact(left_out)) {
    context->count(Tally::Skipped, PyLong_AsLongLong(left_out));
  } else if (given != ports) {
    Py_XDECREF(results);
    PyErr_Format(PyExc_TypeError, "operator '%s': expected a result for each of its %zu output ports", lane.name().c_str(), ports);
    return false;
  }
  bool done = true;
  for (std::size_t port = 0; done && port < lane.out_views.size(); ++port) {
    PyObject* one = PySequence_Fast_GET_ITEM(results, static_cast<Py_ssize_t>(port));
    if (one == Py_None) continue;
    lane.given[port] = 1;
    done = lane.out_views[port]->from_python(one, kUnknownIndex, failed);
  }
  if (done && lane.letters != nullptr)
    done = take_letters(lane, PySequence_Fast_GET_ITEM(results, static_cast<Py_ssize_t>(ports) - 1), in, n);
  Py_DECREF(results);
  return done;
}

// Calls the function for no run: it is told the time instead, or nothing. Token, or GIL. False: a Python error is set.
bool tell(PortLane& lane, std::int64_t why, rel_context* context) {
  const ObjectRef number = ObjectRef::take(PyLong_FromLongLong(why));
  const ObjectRef time = why == kAtTime ? ObjectRef::take(PyLong_FromLongLong(context->watermark())) : ObjectRef::share(Py_None);
  if (!number || !time) return false;
  PyObject* arguments[] = {number.get(), time.get()};
  ObjectRef result;
  {
    const Inside inside(*lane.failure);
    result = ObjectRef::take(PyObject_Vectorcall(lane.function.get(), arguments, 2, nullptr));
  }
  std::size_t failed = kUnknownIndex;
  return result && take_results(lane, result.get(), nullptr, 0, context, &failed);
}

bool call(PortLane& lane, const std::byte* in, std::size_t n, rel_context* context, std::size_t* failed) {
  const std::int64_t firings = context->firings();
  PyObject* runs = runs_of(lane, in, n, context);
  PyObject* number = PyLong_FromLongLong(firings >= 0 ? firings : context->port());
  PyObject* states = nullptr;
  bool done = runs != nullptr && number != nullptr;
  if (done && lane.states != nullptr) {
    states = states_of(lane, in, n, context, failed);
    done = states != nullptr;
  }
  PyObject* result = nullptr;
  if (done) {
    PyObject* arguments[] = {number, runs, states};
    const Inside inside(*lane.failure);
    result = PyObject_Vectorcall(lane.function.get(), arguments, states != nullptr ? 3 : 2, nullptr);
    if (result == nullptr) *failed = index_of_error();
  }
  Py_XDECREF(states);
  Py_XDECREF(number);
  Py_XDECREF(runs);
  done = result != nullptr && take_results(lane, result, in, n, context, failed);
  Py_XDECREF(result);
  return done;
}

// Without the token inside: what a port got goes out. Negative: as of a rel_process.
std::int64_t submit_to(PortLane& lane, std::size_t port, std::int64_t capacity, rel_context* context) {
  if (lane.given[port] == 0) return 0;
  lane.buffer.resize(static_cast<std::size_t>(capacity) * lane.strides[port]);
  PortContext to(*context, static_cast<std::int32_t>(port), lane.buffer.data());
  const std::int64_t left = lane.out_views[port]->submit(lane.buffer.data(), capacity, &to);
  if (left < 0) return left;
  return to.flush(left) ? 0 : REL_STOPPED;
}

// That of all ports, the first one last.
std::int64_t submit(PortLane& lane, std::byte* out, std::int64_t capacity, rel_context* context) {
  for (std::size_t port = 1; port < lane.out_views.size(); ++port) {
    if (const std::int64_t sent = submit_to(lane, port, capacity, context); sent < 0) return sent;
  }
  if (lane.letters != nullptr && !lane.letters->submit(context, static_cast<std::int32_t>(lane.out_views.size()))) return REL_STOPPED;
  return lane.given.empty() || lane.given[0] == 0 ? 0 : lane.out_views[0]->submit(out, capacity, context);
}

std::int64_t fail(const PortLane& lane, std::size_t failed, std::size_t count, rel_context* context) {
  context->fail(lane.failure->keep());
  return failed < count ? REL_FAILED(failed) : kFailedSomewhere;
}

std::int64_t PortLane::process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) {
  const auto count = static_cast<std::size_t>(n);
  std::size_t failed = kUnknownIndex;
  if (call(*this, in, count, context, &failed)) return submit(*this, out, capacity, context);
  if (failed == kUnknownIndex && count == 1 && context->firings() < 0) failed = 0;
  return fail(*this, failed, count, context);
}

std::int64_t PortLane::on_watermark(std::int64_t watermark, std::byte* out, std::int64_t capacity, rel_context* context) {
  if (!tell(*this, kAtTime, context)) return fail(*this, kUnknownIndex, 0, context);
  const std::int64_t left = submit(*this, out, capacity, context);
  if (left < 0) return left;
  if (!context->flush(left)) return REL_STOPPED;
  context->mark({MarkKind::Watermark, watermark});
  return 0;
}

std::int64_t PortLane::finish(std::byte* out, std::int64_t capacity, rel_context* context) {
  return tell(*this, kAtEnd, context) ? submit(*this, out, capacity, context) : fail(*this, kUnknownIndex, 0, context);
}

// Without the token, which nobody holds for it.
void PortLane::on_command(rel_context* context) {
  enter_python();
  const bool told = tell(*this, kPoked, context);
  if (!told) context->fail(failure->keep());
  leave_python();
  for (std::size_t port = 0; told && port < out_views.size(); ++port) {
    if (submit_to(*this, port, kAtOnce, context) < 0) break;  // whoever has to stop knows it
  }
}

std::unique_ptr<RunView> view_of(const PythonPorts& function, const std::shared_ptr<const Schema>& input,
                                 const std::shared_ptr<const Schema>& output, PyObject* type) {
  switch (function.view) {
    case View::Tuples:
      return make_tuple_view(function.name, input, output, type);
    case View::Numpy:
      return make_numpy_view(function.name, input, output);
    case View::Arrow:
      return make_arrow_view(function.name, input, output);
  }
  return nullptr;
}

PortLane::PortLane(const PythonPorts& described, std::shared_ptr<PythonFailure> where, bool by_time)
    : Operator(described.name, described.inputs, described.outputs,
               described.flags | REL_NEEDS_TOKEN | (described.outputs.empty() ? static_cast<std::uint32_t>(REL_SINK) : 0U)),
      function(ObjectRef::share(described.function)),
      record_size(described.inputs.front()->record_size()),
      states(described.states),
      failure(std::move(where)),
      wanted(described.demands),
      calls(described.view == View::Tuples ? CalledFor::Record : CalledFor::Run),
      table(described.states) {
  for (std::size_t port = 0; port < described.inputs.size(); ++port) {
    PyObject* type = described.input_types[port] == Py_None ? nullptr : described.input_types[port];
    // The array view knows the texts that it passed to the function, which may pass them on.
    const bool shared = described.view == View::Numpy && described.inputs.size() == 1 && !described.outputs.empty();
    in_views.push_back(view_of(described, described.inputs[port], shared ? described.outputs.front() : nullptr, type));
    if (shared) out_views.push_back(in_views.back());
    if (port == 0 || states == nullptr) continue;
    const auto [time, shift] = by_time ? described.times[port - 1] : PythonPorts::Time();
    further.emplace_back(described.inputs[port], described.keys[port], time, shift);
  }
  const std::size_t results = described.outputs.size() - (described.letters ? 1 : 0);
  for (std::size_t port = 0; port < results; ++port) {
    const std::shared_ptr<const Schema>& schema = described.outputs[port];
    strides.push_back(schema->record_size());
    if (port < out_views.size()) continue;
    out_views.push_back(view_of(described, described.view == View::Tuples ? nullptr : described.inputs.front(), schema, nullptr));
  }
  if (described.letters) letters = std::make_unique<DeadLetters>(*described.inputs.front(), described.outputs.back(), described.name);
  if (described.own != nullptr) table = described.own;
  if (!wanted.empty()) std::tie(waiting, table) = make_stages(described.inputs, described.own);
}

}  // namespace

std::shared_ptr<Operator> make_python_ports(const PythonPorts& function, std::shared_ptr<PythonFailure> failure) {
  const auto refuse = [&](const char* why) { throw std::invalid_argument("operator '" + function.name + "': " + why); };
  if (PyCallable_Check(function.function) == 0) refuse("function must be callable");
  if (function.inputs.empty()) refuse("needs an input port");
  if ((function.flags & ~static_cast<std::uint32_t>(REL_ON_FINISH | REL_ON_WATERMARK | REL_ON_COMMAND)) != 0)
    refuse("takes no flags but ON_FINISH, ON_WATERMARK and ON_COMMAND");
  if ((function.flags & (REL_ON_WATERMARK | REL_ON_COMMAND)) != 0 && (!function.demands.empty() || function.outputs.empty()))
    refuse("reads times: it needs an output port, and no demands");
  if (function.states != nullptr && (!function.demands.empty() || function.view != View::Tuples))
    refuse("keyed state needs view='tuples' and no demands");
  if (function.letters && (function.inputs.size() != 1 || function.outputs.size() < 2 || !function.demands.empty()))
    refuse("has dead letters: it needs a single input port without demand, and another output port");
  const auto keyless = [](const auto& keys) { return keys.empty(); };
  if (function.states != nullptr && std::any_of(function.keys.begin() + 1, function.keys.end(), keyless))
    refuse("needs the key fields of each further input port");
  const bool by_time = function.states != nullptr && function.states->table().is_mortal() && !function.states->table().ages();
  if (function.times.size() != (by_time ? function.inputs.size() - 1 : 0))
    refuse("needs the event time of each further input port, of keys that live by it");

  return make_with_references<PortLane>(function, std::move(failure), by_time);
}

}  // namespace rayelastic::python
