// rayelastic._native.Operator.concurrent: one whose tuples somebody else deals with, many at the same time.
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "python/python_concurrent.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

OperatorObject concurrent(std::string name, nb::object calls, const SchemaObject& input, const std::vector<SchemaObject>& outputs,
                          nb::object tuple_type, bool ordered) {
  std::vector<std::shared_ptr<const Schema>> schemas;
  for (const SchemaObject& output : outputs) schemas.push_back(output.schema);
  const ConcurrentCalls described{.name = name,
                                  .calls = calls.ptr(),
                                  .input = input.schema,
                                  .outputs = schemas,
                                  .input_type = tuple_type.is_none() ? nullptr : tuple_type.ptr(),
                                  .ordered = ordered};
  OperatorObject result;
  result.failure = std::make_shared<PythonFailure>(std::move(name));
  result.op = make_concurrent(described, result.failure);
  return result;
}

}  // namespace

void bind_concurrent() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static("concurrent", concurrent, nb::arg("name"), nb::arg("calls"), nb::arg("input"), nb::arg("outputs"),
                  nb::arg("tuple_type").none() = nb::none(), nb::arg("ordered") = true,
                  nb::sig("def concurrent(name: str, calls: typing.Any, input: Schema, outputs: collections.abc.Sequence[Schema], "
                          "tuple_type: type | None = None, ordered: bool = True) -> Operator"),
                  "Has `calls` deal with tuples elsewhere: room() -> int, begin(tuples), bar(), wait(), and collect() -> None or (list for "
                  "each output, how\nmany tuples and bars, how many left out, ends with a bar). Poke it when something is done.");
}

}  // namespace rayelastic::python
