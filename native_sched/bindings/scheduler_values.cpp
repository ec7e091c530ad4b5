#include "scheduler_values.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

constexpr double seconds(std::uint64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) * 1e-9; }

// A read-only property: a counter of the sample in an object; times are in seconds.
template <auto counter, typename Object>
auto number(const Object& self) {
  return self.counted.*counter;
}
template <auto counter, typename Object>
double time(const Object& self) {
  return seconds(self.counted.*counter);
}

void bind_operator_sample(nb::module_& module) {
  using One = OperatorSample;
  nb::class_<OperatorSampleObject>(module, "OperatorSample", "Counters of one operator since the start; times in seconds.", nb::is_final())
      .def_ro("name", &OperatorSampleObject::name)
      .def_prop_ro("tuples_in", number<&One::tuples_in, OperatorSampleObject>)
      .def_prop_ro("tuples_out", number<&One::tuples_out, OperatorSampleObject>)
      .def_prop_ro("cpu_seconds", time<&One::cpu_ns, OperatorSampleObject>,
                   "CPU time inside its function, without that of operators downstream.")
      .def_prop_ro("inside_seconds", time<&One::time_ns, OperatorSampleObject>, "Time inside its function, whether it ran or waited.")
      .def_prop_ro("waited_seconds", time<&One::waited_ns, OperatorSampleObject>,
                   "Of that, time asleep, waiting for something other than a CPU.")
      .def_prop_ro("blocked_seconds", time<&One::blocked_ns, OperatorSampleObject>, "Time that threads were blocked on its output.")
      .def_prop_ro("queued", number<&One::queued, OperatorSampleObject>, "Records in its port.")
      .def_prop_ro("queue_capacity", number<&One::queue_capacity, OperatorSampleObject>)
      .def_prop_ro(
          "model", [](const OperatorSampleObject& self) { return name_of(self.counted.model); }, "In force: 'manual', ...")
      .def_prop_ro("final", number<&One::final, OperatorSampleObject>, "Whether it has seen all its final marks.")
      .def_prop_ro("untaken", number<&One::untaken, OperatorSampleObject>,
                   "Records of output ports 1, 2, ... that have no consumer, by port.");
}

// A column a counter, so that thousands of operators needn't become objects of Python first.
nb::dict columns_of(const SampleObject& self) {
  std::vector<const OperatorSample*> operators;
  operators.reserve(nb::len(self.operators));
  for (nb::handle each : self.operators) operators.push_back(&nb::cast<const OperatorSampleObject&>(each).counted);
  nb::dict columns;
  std::vector<double> column(operators.size());
  for (const OperatorCounter& counter : kOperatorCounters) {
    std::ranges::transform(operators, column.begin(), [&](const OperatorSample* each) { return counter.read(*each); });
    columns[counter.name] = nb::bytes(column.data(), column.size() * sizeof(double));
  }
  return columns;
}

void bind_sample(nb::module_& module) {
  nb::class_<SampleObject>(module, "Sample", "Counters of a scheduler since the start; times in seconds.", nb::is_final())
      .def_prop_ro(
          "operators", [](const SampleObject& self) { return self.operators; },
          nb::sig("def operators(self) -> tuple[OperatorSample, ...]"), "By number.")
      .def_prop_ro("columns", columns_of, nb::sig("def columns(self) -> dict[str, bytes]"),
                   "Every counter of operators by its name, float64, an operator after the other; see kOperatorCounters.")
      .def_prop_ro("thread_count", number<&Sample::thread_count, SampleObject>, "Scheduler threads that aren't suspended.")
      .def_prop_ro("gil_wait_seconds", time<&Sample::token_wait_ns, SampleObject>, "Time that threads waited for the GIL.")
      .def_prop_ro("engine_cpu_seconds", time<&Sample::engine_cpu_ns, SampleObject>, "CPU time outside of operators.")
      .def_prop_ro("scheduler_seconds", time<&Sample::scheduler_ns, SampleObject>, "Time of scheduler threads that aren't suspended.")
      .def_prop_ro("idle_seconds", time<&Sample::idle_ns, SampleObject>, "Of that, without work.")
      .def_prop_ro("thread_seconds", time<&Sample::thread_ns, SampleObject>, "Time of all engine threads.")
      .def_prop_ro("blocked_seconds", time<&Sample::blocked_ns, SampleObject>, "Of that, waiting for room in a queue.")
      .def_prop_ro("stuck", number<&Sample::stuck, SampleObject>, "Scheduler threads that stay in user code.");
}

void bind_in_force(nb::module_& module) {
  nb::class_<InForceObject>(module, "InForce", "What a scheduler does of what it was asked for.", nb::is_final())
      .def_ro("thread_count", &InForceObject::thread_count, "Threads that are neither suspended nor stuck.")
      .def_ro("stuck", &InForceObject::stuck, "Threads that stay in user code.")
      .def_ro("unsuspended", &InForceObject::unsuspended, "Threads asked to go but still at work.")
      .def_ro("models", &InForceObject::models, "{operator: its threading model}.");
}

// The exception's traceback may lead back to who holds this.
int visit_failure(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* held = nb::inst_ptr<FailureObject>(self);
  Py_VISIT(held->record.ptr());
  Py_VISIT(held->exception.ptr());
  return 0;
}

int clear_failure(PyObject* self) {
  auto* held = nb::inst_ptr<FailureObject>(self);
  held->record.reset();
  held->exception.reset();
  return 0;
}

PyType_Slot failure_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(visit_failure)}, {Py_tp_clear, reinterpret_cast<void*>(clear_failure)}, {0, nullptr}};

void bind_failure(nb::module_& module) {
  nb::class_<FailureObject>(module, "OperatorFailure", "What one operator failed of.", nb::is_final(), nb::type_slots(failure_slots))
      .def_prop_ro(
          "operator", [](const FailureObject& self) { return self.failed.operator_name; }, "Its name.")
      .def_prop_ro(
          "operator_id", [](const FailureObject& self) { return self.failed.operator_id; }, "Its number.")
      .def_prop_ro(
          "message", [](const FailureObject& self) { return self.failed.message; }, "Empty if it didn't say why.")
      .def_prop_ro(
          "port", [](const FailureObject& self) { return self.failed.port; }, "The input port of the run that it failed on.")
      .def_prop_ro(
          "index", [](const FailureObject& self) { return self.failed.index < 0 ? std::optional<std::int64_t>() : self.failed.index; },
          "Of the input in its run; None: of none.")
      .def_prop_ro(
          "record", [](const FailureObject& self) { return self.record; }, nb::sig("def record(self) -> tuple[typing.Any, ...] | None"),
          "That input; None: there is none, or it can't be shown.")
      .def_prop_ro(
          "exception", [](const FailureObject& self) { return self.exception; }, nb::sig("def exception(self) -> BaseException | None"),
          "What a Python function raised, with its traceback; None: none did.");
}

}  // namespace

ThreadingModel model_named(const std::string& name) {
  if (name == "manual") return ThreadingModel::Manual;
  if (name == "dynamic") return ThreadingModel::Dynamic;
  if (name == "dedicated") return ThreadingModel::Dedicated;
  throw std::invalid_argument("threading model is '" + name + "', not 'manual', 'dynamic' or 'dedicated'");
}

const char* name_of(ThreadingModel model) noexcept {
  switch (model) {
    case ThreadingModel::Manual:
      return "manual";
    case ThreadingModel::Dynamic:
      return "dynamic";
    case ThreadingModel::Dedicated:
      return "dedicated";
  }
  return "";
}

SampleObject sample_object(Sample sampled, const std::vector<std::string>& names) {
  nb::list operators;
  for (std::size_t id = 0; id < sampled.operators.size(); ++id)
    operators.append(nb::cast(OperatorSampleObject{.name = names[id], .counted = std::move(sampled.operators[id])}));
  sampled.operators.clear();
  return {.counted = std::move(sampled), .operators = nb::tuple(operators)};
}

InForceObject in_force_object(const InForce& in_force) {
  InForceObject result{.thread_count = in_force.thread_count, .stuck = in_force.stuck, .unsuspended = in_force.unsuspended};
  for (OperatorId id = 0; id < in_force.models.size(); ++id) result.models.emplace(id, name_of(in_force.models[id]));
  return result;
}

void bind_scheduler_values(nb::module_& module) {
  bind_operator_sample(module);
  bind_sample(module);
  bind_in_force(module);
  bind_failure(module);
}

}  // namespace rayelastic::python
