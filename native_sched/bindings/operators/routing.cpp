// rayelastic._native.Router, Gather, Tap: where streams part and meet when a region has several replicas.
#include <nanobind/stl/pair.h>
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

bool wait_for_mark(MarkLog& marks, std::int64_t mark, unsigned count, double patience) {
  const nb::gil_scoped_release released;
  return marks.wait(mark, count, nanoseconds_of(patience));
}

nb::object hottest(const Router& self) {
  const std::optional<HotKey> found = self.hottest();
  if (!found.has_value()) return nb::none();
  return nb::make_tuple(nb::bytes(found->bytes.data(), found->bytes.size()), found->null, found->share, found->looks);
}

}  // namespace

void bind_routing(nb::module_& module) {
  nb::enum_<Router::Answer>(module, "RouterAnswer", "How a command to a router went.")
      .value("DONE", Router::Answer::Done)
      .value("LATE", Router::Answer::Late, "Not yet; it may still be done.")
      .value("REFUSED", Router::Answer::Refused, "It is of an older epoch, or names a target that there isn't.")
      .value("ENDED", Router::Answer::Ended, "The input is at its end.");
  nb::class_<RouterCounters>(module, "RouterCounters", "Of a router since it was made.", nb::is_final())
      .def_ro("epoch", &RouterCounters::epoch, "Of the last command.")
      .def_ro("held_records", &RouterCounters::held_records, "That wait now.")
      .def_ro("held_bytes", &RouterCounters::held_bytes)
      .def_ro("ever_held", &RouterCounters::ever_held, "Records.")
      .def_ro("waits", &RouterCounters::waits, "Times that hold_bytes was reached.")
      .def_ro("ended", &RouterCounters::ended, "Whether the input is at its end.")
      .def_ro("closed", &RouterCounters::closed, "Whether it carries no command out any more.")
      .def_ro("broken", &RouterCounters::broken, "Targets whose link failed: their keys are held.")
      .def_ro("owners", &RouterCounters::owners, "The target of each partition; 65535 if it is held.");
  nb::class_<Router>(
      module, "Router",
      "In front of a region: sends each record to the replica that owns its key, and holds keys that move. Commands return a "
      "ticket;\nafter Scheduler.poke, wait(ticket) tells how it went.")
      .def(
          "__init__",
          [](Router* self, std::string name, const SchemaObject& schema, std::vector<std::string> keys, std::vector<std::uint16_t> owners,
             std::vector<std::uint16_t> locals, bool in_turn, bool everywhere, std::int64_t end_mark) {
            new (self) Router(schema.schema, RouterOptions{.name = std::move(name),
                                                           .keys = std::move(keys),
                                                           .owners = std::move(owners),
                                                           .locals = std::move(locals),
                                                           .in_turn = in_turn,
                                                           .everywhere = everywhere,
                                                           .end_mark = end_mark});
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("keys"), nb::arg("owners"), nb::arg("locals"), nb::arg("in_turn") = false,
          nb::arg("everywhere") = false, nb::arg("end_mark") = 0,
          "owners: the target of each partition; locals: targets behind output ports 0, 1, ...; in_turn: deal records out in turns, "
          "whatever\ntheir keys; everywhere: each record to all targets; end_mark: behind the last record to a local one (0: none).")
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
          "wait", [](Router& self, std::uint64_t ticket, double patience) { return self.wait(ticket, nanoseconds_of(patience)); },
          nb::arg("ticket"), nb::arg("patience"), nb::call_guard<nb::gil_scoped_release>(),
          "How a command went, at most `patience` seconds later.")
      .def("counters", &Router::counters)
      .def("hottest", hottest, nb::sig("def hottest(self) -> tuple[bytes, bool, float, int] | None"),
           "Of the keys that it has looked at lately the one with the most records: its bytes (key_extractor.hpp), whether it is null, its "
           "share at\nleast, 0 to 1, and how many records were looked at. None before there are some, and where records don't go by keys.");

  nb::class_<Gather>(module, "Gather", "Where a stream comes in by any number of links, more and fewer while it runs.")
      .def(
          "__init__",
          [](Gather* self, std::string name, const SchemaObject& schema, std::size_t local_ends, bool tolerant, bool in_turn,
             std::int64_t end_mark, bool any_order) {
            new (self) Gather(schema.schema, GatherOptions{.name = std::move(name),
                                                           .local_ends = local_ends,
                                                           .tolerant = tolerant,
                                                           .in_turn = in_turn,
                                                           .any_order = any_order,
                                                           .end_mark = end_mark});
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("local_ends") = 0, nb::arg("tolerant") = false, nb::arg("in_turn") = false,
          nb::arg("end_mark") = 0, nb::arg("any_order") = false,
          "local_ends: taps that end into it; tolerant: a link that is lost doesn't fail the PE; in_turn: in the order of a router's "
          "turns;\nend_mark: is sent behind the last record (0: none); any_order: in_turn, but as it comes.")
      .def(
          "add", [](Gather& self, const LinkObject& link) { return self.add(link.link); }, nb::arg("link"),
          nb::call_guard<nb::gil_scoped_release>(), "False: too late, the stream has ended.")
      .def(
          "wait_mark",
          [](Gather& self, std::int64_t mark, unsigned count, double patience) {
            return wait_for_mark(self.marks(), mark, count, patience);
          },
          nb::arg("mark"), nb::arg("count"), nb::arg("patience"), "True once the mark came `count` times, or nothing more comes.")
      .def("abandon_epochs", &Gather::abandon_epochs, nb::arg("epoch"), nb::call_guard<nb::gil_scoped_release>(),
           "Marks of epochs up to that one mean nothing any more.")
      .def("seal", &Gather::seal, nb::call_guard<nb::gil_scoped_release>(), "No link comes that isn't there. Safe to repeat.")
      .def_prop_ro("lost", &Gather::lost, "Links that failed.")
      .def_prop_ro("flow", &Gather::flow, "In turn: what the replica in the same PE has handed over, and what of it has been passed on.");

  nb::class_<Tap>(module, "Tap", "Behind a replica: passes everything on and notes Flush marks.")
      .def(
          "__init__",
          [](Tap* self, std::vector<std::shared_ptr<Gather>> gathers, std::shared_ptr<Gather> in_turn) {
            new (self) Tap{.marks = {}, .gathers = std::move(gathers), .in_turn = std::move(in_turn)};
          },
          nb::arg("gathers") = std::vector<std::shared_ptr<Gather>>(), nb::arg("in_turn").none() = nb::none(),
          nb::sig("def __init__(self, gathers: collections.abc.Sequence[Gather] = (), in_turn: Gather | None = None) -> None"),
          "gathers: hear of its end; in_turn: takes what comes from the first turn on.")
      .def(
          "wait_mark",
          [](Tap& self, std::int64_t mark, unsigned count, double patience) { return wait_for_mark(self.marks, mark, count, patience); },
          nb::arg("mark"), nb::arg("count"), nb::arg("patience"), "True once the mark came `count` times, or nothing more comes.");
}

}  // namespace rayelastic::python
