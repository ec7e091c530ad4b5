// rayelastic._native.OwnAggregate: a user's aggregate, compiled.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "operators/explanation.hpp"
#include "rayelastic/operators/aggregate/own_aggregate.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

// Addresses of add, merge (0 for none) and result.
using Methods = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t>;
// Why add failed on a tuple and a state, and result on a state.
using Explained = std::tuple<nb::object, nb::object>;

rel_process method_at(std::uintptr_t address) { return reinterpret_cast<rel_process>(address); }

void make(OwnAggregateObject* self, const std::string& name, const SchemaObject& input, const SchemaObject& state,
          const SchemaObject& result, const Methods& methods, const nb::bytes& initial, const Explained& explained, nb::object owner) {
  const auto* first = static_cast<const std::byte*>(initial.data());
  OwnOptions options{.methods = {method_at(std::get<0>(methods)), method_at(std::get<1>(methods)), method_at(std::get<2>(methods))},
                     .input = input.schema,
                     .state = state.schema,
                     .result = result.schema,
                     .initial = {first, first + initial.size()},
                     .why_add = [why = explanation_of(name, {input.schema, state.schema}, std::get<0>(explained))](
                                    const std::byte* record, const std::byte* held) { return why({record, held}); },
                     .why_state = explanation(name, state.schema, std::get<1>(explained)),
                     .owner = std::make_shared<ObjectRef>(ObjectRef::share(owner.ptr()))};
  try {
    new (self) OwnAggregateObject{std::make_shared<OwnAggregate>(std::move(options))};
  } catch (const std::invalid_argument& problem) {
    throw std::invalid_argument("operator '" + name + "': " + problem.what());
  }
}

}  // namespace

void bind_own_aggregate(nb::module_& module) {
  nb::class_<OwnAggregateObject>(module, "OwnAggregate",
                                 "A user's aggregate, compiled, of one operator: what it takes in, merges and gives is machine code.")
      .def("__init__", make, nb::arg("name"), nb::arg("input"), nb::arg("state"), nb::arg("result"), nb::arg("methods"), nb::arg("initial"),
           nb::arg("explained"), nb::arg("owner").none(),
           nb::sig(
               "def __init__(self, name: str, input: Schema, state: Schema, result: Schema, methods: tuple[int, int, int], initial: bytes, "
               "explained: tuple[typing.Any, typing.Any], owner: object) -> None"),
           "methods: addresses of add (0: states are only read), merge (0 for none) and result (0: fields of the state, by name); initial: "
           "the "
           "state\nrecord of nothing; explained: why add failed on a tuple and a state, and result on a state.");
}

}  // namespace rayelastic::python
