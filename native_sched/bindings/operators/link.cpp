// rayelastic._native.Link: a connected and authenticated socket as a stream between two PEs.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cmath>
#include <map>

#include "rayelastic/net/frame_checksum.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

nb::dict counters(const LinkObject& self) {
  const LinkCounters totals = self.link->counters();
  nb::dict result, refused;
  result["frames_sent"] = totals.frames_sent;
  result["bytes_sent"] = totals.bytes_sent;
  result["records_sent"] = totals.records_sent;
  result["frames_received"] = totals.frames_received;
  result["bytes_received"] = totals.bytes_received;
  result["records_received"] = totals.records_received;
  result["credit_waits"] = totals.credit_waits;
  result["blocked_seconds"] = static_cast<double>(totals.blocked_nanoseconds) * 1e-9;
  result["unconsumed_bytes"] = totals.unconsumed_bytes;
  result["retransmits"] = totals.retransmits;
  for (std::size_t i = 0; i < kFrameFaults; ++i) {
    if (totals.refused[i] != 0) {
      const std::string_view fault = to_string(static_cast<FrameFault>(i));
      refused[nb::str(fault.data(), fault.size())] = totals.refused[i];
    }
  }
  result["refused"] = refused;
  return result;
}

}  // namespace

void bind_link(nb::module_& module) {
  module.def(
      "crc32c",
      [](const nb::bytes& data) {
        const nb::gil_scoped_release released;
        return crc32c(0, data.data(), data.size());
      },
      nb::arg("data"), "CRC-32C of some bytes (RFC 3720), as links have it.");
  const LinkOptions defaults;
  nb::class_<LinkObject>(module, "Link",
                         "One stream between two PEs over a connected, authenticated socket; see Operator.link_out and link_in.")
      .def(
          "__init__",
          [](LinkObject* self, int fd, std::string name, std::string peer, std::size_t frame_bytes, std::size_t window_bytes,
             std::size_t most_text, double silence, const TlsObject* tls) {
            LinkOptions options{.name = std::move(name),
                                .peer = std::move(peer),
                                .frame_bytes = frame_bytes,
                                .most_text = most_text,
                                .window_bytes = window_bytes,
                                .silence = std::chrono::milliseconds(std::llround(silence * 1000))};
            new (self) LinkObject{Link::over(fd, std::move(options), tls != nullptr ? tls->tls : nullptr)};
          },
          nb::arg("fd"), nb::arg("name"), nb::arg("peer"), nb::arg("frame_bytes") = defaults.frame_bytes,
          nb::arg("window_bytes") = defaults.window_bytes, nb::arg("most_text") = defaults.most_text,
          nb::arg("silence") = static_cast<double>(defaults.silence.count()) / 1000, nb::arg("tls").none() = nb::none(),
          "Takes ownership of the descriptor: pass socket.detach(). silence in seconds, sizes in bytes; tls: its handshake over the socket "
          "has ended.")
      .def(
          "interrupt", [](LinkObject& self) { self.link->interrupt(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Unblocks who waits in the link and closes it.")
      .def("counters", counters, nb::sig("def counters(self) -> dict[str, typing.Any]"),
           "Totals since the link was made; refused: frames by fault.")
      .def_prop_ro(
          "flow",
          [](const LinkObject& self) {
            const LinkCounters totals = self.link->counters();
            return std::pair(totals.given, totals.passed);
          },
          "(records and marks that were put in here, those that were given on from here): equal at its two ends, it is empty.")
      .def_prop_ro(
          "encryption", [](const LinkObject& self) { return self.link->encryption(); }, "The protocol and its suite; empty if it has none.")
      .def_prop_ro(
          "ended", [](const LinkObject& self) { return self.link->has_ended(); },
          "Whether both sides have said goodbye: nothing comes any more.")
      .def_prop_ro("failure", [](const LinkObject& self) { return self.link->failure(); }, "What went wrong first; empty if nothing did.");
}

}  // namespace rayelastic::python
