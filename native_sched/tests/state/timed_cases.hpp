// Operators that go by time or by count, each with many aggregates, and how to play a script to one.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/operators/time/event_time.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/operators/time/pattern.hpp"
#include "rayelastic/operators/time/process.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "rayelastic/state/state_table.hpp"
#include "state/timed_script.hpp"
#include "test_operator.hpp"

namespace rayelastic::check {

using Make = std::function<std::shared_ptr<Operator>()>;

inline std::int64_t apply(const std::shared_ptr<Operator>& spec, const Step& step, std::vector<std::string>& log) {
  TimedContext context(spec, step.watermark, step.port, log);
  const bool wanted = step.watermark == kEndOfTime || (step.watermark != kNoWatermark && spec->has_any(REL_ON_WATERMARK));
  if (step.rows.empty() && !wanted) return 0;
  const std::int64_t result = context.call(step.rows.empty() ? nullptr : step.rows.data(), static_cast<std::int64_t>(step.rows.size()));
  context.show();
  return result;
}

inline void finish(const std::shared_ptr<Operator>& spec, std::vector<std::string>& log) {
  if (spec->has_any(REL_ON_FINISH)) (void)apply(spec, {0, {}, kEndOfTime}, log);
}

inline std::vector<std::string> uninterrupted(const Make& make, const Script& script) {
  const std::shared_ptr<Operator> spec = make();
  std::vector<std::string> log;
  for (const Step& step : script.steps) CHECK(apply(spec, step, log) >= 0);
  finish(spec, log);
  return log;
}

inline const std::vector<Aggregate> kAll = {{AggregateFunction::Count, ""},
                                            {AggregateFunction::Sum, "at"},
                                            {AggregateFunction::Mean, "x"},
                                            {AggregateFunction::First, "note"},
                                            {AggregateFunction::Last, "note"},
                                            {AggregateFunction::Max, "note"},
                                            {AggregateFunction::Distinct, "note"},
                                            {AggregateFunction::Quantile, "x", "", 0.5, 0.01},
                                            {AggregateFunction::Largest, "x", "", 1, 3}};

inline std::shared_ptr<const Schema> results(bool timed, bool corrected = false) {
  std::vector<Field> fields = {field("key", Type::String)};
  if (timed) fields.insert(fields.end(), {field("start", Type::Int64), field("end", Type::Int64)});
  if (corrected) fields.push_back(field("corrected", Type::Bool));
  const std::vector<Field> aggregates = {
      field("count", Type::Int64),         field("sum", Type::Int64),  field("mean", Type::Float64), field("first", Type::String),
      field("last", Type::String),         field("max", Type::String), field("kinds", Type::Int64),  field("middle", Type::Float64, true),
      field("second", Type::Float64, true)};
  fields.insert(fields.end(), aggregates.begin(), aggregates.end());
  return schema_of(std::move(fields));
}

inline Make window(WindowKind kind, std::int64_t size, std::int64_t slide, bool rest = false, std::int64_t lateness = 0) {
  const bool timed = kind != WindowKind::Count;
  return [=] {
    return make_window("w", kRows, results(timed, lateness > 0), {"key"},
                       {.kind = kind, .size = size, .slide = slide, .time = timed ? "at" : "", .rest = rest, .lateness = lateness}, kAll);
  };
}

// The best rows by x, or by their note, with all of each.
inline Make ranking(WindowKind kind, std::int64_t size, std::int64_t slide, const std::string& by, std::int64_t lateness = 0) {
  return [=] {
    std::vector<Field> fields = {field("key", Type::String), field("start", Type::Int64), field("end", Type::Int64)};
    if (lateness > 0) fields.push_back(field("corrected", Type::Bool));
    for (const char* const name : {"place", "at", "x", "note"}) {
      Field each = std::string(name) == "place" ? field(name, Type::Int64) : *kRows->find(name);
      fields.push_back(std::move(each));
    }
    const WindowOptions options{.kind = kind, .size = size, .slide = slide, .time = "at", .lateness = lateness, .punctual = true};
    return make_window("r", kRows, schema_of(fields), {"key"}, options, {{AggregateFunction::Top, by, "at", 1, 3}});
  };
}

inline Make joining(JoinKind kind, std::int64_t before, std::int64_t after, bool outer, bool timed = true, bool right_outer = false) {
  return [=] {
    std::vector<Field> fields = kRows->fields();
    if (right_outer) std::for_each(fields.begin() + 1, fields.end(), [](Field& each) { each.nullable = true; });
    fields.push_back(field("x_right", Type::Float64, outer));
    fields.push_back(field("note_right", Type::String, outer));
    const JoinOptions options{.kind = kind,
                              .left_keys = {"key"},
                              .right_keys = {"key"},
                              .right_fields = {"x", "note"},
                              .left_time = timed ? "at" : "",
                              .right_time = timed ? "at" : "",
                              .before = before,
                              .after = after,
                              .left_outer = outer,
                              .right_outer = right_outer};
    return make_join("j", kRows, kRows, schema_of(fields), options);
  };
}

// Each row of the left with the latest row of each key of the right.
inline Make crossing(bool outer) {
  return [=] {
    std::vector<Field> fields = kRows->fields();
    fields.push_back(field("key_right", Type::String, outer));
    fields.push_back(field("x_right", Type::Float64, outer));
    const JoinOptions options{.left_keys = {"key"},
                              .right_keys = {"key"},
                              .right_fields = {"key", "x"},
                              .left_time = "at",
                              .right_time = "at",
                              .left_outer = outer};
    return make_cross_join("c", kRows, kRows, schema_of(fields), options);
  };
}

// Of x / 1000 the first third begins, the second goes on, and the third ends what hasn't gone on.
inline std::int64_t marked(const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = static_cast<const Row*>(in)[i].x * 7;
    static_cast<std::int64_t*>(out)[i] = x < 333 ? 0b0001 : x < 666 ? 0b0100 : 0b1000;
  }
  return n;
}

inline Make matching(bool outer, bool strict) {
  return [=] {
    TestOperator marks{
        .name = "p", .process = marked, .flags = REL_ONE_TO_ONE, .inputs = {kRows}, .outputs = {schema_of({field("m", Type::Int64)})}};
    std::vector<Field> fields = {field("key", Type::String), field("a_at", Type::Int64), field("a_note", Type::String),
                                 field("b_at", Type::Int64, outer), field("b_note", Type::String, outer)};
    if (outer) fields.push_back(field("missing", Type::String, true));
    const PatternOptions options{.keys = {"key"},
                                 .time = "at",
                                 .fields = {"at", "note"},
                                 .steps = {{.name = "a"}, {.name = "b", .within = 6, .strict = strict}},
                                 .outer = outer};
    return make_pattern(marks.make(), schema_of(fields), options);
  };
}

struct Moment {
  StringView key;
  std::int64_t at;
};

// Counts the rows of a key, and sets a timer.
inline std::int64_t counted(const void* in, std::int64_t, void*, std::int64_t, void* slots, rel_context* context) {
  ++**static_cast<std::int64_t**>(slots);
  const TimerCommand command{TimerCommand::At, static_cast<const Row*>(in)->at + 6, 0};
  return rel_emit(context, kTimerPort, &command, 1) == 0 ? 0 : REL_STOPPED;
}

// Of a timer, or of the end: emits how many rows there were, and begins anew.
inline std::int64_t emitted(const void* in, std::int64_t, void* out, std::int64_t, void* slots, rel_context*) {
  const auto* const moment = static_cast<const Moment*>(in);
  const std::int64_t count = std::exchange(**static_cast<std::int64_t**>(slots), 0);
  new (out) Row{.key = moment->key, .at = moment->at, .x = static_cast<double>(count), .note = StringView()};
  return 1;
}

inline Make timing(std::int64_t ttl) {
  return [=] {
    const auto moment = schema_of({field("key", Type::String), field("at", Type::Int64)});
    const auto unexplained = [](const std::byte*) { return std::string(); };
    ProcessOptions options;
    options.time = "at";
    options.initial = std::vector<std::byte>(8);
    options.ttl = ttl;
    options.why_tuple = options.why_moment = unexplained;
    return make_process("timers", {kRows, kRows, moment}, {"key"}, {.on_tuple = counted, .on_time = emitted, .on_end = emitted},
                        std::move(options), nullptr);
  };
}

struct Case {
  Make make;
  std::int32_t ports = 1;
};

inline const std::vector<Case> kCases = {
    {window(WindowKind::Count, 3, 3)},
    {window(WindowKind::Count, 6, 2, true)},
    {window(WindowKind::Count, 2, 3, true)},
    {window(WindowKind::Time, 10, 10)},
    {window(WindowKind::Time, 12, 4)},
    {window(WindowKind::Time, 4, 10)},
    {window(WindowKind::Session, 5, 1)},
    {window(WindowKind::Time, 12, 4, false, 7)},
    {window(WindowKind::Session, 5, 1, false, 7)},
    {ranking(WindowKind::Time, 12, 4, "x", 7)},
    {ranking(WindowKind::Session, 5, 1, "note")},
    {joining(JoinKind::Latest, 0, 0, true), 2},
    {joining(JoinKind::Latest, 0, 0, false, false), 2},
    {joining(JoinKind::Pairs, 0, 0, true, false), 2},
    {joining(JoinKind::Interval, 4, 3, true), 2},
    {joining(JoinKind::Window, 10, 0, false), 2},
    {joining(JoinKind::Interval, 4, 3, true, true, true), 2},
    {[] { return make_merge("m", kRows, 3, "at", 0); }, 3},
    {crossing(true), 2},
    {crossing(false), 2},
    {matching(true, true)},
    {matching(false, false)},
};
inline constexpr std::size_t kWindows = 11;  // the first ones

// Timers that several keys have at one time fire in any order.
inline const std::vector<Case> kTimers = {{timing(0)}, {timing(5)}};

}  // namespace rayelastic::check
