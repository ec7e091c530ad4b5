// rayelastic._native.Operator: what can be added to a scheduler, whatever lane it runs in.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <optional>
#include <stdexcept>

#include "operators/aggregates/named.hpp"
#include "operators/explanation.hpp"
#include "python/python_lane.hpp"
#include "python/python_stream.hpp"
#include "rayelastic/arrow/arrow_feeder.hpp"
#include "rayelastic/arrow/arrow_sink.hpp"
#include "rayelastic/net/gather.hpp"
#include "rayelastic/net/link.hpp"
#include "rayelastic/net/router.hpp"
#include "rayelastic/operator/function.hpp"
#include "rayelastic/operator/recovery.hpp"
#include "rayelastic/operator/tolerant.hpp"
#include "rayelastic/operators/count_sink.hpp"
#include "rayelastic/operators/sequence_source.hpp"
#include "rayelastic/operators/split.hpp"
#include "rayelastic/operators/text_source.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "record/answers.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"
#include "state/class_state.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

std::shared_ptr<const Schema> schema_of(const SchemaObject* object) { return object != nullptr ? object->schema : nullptr; }

std::vector<std::shared_ptr<const Schema>> schemas_of(const std::vector<SchemaObject>& objects) {
  std::vector<std::shared_ptr<const Schema>> schemas;
  for (const SchemaObject& object : objects) schemas.push_back(object.schema);
  return schemas;
}

// An input port of a Python function: its schema and tuple type, its keys, what it demands ('exact' or 'at least', and how many records), and
// the event time of its keys.
using InputPort = std::tuple<SchemaObject, nb::object, std::vector<std::string>, std::optional<std::pair<std::string, std::int64_t>>,
                             std::optional<PythonPorts::Time>>;

Demand demand_of(const std::string& name, const std::pair<std::string, std::int64_t>& described) {
  const auto& [kind, count] = described;
  if (kind != "exact" && kind != "at least")
    throw std::invalid_argument("operator '" + name + "': a port demands '" + kind + "', not 'exact' or 'at least'");
  return {.count = count, .kind = kind == "exact" ? Demand::Kind::Exact : Demand::Kind::AtLeast};
}

OperatorObject compiled(std::string name, std::uintptr_t address, std::uint32_t flags, const SchemaObject& input,
                        const SchemaObject& output, const KeyedStateObject* keyed, nb::object owner) {
  if (address == 0) throw std::invalid_argument("operator '" + name + "': address is 0");
  if (keyed != nullptr && keyed->records == nullptr)
    throw std::invalid_argument("operator '" + name + "': the state of a compiled function is made by KeyedState(...)");
  if ((keyed != nullptr) != ((flags & REL_KEYED) != 0))
    throw std::invalid_argument("operator '" + name + "': keyed= and REL_KEYED go together");
  constexpr std::uint32_t kPlain = REL_ONE_TO_ONE | REL_FILTER | REL_IN_PLACE;
  const auto kept = std::make_shared<ObjectRef>(ObjectRef::share(owner.ptr()));
  Function function{.process = reinterpret_cast<rel_process>(address),
                    .state = std::shared_ptr<void>(kept, nullptr),  // keeps the machine code loaded
                    .keyed = keyed != nullptr ? keyed->records : nullptr,
                    .reentrant = keyed == nullptr && (flags & ~kPlain) == 0};
  return {
      .op = std::make_shared<FunctionOperator>(std::move(name), Schemas{input.schema}, Schemas{output.schema}, flags, std::move(function))};
}

View view_named(const std::string& name, const std::string& view) {
  if (view == "tuples") return View::Tuples;
  if (view == "numpy") return View::Numpy;
  if (view == "arrow") return View::Arrow;
  throw std::invalid_argument("operator '" + name + "': view is '" + view + "', not 'tuples', 'numpy' or 'arrow'");
}

OperatorObject python(std::string name, nb::object function, const SchemaObject* input, const SchemaObject* output, nb::object tuple_type,
                      const std::string& view, std::uint32_t flags, const KeyedStateObject* keyed) {
  if (keyed != nullptr && keyed->objects == nullptr) {
    throw std::invalid_argument("operator '" + name + "': keyed state of a Python function is made by KeyedState.objects");
  }
  const PythonFunction described{.name = name,
                                 .function = function.ptr(),
                                 .input = schema_of(input),
                                 .output = schema_of(output),
                                 .input_type = tuple_type.is_none() ? nullptr : tuple_type.ptr(),
                                 .view = view_named(name, view),
                                 .flags = flags,
                                 .states = keyed != nullptr ? keyed->objects : nullptr};
  OperatorObject result;
  result.failure = std::make_shared<PythonFailure>(name);
  result.op = (flags & REL_SOURCE) != 0 ? make_python_source(described, result.failure) : make_python_operator(described, result.failure);
  return result;
}

OperatorObject python_ports(std::string name, nb::object function, const std::vector<InputPort>& inputs,
                            const std::vector<SchemaObject>& outputs, const std::string& view, std::uint32_t flags, nb::object state,
                            bool letters) {
  PythonPorts described;
  described.name = name;
  described.function = function.ptr();
  described.outputs = schemas_of(outputs);
  described.view = view_named(name, view);
  described.flags = flags;
  described.letters = letters;
  for (const auto& [schema, type, keys, demand, time] : inputs) {
    described.inputs.push_back(schema.schema);
    described.input_types.push_back(type.ptr());
    described.keys.push_back(keys);
    if (demand.has_value()) described.demands.push_back(demand_of(name, *demand));
    if (time.has_value()) described.times.push_back(*time);
  }
  const KeyedStateObject* keyed = nullptr;
  if (nb::try_cast(state, keyed) && keyed != nullptr) {
    if (keyed->objects == nullptr)
      throw std::invalid_argument("operator '" + name + "': keyed state of a Python function is made by KeyedState.objects");
    described.states = keyed->objects;
  } else if (!state.is_none()) {
    described.own = std::make_shared<ClassState>(nb::object(state[0]).ptr(), nb::object(state[1]).ptr());
  }
  OperatorObject result;
  result.failure = std::make_shared<PythonFailure>(name);
  result.op = make_python_ports(described, result.failure);
  return result;
}

OperatorObject tolerant(const OperatorObject& inner, const SchemaObject* letters, nb::object explain) {
  OperatorObject result = inner;
  result.op = make_tolerant(inner.op, schema_of(letters), explanation(inner.op->name(), inner.op->inputs().front(), std::move(explain)));
  return result;
}

OperatorObject answered(const OperatorObject& inner, nb::object answer) {
  OperatorObject result = inner;
  const bool filters = inner.op->has_any(REL_FILTER);
  result.op = make_recovering(
      *inner.op, make_answers(inner.op->name(), inner.op->inputs().front(), filters ? nullptr : inner.op->outputs().front(), answer.ptr()));
  return result;
}

OperatorObject aggregate(std::string name, const SchemaObject& input, const SchemaObject& output, const std::vector<std::string>& keys,
                         const std::vector<NamedAggregate>& aggregates, const std::string& emit, const GivenTtl& ttl,
                         const OwnAggregateObject* own) {
  if (emit != "final" && emit != "update" && emit != "run")
    throw std::invalid_argument("operator '" + name + "': emit is '" + emit + "', not 'final', 'update' or 'run'");
  const Emit when = emit == "final" ? Emit::Final : emit == "update" ? Emit::Update : Emit::Run;
  return {.op = make_aggregate(std::move(name), input.schema, output.schema, keys, aggregates_of(aggregates, own), when, ttl_of(ttl))};
}

OperatorObject arrow_sink(std::string name, const SchemaObject& input, nb::object function, std::size_t batch_rows) {
  OperatorObject result;
  result.failure = std::make_shared<PythonFailure>(name);
  PythonFunction described;
  described.name = std::move(name);
  described.function = function.ptr();
  described.input = input.schema;
  result.op = make_batch_sink(described, batch_rows, result.failure);
  return result;
}

OperatorObject count_sink(std::string name, const SchemaObject& input) {
  OperatorObject result;
  result.counter = std::make_shared<std::atomic<std::int64_t>>(0);
  result.op = make_count_sink(std::move(name), input.schema, result.counter);
  return result;
}

}  // namespace

void bind_operator(nb::module_& module) {
  nb::class_<OperatorObject>(module, "Operator",
                             "One operator, ready to be added to a scheduler. ValueError names the operator when something doesn't fit.")
      .def_static(
          "compiled", compiled, nb::arg("name"), nb::arg("address"), nb::arg("flags"), nb::arg("input"), nb::arg("output"),
          nb::arg("keyed").none() = nb::none(), nb::arg("owner") = nb::none(),
          nb::sig("def compiled(name: str, address: int, flags: int, input: Schema, output: Schema, keyed: KeyedState | None = None, "
                  "owner: object = None) -> Operator"),
          "A rel_process at an address (abi.h). owner: kept alive with it.")
      .def_static(
          "python_ports", python_ports, nb::arg("name"), nb::arg("function"), nb::arg("inputs"), nb::arg("outputs"),
          nb::arg("view") = "tuples", nb::arg("flags") = 0, nb::arg("state") = nb::none(), nb::arg("letters") = false,
          nb::sig("def python_ports(name: str, function: collections.abc.Callable[..., typing.Any], inputs: "
                  "collections.abc.Sequence[tuple[Schema, type | None, collections.abc.Sequence[str], tuple[str, int] | None, "
                  "tuple[str, int] | None]], outputs: collections.abc.Sequence[Schema], view: str = 'tuples', flags: int = 0, state: "
                  "KeyedState | tuple[collections.abc.Callable[[], bytes], collections.abc.Callable[[bytes], object]] | None = None, "
                  "letters: bool = False) -> Operator"),
          "A Python function of runs of several ports, under the Python token; it returns None, or a result (as of `python`) or None for "
          "each output port.\n\n"
          "An input port: its schema, tuple type, key fields, demand ('exact' or 'at least', and a count), and the event time and shift "
          "by which\nthe keys of a further port live. Without demands: function(port, run[, list of states]). With demands: "
          "function(firings, [run of each\nport]), with firings = 0 for what is left when a port has ended. With ON_FINISH: "
          "function(-1, None) at the end; with ON_WATERMARK:\nfunction(-2, watermark) when that has advanced; with ON_COMMAND: "
          "function(-3, None) by Scheduler.poke. state: that of keys, or what\nsaves the state of its object and what restores it before "
          "the start. letters: the last output port has the fields of the input and two\ntexts; its result is a list of (number of the "
          "tuple in its run, error).")
      .def_static(
          "python", python, nb::arg("name"), nb::arg("function"), nb::arg("input").none(), nb::arg("output").none(),
          nb::arg("tuple_type") = nb::none(), nb::arg("view") = "tuples", nb::arg("flags") = 0, nb::arg("keyed").none() = nb::none(),
          nb::sig("def python(name: str, function: collections.abc.Callable[..., typing.Any], input: Schema | None, output: Schema | None, "
                  "tuple_type: type | None = None, view: str = 'tuples', flags: int = 0, keyed: KeyedState | None = None) -> Operator"),
          "A Python function of a run, called once per run under the Python token.\n\n"
          "tuples: function(list of tuple_type[, list of states]) -> list: one output per tuple with ONE_TO_ONE, truth values with "
          "FILTER,\n"
          "any number otherwise, nothing with SINK; called with [] at the end with ON_FINISH. Outputs are tuples, or plain values where "
          "the\n"
          "schema has one field. An int attribute rel_index on an exception tells which input raised.\n"
          "numpy: function(structured array) -> array, column, {field: column}, or bool mask. arrow: function(pyarrow.RecordBatch) -> the "
          "same, or mask.\n"
          "With SOURCE: function() -> iterator of tuples, read on a thread of its own. It may wait for things, and doesn't keep others "
          "from the\n"
          "token while it does; with NEEDS_TOKEN too it must never wait. A stop raises GeneratorExit where it waits in Python code.")
      .def_static(
          "tolerant", tolerant, nb::arg("operator"), nb::arg("letters").none(), nb::arg("explain"),
          nb::sig("def tolerant(operator: Operator, letters: Schema | None, explain: collections.abc.Callable[[tuple[typing.Any, ...]], "
                  "str]) -> Operator"),
          "A compiled operator that goes on behind tuples on which it fails. letters: of a second output port to which they go, with "
          "two more texts:\n"
          "explain(tuple) and the operator's name; None: they are left out.")
      .def_static(
          "answered", answered, nb::arg("operator"), nb::arg("answer"),
          nb::sig("def answered(operator: Operator, answer: collections.abc.Callable[[tuple[typing.Any, ...]], "
                  "collections.abc.Sequence[typing.Any] | bool | None]) -> Operator"),
          "A compiled operator without keys that takes answer(tuple), a list of outputs or of a FILTER a truth value, where its function "
          "fails.\nNone, or what doesn't fit the output: it has failed.")
      .def_static(
          "split",
          [](std::string name, const SchemaObject& schema, std::size_t ports, const std::vector<std::string>& keys) {
            return OperatorObject{.op = keys.empty() ? make_round_robin(std::move(name), schema.schema, ports)
                                                     : make_hash_split(std::move(name), schema.schema, keys, ports)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("ports"), nb::arg("keys") = std::vector<std::string>(),
          "Each record to one of the output ports: by the hash of its keys, or in turn if there are none.")
      .def_static(
          "choice",
          [](const OperatorObject& choice, std::size_t ports) {
            OperatorObject result = choice;
            result.op = make_choice_split(choice.op, ports);
            return result;
          },
          nb::arg("choice"), nb::arg("ports"), "Each record to the output port whose number the compiled operator `choice` gives for it.")
      .def_static("aggregate", aggregate, nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("keys"), nb::arg("aggregates"),
                  nb::arg("emit") = "final", nb::arg("ttl") = GivenTtl(), nb::arg("own").none() = nb::none(),
                  "The built-in aggregate: (function, field, field of weights, two parameters); field '' for a count of tuples. ttl as of "
                  "KeyedState.\nemit: 'final', 'update', or 'run': what each run of tuples gives by itself. Or a user's own, alone.")
      .def_static(
          "text_source",
          [](std::string name, const SchemaObject& output, std::vector<std::string> paths, nb::object open, bool all) {
            TextFiles files{.paths = std::move(paths), .open = stream_opener(open.ptr()), .all_by_stream = all};
            return OperatorObject{.op = make_text_source(std::move(name), output.schema, std::move(files))};
          },
          nb::arg("name"), nb::arg("output"), nb::arg("paths"), nb::arg("open"), nb::arg("all_opened") = false,
          nb::sig("def text_source(name: str, output: Schema, paths: collections.abc.Sequence[str], "
                  "open: collections.abc.Callable[[str], typing.Any], all_opened: bool = False) -> Operator"),
          "Lines of text files, one string field. open(path): gives the bytes of a URI or a compressed file by readinto(buffer); of\n"
          "every file with all_opened.")
      .def_static(
          "sequence_source",
          [](std::string name, const SchemaObject& output, std::int64_t count, std::size_t payload_bytes) {
            return OperatorObject{.op = make_sequence_source(std::move(name), output.schema, count, payload_bytes)};
          },
          nb::arg("name"), nb::arg("output"), nb::arg("count"), nb::arg("payload_bytes") = 0, "0, 1, ..., count - 1 with a shared payload.")
      .def_static(
          "arrow_source",
          [](std::string name, const SchemaObject& output, const FeederObject& feeder) {
            if (output.schema->record_size() != feeder.feeder->schema()->record_size())
              throw std::invalid_argument("operator '" + name + "': the feeder has another schema");
            return OperatorObject{.op = make_arrow_source(std::move(name), feeder.feeder)};
          },
          nb::arg("name"), nb::arg("output"), nb::arg("feeder"), "Rows of the batches pushed into an ArrowFeeder.")
      .def_static("arrow_sink", arrow_sink, nb::arg("name"), nb::arg("input"), nb::arg("function"), nb::arg("batch_rows") = 65536,
                  nb::sig("def arrow_sink(name: str, input: Schema, function: collections.abc.Callable[[typing.Any], typing.Any], "
                          "batch_rows: int = 65536) -> Operator"),
                  "function(pyarrow.RecordBatch), once per batch_rows rows and for the rest at the end.")
      .def_static("count_sink", count_sink, nb::arg("name"), nb::arg("input"), "Counts only; see count.")
      .def_static(
          "link_out",
          [](std::string name, const SchemaObject& input, const LinkObject& link) {
            return OperatorObject{.op = link_out(std::move(name), input.schema, link.link)};
          },
          nb::arg("name"), nb::arg("input"), nb::arg("link"), "The sending end of a link, a sink.")
      .def_static(
          "link_in",
          [](std::string name, const SchemaObject& output, const LinkObject& link) {
            return OperatorObject{.op = link_in(std::move(name), output.schema, link.link)};
          },
          nb::arg("name"), nb::arg("output"), nb::arg("link"), "The receiving end of a link, a source.")
      .def_static(
          "router", [](std::shared_ptr<Router> router) { return OperatorObject{.op = make_router(std::move(router))}; }, nb::arg("router"),
          "Runs a router: an output port for each local target, a sink if there is none.")
      .def_static(
          "gather", [](std::shared_ptr<Gather> gather) { return OperatorObject{.op = make_gather(std::move(gather))}; }, nb::arg("gather"),
          "Runs a gather, a source.")
      .def_static(
          "tap",
          [](std::string name, const SchemaObject& schema, std::shared_ptr<Tap> tap) {
            return OperatorObject{.op = make_tap(std::move(name), schema.schema, std::move(tap))};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("tap"), "Runs a tap.")
      .def_prop_ro(
          "name", [](const OperatorObject& self) { return self.op->name(); }, "What counters and messages call it.")
      .def_prop_ro(
          "flags", [](const OperatorObject& self) { return self.op->flags(); }, "rel_flags as the scheduler sees them.")
      .def_prop_ro(
          "state",
          [](const OperatorObject& self) -> std::optional<KeyedStateObject> {
            StateTable* const state = self.op->state();
            return state != nullptr ? std::optional(KeyedStateObject{.store = std::shared_ptr<StateTable>(self.op, state)}) : std::nullopt;
          },
          nb::sig("def state(self) -> KeyedState | None"), "What it keeps by key, whatever its lane; None if that is nothing.")
      .def_prop_ro(
          "has_part", [](const OperatorObject& self) { return self.op->takes_partial_runs(); },
          "Whether its producer may run it beside whoever does, where it finds the queue full.")
      .def_prop_ro(
          "reentrant", [](const OperatorObject& self) { return self.op->is_reentrant(); },
          "Whether several threads may run it at once, each by itself.")
      .def(
          "settle",
          [](const OperatorObject& self) {
            const nb::gil_scoped_release released;
            self.op->settle();
          },
          "Before its state is read with everything held: takes in what other threads have done for it. StateError if it can't.")
      .def_prop_ro(
          "is_inside", [](const OperatorObject& self) { return self.failure != nullptr && self.failure->thread.load() != 0; },
          "Whether a thread is in its Python function now.")
      .def(
          "interrupt", [](const OperatorObject& self) { return self.failure != nullptr && self.failure->interrupt(); },
          "Raises GeneratorExit in its Python function, where that is in Python code; a call that waits in C and never comes back can't be "
          "interrupted\nby anybody. False: no thread is inside.")
      .def_prop_ro(
          "count",
          [](const OperatorObject& self) {
            return self.counter != nullptr ? std::optional(self.counter->load(std::memory_order_relaxed)) : std::nullopt;
          },
          "Tuples that a count_sink has seen; None for other operators.");
}

}  // namespace rayelastic::python
