// rayelastic._native.Operator: what edges of a graph are asked while they are held, so that another process goes on there.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>

#include "rayelastic/arrow/arrow_sink.hpp"
#include "rayelastic/operators/sequence_source.hpp"
#include "rayelastic/operators/text_source.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

void bind_held() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_prop_ro(
          "text_place",
          [](const OperatorObject& self) -> std::optional<std::tuple<std::size_t, std::uint64_t, std::uint64_t>> {
            const std::optional<TextPlace> place = text_place(*self.op);
            return place.has_value() ? std::optional(std::tuple(place->file, place->byte, place->lines)) : std::nullopt;
          },
          "Of a text_source that is held: a place at most 1 MiB in front of where it is. Number of the file, byte, lines before it.")
      .def(
          "seek_text",
          [](const OperatorObject& self, std::size_t file, std::uint64_t byte, std::uint64_t lines) {
            seek_text(*self.op, {.file = file, .byte = byte, .lines = lines});
          },
          nb::arg("file"), nb::arg("byte"), nb::arg("lines"),
          "Has a text_source begin at such a place, before it starts: it gives the lines behind it.")
      .def(
          "seek_sequence", [](const OperatorObject& self, std::int64_t next) { seek_sequence(*self.op, next); }, nb::arg("next"),
          "Has a sequence_source begin at a value, before it starts.")
      .def(
          "flush",
          [](const OperatorObject& self) {
            std::string refusal;
            {
              const nb::gil_scoped_release released;  // as the threads that run it
              refusal = flush_arrow_sink(*self.op);
            }
            if (!refusal.empty()) throw std::runtime_error("operator '" + self.op->name() + "': " + refusal);
          },
          "Has an arrow_sink give the rows that it has gathered, while it is held; nothing for other operators. RuntimeError: its function "
          "raised.");
}

}  // namespace rayelastic::python
