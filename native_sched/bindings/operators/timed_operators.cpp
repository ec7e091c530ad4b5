// rayelastic._native.Operator: the built-in operators that know time, windows and several streams.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "operators/aggregates/named.hpp"
#include "rayelastic/operators/delay.hpp"
#include "rayelastic/operators/time/event_time.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/operators/time/pattern.hpp"
#include "rayelastic/operators/time/splits.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

WindowKind kind_named(const std::string& operator_name, const std::string& kind) {
  if (kind == "count") return WindowKind::Count;
  if (kind == "time") return WindowKind::Time;
  if (kind == "session") return WindowKind::Session;
  if (kind == "assigned") return WindowKind::Assigned;
  throw std::invalid_argument("operator '" + operator_name + "': kind is '" + kind + "', not 'count', 'time', 'session' or 'assigned'");
}

// An offset, the runs of days of 24 hours of a zone, and the ticks of a second; no run: days are no matter.
using GivenTimes = std::tuple<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>, std::int64_t>;
WindowTimes times_of(const GivenTimes& given) {
  const auto& [offset, runs, per_second] = given;
  return {.offset = offset, .days = runs.empty() ? std::nullopt : std::optional<Days>(Days(runs, per_second))};
}

OperatorObject window(std::string name, const SchemaObject& input, const SchemaObject& output, const std::vector<std::string>& keys,
                      const std::string& kind, std::int64_t size, std::int64_t slide, std::string time, std::int64_t shift, bool rest,
                      std::int64_t lateness, const GivenTimes& times, const std::vector<NamedAggregate>& aggregates,
                      const OwnAggregateObject* own, const GivenTtl& ttl, const OperatorObject* assigner) {
  WindowOptions options{kind_named(name, kind), size, slide, std::move(time), shift, rest, lateness, times_of(times), ttl_of(ttl), {}};
  OperatorObject result;
  if (assigner != nullptr) {
    result.failure = assigner->failure;
    options.assigner = assigner->op;
  }
  result.op = make_window(std::move(name), input.schema, output.schema, keys, options, aggregates_of(aggregates, own));
  return result;
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
                    const std::string& kind, std::vector<std::string> left_keys, std::vector<std::string> right_keys,
                    std::vector<std::string> right_fields, std::string left_time, std::int64_t left_shift, std::string right_time,
                    std::int64_t right_shift, std::int64_t before, std::int64_t after, bool left_outer, bool right_outer, bool symmetric,
                    const GivenTimes& times, const GivenTtl& ttl) {
  const bool cross = kind == kCross;
  const JoinOptions options{.kind = cross ? JoinKind::Latest : join_named(name, kind),
                            .left_keys = std::move(left_keys),
                            .right_keys = std::move(right_keys),
                            .right_fields = std::move(right_fields),
                            .left_time = std::move(left_time),
                            .right_time = std::move(right_time),
                            .left_shift = left_shift,
                            .right_shift = right_shift,
                            .before = before,
                            .after = after,
                            .left_outer = left_outer,
                            .right_outer = right_outer,
                            .symmetric = symmetric,
                            .times = times_of(times),
                            .ttl = ttl_of(ttl)};
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
          [](std::string name, const SchemaObject& schema, const std::string& field, std::int64_t lateness, double idle_after,
             double ticks_per_second, bool splits, double ahead, double clock_ticks) {
            const auto after = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(idle_after));
            const auto most = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(ahead));
            return OperatorObject{.op = make_event_time(std::move(name), schema.schema, field, lateness, {after, ticks_per_second}, splits,
                                                        {most, clock_ticks})};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("field"), nb::arg("lateness"), nb::arg("idle_after") = 0.0,
          nb::arg("ticks_per_second") = 0.0, nb::arg("splits") = false, nb::arg("ahead") = 0.0, nb::arg("clock_ticks") = 0.0,
          "Passes records on, and says by watermarks up to which event time they have come; ticks. Without a record for idle_after seconds "
          "(0: never)\nit is idle, or goes on with the clock where there are ticks_per_second; poke it now and then.\n"
          "splits: each split of the stream has a watermark of its own. clock_ticks: a second's; above 0: records more than ahead seconds "
          "ahead\nof the clock go by output port 1.")
      .def_static(
          "union",
          [](std::string name, const SchemaObject& schema, const std::vector<bool>& tells) {
            return OperatorObject{.op = make_union(std::move(name), schema.schema, tells)};
          },
          nb::arg("name"), nb::arg("schema"), nb::arg("tells"),
          "Unites the streams of its input ports, each a split or, where it tells of its own in order, several.")
      .def_static("window", window, nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("keys"), nb::arg("kind"), nb::arg("size"),
                  nb::arg("slide"), nb::arg("time"), nb::arg("shift"), nb::arg("rest"), nb::arg("lateness"), nb::arg("times"),
                  nb::arg("aggregates"), nb::arg("own").none() = nb::none(), nb::arg("ttl") = GivenTtl(),
                  nb::arg("assigner").none() = nb::none(),
                  "Aggregates over windows: 'count' (size and slide in records), 'time' (in ticks), 'session' (size is the gap, in ticks), "
                  "'assigned'. "
                  "lateness: ticks for which\nwindows that were given still take records; 0 for none. times: an offset; from which days on "
                  "days are of 24 hours and when they begin,\nif windows are of days; ticks of a second. own: a user's aggregate, in place "
                  "of others. ttl: of 'count', as KeyedState has it. assigner: of "
                  "'assigned', emits start and end of each window of a record.")
      .def_static("join", join, nb::arg("name"), nb::arg("left"), nb::arg("right"), nb::arg("output"), nb::arg("kind"),
                  nb::arg("left_keys"), nb::arg("right_keys"), nb::arg("right_fields"), nb::arg("left_time"), nb::arg("left_shift"),
                  nb::arg("right_time"), nb::arg("right_shift"), nb::arg("before"), nb::arg("after"), nb::arg("left_outer"),
                  nb::arg("right_outer"), nb::arg("symmetric"), nb::arg("times"), nb::arg("ttl") = GivenTtl(),
                  "Joins input port 0 with port 1: 'latest', 'first', 'all', 'cross' (times '' for by arrival), 'interval', 'window', "
                  "'pairs' (times ''); "
                  "before and after in ticks; times, ttl: as of window. With a ttl by the clock it is to be poked now and then.")
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
