// rayelastic._native.Operator: the built-in operators that know event time, windows and several streams.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "aggregates.hpp"
#include "rayelastic/event_time.hpp"
#include "rayelastic/window.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

WindowKind kind_named(const std::string& operator_name, const std::string& kind) {
  if (kind == "count") return WindowKind::Count;
  if (kind == "time") return WindowKind::Time;
  if (kind == "session") return WindowKind::Session;
  throw std::invalid_argument("operator '" + operator_name + "': kind is '" + kind + "', not 'count', 'time' or 'session'");
}

OperatorObject window(std::string name, const SchemaObject& input, const SchemaObject& output, const std::vector<std::string>& keys,
                      const std::string& kind, std::int64_t size, std::int64_t slide, std::string time, std::int64_t shift, bool rest,
                      const std::vector<NamedAggregate>& aggregates) {
  const WindowOptions options{kind_named(name, kind), size, slide, std::move(time), shift, rest};
  return {.spec = make_window(std::move(name), input.schema, output.schema, keys, options, aggregates_of(aggregates))};
}

}  // namespace

void bind_timed_operators() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "event_time",
          [](std::string name, const SchemaObject& schema, const std::string& field, std::int64_t lateness) {
            return OperatorObject{.spec = make_event_time(std::move(name), schema.schema, field, lateness)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("field"), nb::arg("lateness"),
          "Passes records on, and says by watermarks up to which event time they have come; ticks.")
      .def_static(
          "window", window, nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("keys"), nb::arg("kind"), nb::arg("size"),
          nb::arg("slide"), nb::arg("time"), nb::arg("shift"), nb::arg("rest"), nb::arg("aggregates"),
          "Aggregates over windows: 'count' (size and slide in records), 'time' (in ticks), 'session' (size is the gap, in ticks).");
}

}  // namespace rayelastic::python
