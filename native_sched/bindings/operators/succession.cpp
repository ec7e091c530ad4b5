// rayelastic._native.Succession: two sources as one, and where the second begins.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "rayelastic/operators/succession.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

struct SuccessionObject {
  std::shared_ptr<Succession> succession = std::make_shared<Succession>();
};

}  // namespace

void bind_succession(nb::module_& module) {
  nb::class_<SuccessionObject>(module, "Succession", "Two sources, one after the other, which Operator.succession runs as one.")
      .def(nb::init<>())
      .def(
          "begin", [](SuccessionObject& self, bool with_second, std::int64_t skipped) { self.succession->begin(with_second, skipped); },
          nb::arg("with_second"), nb::arg("skipped"),
          "Before the start: it begins with the second source, or the first emits so many records again.")
      .def_prop_ro(
          "seam", [](const SuccessionObject& self) { return self.succession->seam(); },
          "How many records of this run are the first source's, those that it emits again included. None: it hasn't ended.")
      .def(
          "wait", [](SuccessionObject& self) { return self.succession->wait(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Waits for the second source's turn. False: it was interrupted.")
      .def("interrupt", [](SuccessionObject& self) { self.succession->interrupt(); }, "Nobody waits any more.");
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "succession",
          [](std::string name, const OperatorObject& first, const OperatorObject& second, bool tells_first, bool tells_second,
             const SuccessionObject& succession) {
            return OperatorObject{
                .op = make_succession(std::move(name), first.op, second.op, tells_first, tells_second, succession.succession)};
          },
          nb::arg("name"), nb::arg("first"), nb::arg("second"), nb::arg("tells_first"), nb::arg("tells_second"), nb::arg("succession"),
          "All records of one native source, then those of another. tells_*: whether it announces its splits.");
}

}  // namespace rayelastic::python
