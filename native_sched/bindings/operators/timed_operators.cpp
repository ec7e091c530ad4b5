// rayelastic._native.Operator: the built-in operators that know time and several streams.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "operators/named_options.hpp"
#include "operators/window_times.hpp"
#include "rayelastic/operators/delay.hpp"
#include "rayelastic/operators/time/event_time.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/operators/time/pattern.hpp"
#include "rayelastic/operators/time/splits.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

// Seconds, and ticks of the event time in a second; 0 ticks: without the clock.
using ClockTime = std::pair<double, double>;

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

constexpr const char* kCross = "cross";

JoinKind join_named(const std::string& operator_name, const std::string& kind) {
  if (kind == "latest") return JoinKind::Latest;
  if (kind == "first") return JoinKind::First;
  if (kind == "all") return JoinKind::All;
  if (kind == "interval") return JoinKind::Interval;
  if (kind == "window") return JoinKind::Window;
  if (kind == "pairs") return JoinKind::Pairs;
  throw std::invalid_argument("operator '" + operator_name + "': kind is '" + kind +
                              "', not 'latest', 'first', 'all', 'interval', 'window', 'pairs' or 'cross'");
}

OperatorObject join(std::string name, const SchemaObject& left, const SchemaObject& right, const SchemaObject& output,
                    const nb::dict& described) {
  NamedOptions named(name, described);
  const auto kind = named.get<std::string>("kind");
  const bool cross = kind == kCross;
  JoinOptions options{.kind = cross ? JoinKind::Latest : join_named(name, kind)};
  named.read("left_keys", options.left_keys);
  named.read("right_keys", options.right_keys);
  named.read("right_fields", options.right_fields);
  named.read("left_time", options.left_time);
  named.read("right_time", options.right_time);
  named.read("left_shift", options.left_shift);
  named.read("right_shift", options.right_shift);
  named.read("before", options.before);
  named.read("after", options.after);
  named.read("left_outer", options.left_outer);
  named.read("right_outer", options.right_outer);
  named.read("symmetric", options.symmetric);
  options.times = times_of(named.get<GivenTimes>("times"));
  options.ttl = ttl_of(named.get<GivenTtl>("ttl"));
  named.check_all_read();
  return {.op = (cross ? make_cross_join : make_join)(std::move(name), left.schema, right.schema, output.schema, options)};
}

using GivenStep = std::tuple<std::string, std::int64_t, bool>;

OperatorObject pattern(const OperatorObject& marks, const SchemaObject& output, std::vector<std::string> keys, std::string time,
                       std::int64_t shift, std::vector<std::string> fields, const std::vector<GivenStep>& steps, bool outer) {
  PatternOptions options{.keys = std::move(keys), .time = std::move(time), .shift = shift, .fields = std::move(fields), .outer = outer};
  for (const auto& [name, within, strict] : steps) options.steps.push_back({name, within, strict});
  OperatorObject result = marks;
  result.op = make_pattern(marks.op, output.schema, options);
  return result;
}

}  // namespace

void bind_timed_operators() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "event_time",
          [](std::string name, const SchemaObject& schema, const std::string& field, std::int64_t lateness, const ClockTime& idle,
             const ClockTime& ahead, bool splits) {
            return OperatorObject{.op = make_event_time(std::move(name), schema.schema, field, lateness,
                                                        {nanoseconds_of(idle.first), idle.second}, splits,
                                                        {nanoseconds_of(ahead.first), ahead.second})};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("field"), nb::arg("lateness"), nb::arg("idle"), nb::arg("ahead"), nb::arg("splits"),
          "Emits watermarks for the event time in a field; lateness in ticks. idle and ahead: seconds, and the ticks of a second. After "
          "the seconds\nof idle without a record (0: never) it is idle or, with ticks, continues by the clock; poke it now and then. "
          "With the ticks of ahead,\nrecords that are further ahead of the clock go to output port 1. splits: each split of the stream "
          "has a watermark of its own.")
      .def_static(
          "union",
          [](std::string name, const SchemaObject& schema, const std::vector<bool>& tells) {
            return OperatorObject{.op = make_union(std::move(name), schema.schema, tells)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("tells"),
          "Unites the streams of its input ports, each a split or, where it tells of its own in order, several.")
      .def_static(
          "join", join, nb::arg("name"), nb::arg("left"), nb::arg("right"), nb::arg("output"), nb::arg("options"),
          nb::sig("def join(name: str, left: Schema, right: Schema, output: Schema, options: collections.abc.Mapping[str, typing.Any]) "
                  "-> Operator"),
          "Joins input port 0 with port 1. options by name, as JoinOptions (join.hpp) has them: kind 'latest', 'first', 'all', 'cross' "
          "(times ''\nfor by arrival), 'interval', 'window', 'pairs' (times ''); before and after in ticks; times, ttl: as of window. "
          "With a ttl by the clock it is\nto be poked now and then.")
      .def_static(
          "pattern", pattern, nb::arg("marks"), nb::arg("output"), nb::arg("keys"), nb::arg("time"), nb::arg("shift"), nb::arg("fields"),
          nb::arg("steps"), nb::arg("outer"),
          "Sequences of records of a key. marks gives an int64 for each record: bit 2i says that step i holds, bit 2i + 1 that it breaks "
          "what waits\nfor it. steps: name, ticks behind the step before, whether it can be broken; outer: give\nalso those that a step "
          "hasn't come to in time.")
      .def_static(
          "merge",
          [](std::string name, const SchemaObject& schema, std::size_t ports, const std::string& time, std::int64_t shift) {
            return OperatorObject{.op = make_merge(std::move(name), schema.schema, ports, time, shift)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("ports"), nb::arg("time"), nb::arg("shift"),
          "Records of all input ports in the order of their times.")
      .def_static(
          "throttle",
          [](std::string name, const SchemaObject& schema, double per_second) {
            return OperatorObject{.op = make_throttle(std::move(name), schema.schema, per_second)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("per_second"), "Passes records on no faster than so many a second.")
      .def_static(
          "delay",
          [](std::string name, const SchemaObject& schema, double seconds, std::size_t most) {
            const std::chrono::nanoseconds delay(std::llround(seconds * 1e9));
            return OperatorObject{.op = make_delay(std::move(name), schema.schema, delay, most)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("seconds"), nb::arg("most"),
          "Passes everything on so long after it came, keeping at most so many records; to be poked now and then.");
}

}  // namespace rayelastic::python
