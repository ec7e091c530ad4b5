// rayelastic._native.ChannelWidth, and the ends of channels.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "rayelastic/operators/channels.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

void bind_channels(nb::module_& module) {
  nb::class_<ChannelWidth>(module, "ChannelWidth", "How many channels of an elastic stage get records; any thread may change it.")
      .def(nb::init<std::size_t, std::size_t>(), nb::arg("channels"), nb::arg("active"))
      .def_prop_ro("channels", &ChannelWidth::channels, "How many there are.")
      .def_prop_rw("active", &ChannelWidth::active, &ChannelWidth::set, "The first so many get records; 1 to `channels`.");
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "channels",
          [](std::string name, const SchemaObject& schema, std::shared_ptr<ChannelWidth> width, bool ordered) {
            return OperatorObject{.op = make_channels(std::move(name), schema.schema, std::move(width), ordered)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("width"), nb::arg("ordered"),
          "Deals records out to the active channels, an output port each; ordered: so that in_turn can restore their order.")
      .def_static(
          "keyed_channels",
          [](std::string name, const SchemaObject& schema, const std::vector<std::string>& keys, std::size_t channels) {
            return OperatorObject{.op = make_keyed_channels(std::move(name), schema.schema, keys, channels)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("keys"), nb::arg("channels"),
          "Deals records out by the hash of their keys, so that in_turn can restore their order.")
      .def_static(
          "in_turn",
          [](std::string name, const SchemaObject& schema, std::size_t channels) {
            return OperatorObject{.op = make_in_turn(std::move(name), schema.schema, channels)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("channels"),
          "Gives what comes from channels in the order in which it was dealt out.");
}

}  // namespace rayelastic::python
