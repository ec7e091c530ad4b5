// rayelastic._native.Operator: time marks of sources, and how long they were under way, of sinks.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "wrappers.hpp"

namespace rayelastic::python {

void bind_latency() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def(
          "with_time_marks",
          [](const OperatorObject& self, double period) {
            if (!self.op->has_any(REL_SOURCE)) throw std::invalid_argument("operator '" + self.op->name() + "' is no source");
            OperatorObject result = self;
            result.placement.time_marks = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(period));
            return result;
          },
          nb::arg("period"), "The same source, which puts the time into its stream at most once in so many seconds.")
      .def(
          "with_latency",
          [](const OperatorObject& self) {
            if (!self.op->has_any(REL_SINK)) throw std::invalid_argument("operator '" + self.op->name() + "' is no sink");
            OperatorObject result = self;
            result.placement.latency = std::make_shared<LatencyCounts>();
            return result;
          },
          "The same sink, which counts how long the marks that arrive were under way.")
      .def_prop_ro(
          "latency",
          [](const OperatorObject& self) -> std::optional<std::vector<std::uint64_t>> {
            if (self.placement.latency == nullptr) return std::nullopt;
            const LatencyCounts::Counts counts = self.placement.latency->read();
            return std::vector<std::uint64_t>(counts.begin(), counts.end());
          },
          "Marks by how long they were under way: less than 2^i microseconds; the last ones: longer. None unless with_latency made it.");
}

}  // namespace rayelastic::python
