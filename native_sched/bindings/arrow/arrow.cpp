// rayelastic._native.ArrowFeeder: the way of Arrow batches from Python into a running PE.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "arrow/arrow_capsules.hpp"
#include "rayelastic/operators/time/splits.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

constexpr std::string_view kChanges[] = {"open", "waits", "now", "end"};  // by SplitChange

bool push(FeederObject& self, nb::handle batch) {
  ArrowOwned<ArrowArray> array;
  ArrowOwned<ArrowSchema> schema;
  import_batch(batch, &array, &schema);
  const nb::gil_scoped_release released;  // waits while the queue is full; buffers of Python's own take the GIL back themselves
  return self.feeder->push(&array, &schema);
}

}  // namespace

void bind_arrow(nb::module_& module) {
  nb::class_<FeederObject>(module, "ArrowFeeder",
                           "A bounded queue of Arrow batches, read by Operator.arrow_source. Any number of threads may push.")
      .def(
          "__init__",
          [](FeederObject* self, const SchemaObject& schema, std::size_t capacity_bytes, const std::vector<std::string>& unread) {
            std::vector<bool> marks;
            for (const Field& field : schema.schema->fields()) marks.push_back(std::ranges::find(unread, field.name) != unread.end());
            new (self) FeederObject{std::make_shared<ArrowFeeder>(schema.schema, capacity_bytes, std::move(marks))};
          },
          nb::arg("schema"), nb::arg("capacity_bytes") = std::size_t{32} << 20, nb::arg("unread") = std::vector<std::string>(),
          "Batches need no columns for the fields in `unread`, which are zero, empty or null in all records.")
      .def("push", push, nb::arg("batch"),
           "Queues a pyarrow.RecordBatch, or anything with __arrow_c_array__, and waits while the queue is full (back-pressure).\n"
           "False: the feeder was stopped, and the batch is dropped. ValueError, naming the field: the batch doesn't fit the schema.")
      .def(
          "mark_split",
          [](FeederObject& self, std::int64_t split, const std::string& change) {
            const auto found = std::ranges::find(kChanges, change);
            if (split < 0 || found == std::end(kChanges)) throw std::invalid_argument("there is no such split, or no such change");
            self.feeder->mark(split_mark(split, static_cast<SplitChange>(found - std::begin(kChanges))));
          },
          nb::arg("split"), nb::arg("change"), nb::call_guard<nb::gil_scoped_release>(),
          "Says of a split that it is 'open', 'waits' for its turn, has what is pushed from 'now' on, or is at its 'end'.")
      .def(
          "finish", [](FeederObject& self) { self.feeder->finish(); }, nb::call_guard<nb::gil_scoped_release>(),
          "No more batches; those queued are still read.")
      .def(
          "fail", [](FeederObject& self, std::string message) { self.feeder->fail(std::move(message)); }, nb::arg("message"),
          nb::call_guard<nb::gil_scoped_release>(), "The source fails with this message.")
      .def_prop_ro("queued_bytes", [](const FeederObject& self) { return self.feeder->queued_bytes(); });
}

}  // namespace rayelastic::python
