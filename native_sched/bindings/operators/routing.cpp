// rayelastic._native.Router, Gather, Tap: where streams part and meet when a region has several replicas.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>

#include "rayelastic/net/gather.hpp"
#include "rayelastic/net/router.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

std::chrono::nanoseconds nanoseconds_of(double seconds) { return std::chrono::nanoseconds(std::llround(seconds * 1e9)); }

const char* name_of(Router::Answer answer) noexcept {
  switch (answer) {
    case Router::Answer::Done:
      return "done";
    case Router::Answer::Late:
      return "late";
    case Router::Answer::Refused:
      return "refused";
    case Router::Answer::Ended:
      return "ended";
  }
  return "";
}

nb::dict counters_of(const RouterCounters& counters) {
  nb::dict result;
  result["epoch"] = counters.epoch;
  result["held_records"] = counters.held_records;
  result["held_bytes"] = counters.held_bytes;
  result["ever_held"] = counters.ever_held;
  result["waits"] = counters.waits;
  result["ended"] = counters.ended;
  result["broken"] = counters.broken;
  result["owners"] = counters.owners;
  return result;
}

bool wait_for_mark(MarkLog& marks, std::int64_t mark, unsigned count, double patience) {
  const nb::gil_scoped_release released;
  return marks.wait(mark, count, nanoseconds_of(patience));
}

}  // namespace

void bind_routing(nb::module_& module) {
  nb::class_<Router>(
      module, "Router",
      "In front of a region: sends each record to the replica that owns its key, and holds keys that move. Commands return a "
      "ticket;\nafter Scheduler.poke, wait(ticket) tells how it went: 'done', 'late' (not yet), 'refused' (an older epoch, a "
      "target that there isn't) or\n'ended' (the input is at its end).")
      .def(
          "__init__",
          [](Router* self, std::string name, const SchemaObject& schema, std::vector<std::string> keys, std::vector<std::uint16_t> owners,
             std::vector<std::uint16_t> locals, std::size_t hold_bytes) {
            new (self) Router(schema.schema, RouterOptions{.name = std::move(name),
                                                           .keys = std::move(keys),
                                                           .owners = std::move(owners),
                                                           .locals = std::move(locals),
                                                           .hold_bytes = hold_bytes});
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("keys"), nb::arg("owners"), nb::arg("locals"),
          nb::arg("hold_bytes") = RouterOptions().hold_bytes,
          "owners: the target of each partition; locals: targets behind output ports 0, 1, ...; hold_bytes: of records that may wait.")
      .def("hold", &Router::hold, nb::arg("partitions"), nb::arg("owner"), nb::arg("mark"), nb::arg("epoch"),
           "From now on their records wait; a Flush mark follows the last one that went to their owner.")
      .def("route", &Router::route, nb::arg("partitions"), nb::arg("target"), nb::arg("epoch"),
           "From now on their records go there, those that waited first.")
      .def(
          "attach",
          [](Router& self, std::uint16_t target, const LinkObject& link, std::uint64_t epoch) {
            return self.attach(target, link.link, epoch);
          },
          nb::arg("target"), nb::arg("link"), nb::arg("epoch"), "A target behind a link. Nothing goes there before route().")
      .def("detach", &Router::detach, nb::arg("target"), nb::arg("epoch"), "Its link says goodbye; nothing may be routed there.")
      .def(
          "wait",
          [](Router& self, std::uint64_t ticket, double patience) {
            Router::Answer answer;
            {
              const nb::gil_scoped_release released;
              answer = self.wait(ticket, nanoseconds_of(patience));
            }
            return name_of(answer);
          },
          nb::arg("ticket"), nb::arg("patience"), "How a command went, at most `patience` seconds later.")
      .def(
          "counters", [](const Router& self) { return counters_of(self.counters()); },
          nb::sig("def counters(self) -> dict[str, typing.Any]"),
          "{'epoch', 'held_records', 'held_bytes', 'ever_held', 'waits', 'ended', 'broken': targets whose link failed, 'owners': the "
          "target "
          "of each\npartition, 65535 if it is held}.");

  nb::class_<Gather>(module, "Gather", "Where a stream comes in by any number of links, more and fewer while it runs.")
      .def(
          "__init__",
          [](Gather* self, std::string name, const SchemaObject& schema, std::size_t local_ends, bool tolerant) {
            new (self) Gather(schema.schema, GatherOptions{.name = std::move(name), .local_ends = local_ends, .tolerant = tolerant});
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("local_ends") = 0, nb::arg("tolerant") = false,
          "local_ends: taps that end into it; tolerant: a link that is lost doesn't fail the PE.")
      .def(
          "add", [](Gather& self, const LinkObject& link) { return self.add(link.link); }, nb::arg("link"),
          nb::call_guard<nb::gil_scoped_release>(), "False: too late, the stream has ended.")
      .def(
          "wait_mark",
          [](Gather& self, std::int64_t mark, unsigned count, double patience) {
            return wait_for_mark(self.marks(), mark, count, patience);
          },
          nb::arg("mark"), nb::arg("count"), nb::arg("patience"), "True once the mark came `count` times, or nothing more comes.")
      .def_prop_ro("lost", &Gather::lost, "Links that failed.");

  nb::class_<Tap>(module, "Tap", "Behind a replica: passes everything on and notes Flush marks.")
      .def(
          "__init__",
          [](Tap* self, std::vector<std::shared_ptr<Gather>> gathers) { new (self) Tap{.marks = {}, .gathers = std::move(gathers)}; },
          nb::arg("gathers") = std::vector<std::shared_ptr<Gather>>(),
          nb::sig("def __init__(self, gathers: collections.abc.Sequence[Gather] = ()) -> None"), "gathers: hear of its end.")
      .def(
          "wait_mark",
          [](Tap& self, std::int64_t mark, unsigned count, double patience) { return wait_for_mark(self.marks, mark, count, patience); },
          nb::arg("mark"), nb::arg("count"), nb::arg("patience"), "True once the mark came `count` times, or nothing more comes.");
}

}  // namespace rayelastic::python
