// What windows, joins, merges and event_time keep: exported after any step and imported elsewhere, they go on as if nothing had happened.
#include <functional>
#include <random>
#include <vector>

#include "rayelastic/operators/time/event_time.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "rayelastic/operators/time/window.hpp"
#include "rayelastic/state/state_table.hpp"
#include "state/timed_script.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::uint64_t kEverything = UINT64_MAX;
constexpr std::size_t kSmallChunk = 200;  // bytes: several chunks an export

using Make = std::function<OperatorSpec()>;

std::int64_t apply(const OperatorSpec& spec, const Step& step, std::vector<std::string>& log) {
  TimedContext context(spec, step.watermark, step.port, log);
  const bool wanted = step.watermark == kEndOfTime || (step.watermark != kNoWatermark && (spec.flags & REL_ON_WATERMARK) != 0);
  if (step.rows.empty() && !wanted) return 0;
  const std::int64_t result = context.call(step.rows.empty() ? nullptr : step.rows.data(), static_cast<std::int64_t>(step.rows.size()));
  context.show();
  return result;
}

void finish(const OperatorSpec& spec, std::vector<std::string>& log) {
  if ((spec.flags & REL_ON_FINISH) != 0) (void)apply(spec, {0, {}, kEndOfTime}, log);
}

std::vector<std::string> uninterrupted(const Make& make, const Script& script) {
  const OperatorSpec spec = make();
  std::vector<std::string> log;
  for (const Step& step : script.steps) CHECK(apply(spec, step, log) >= 0);
  finish(spec, log);
  return log;
}

// What it has, in another one.
OperatorSpec moved(const OperatorSpec& spec, const Make& make) {
  OperatorSpec fresh = make();
  const KeySelection all = spec.store->select({0, kEverything});
  std::size_t keys = 0;
  std::uint64_t at = 0;
  do keys += fresh.store->import_range(spec.store->export_chunk(all, at, kSmallChunk));
  while (at != 0);
  CHECK_EQ(keys, spec.store->size());
  CHECK_EQ(fresh.store->size(), spec.store->size());
  return fresh;
}

const std::vector<Aggregate> kAll = {{AggregateFunction::Count, ""},
                                     {AggregateFunction::Sum, "at"},
                                     {AggregateFunction::Mean, "x"},
                                     {AggregateFunction::First, "note"},
                                     {AggregateFunction::Last, "note"},
                                     {AggregateFunction::Max, "note"},
                                     {AggregateFunction::Distinct, "note"},
                                     {AggregateFunction::Quantile, "x", "", 0.5, 0.01},
                                     {AggregateFunction::Largest, "x", "", 1, 3}};

std::shared_ptr<const Schema> results(bool timed) {
  std::vector<Field> fields = {field("key", Type::String)};
  if (timed) fields.insert(fields.end(), {field("start", Type::Int64), field("end", Type::Int64)});
  const std::vector<Field> aggregates = {
      field("count", Type::Int64),         field("sum", Type::Int64),  field("mean", Type::Float64), field("first", Type::String),
      field("last", Type::String),         field("max", Type::String), field("kinds", Type::Int64),  field("middle", Type::Float64, true),
      field("second", Type::Float64, true)};
  fields.insert(fields.end(), aggregates.begin(), aggregates.end());
  return schema_of(std::move(fields));
}

Make window(WindowKind kind, std::int64_t size, std::int64_t slide, bool rest = false) {
  const bool timed = kind != WindowKind::Count;
  return [=] {
    return make_window("w", kRows, results(timed), {"key"},
                       {.kind = kind, .size = size, .slide = slide, .time = timed ? "at" : "", .rest = rest}, kAll);
  };
}

Make joining(JoinKind kind, std::int64_t before, std::int64_t after, bool outer, bool timed = true) {
  return [=] {
    std::vector<Field> fields = kRows->fields();
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
                              .left_outer = outer};
    return make_join("j", kRows, kRows, schema_of(fields), options);
  };
}

struct Case {
  Make make;
  std::int32_t ports = 1;
};

const std::vector<Case> kCases = {
    {window(WindowKind::Count, 3, 3)},
    {window(WindowKind::Count, 6, 2, true)},
    {window(WindowKind::Count, 2, 3, true)},
    {window(WindowKind::Time, 10, 10)},
    {window(WindowKind::Time, 12, 4)},
    {window(WindowKind::Time, 4, 10)},
    {window(WindowKind::Session, 5, 1)},
    {joining(JoinKind::Latest, 0, 0, true), 2},
    {joining(JoinKind::Latest, 0, 0, false, false), 2},
    {joining(JoinKind::Interval, 4, 3, true), 2},
    {joining(JoinKind::Window, 10, 0, false), 2},
    {[] { return make_merge("m", kRows, 3, "at", 0); }, 3},
};

}  // namespace

TEST(moved_after_each_step_they_give_what_they_would_have_given) {
  for (const auto& [make, ports] : kCases) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Script script(seed, 120, ports);
      OperatorSpec spec = make();
      std::vector<std::string> log;
      for (const Step& step : script.steps) {
        CHECK(apply(spec, step, log) >= 0);
        spec = moved(spec, make);
      }
      finish(spec, log);
      const std::vector<std::string> expected = uninterrupted(make, script);
      CHECK(expected.size() > 20);
      for (std::size_t i = 0; i < std::min(log.size(), expected.size()); ++i) CHECK_EQ(log[i], expected[i]);
      CHECK_EQ(log.size(), expected.size());
    }
  }
}

TEST(a_range_that_leaves_and_comes_back_changes_nothing) {
  for (const auto& [make, ports] : kCases) {
    const Script script(77, 300, ports);
    const OperatorSpec spec = make();
    std::vector<std::string> log;
    std::mt19937_64 random(5);
    for (const Step& step : script.steps) {
      CHECK(apply(spec, step, log) >= 0);
      const std::uint64_t middle = random();
      const std::size_t keys = spec.store->size();
      const std::vector<std::byte> low = spec.store->export_range(0, middle);
      const std::size_t gone = spec.store->remove_range(0, middle);
      CHECK_EQ(spec.store->size(), keys - gone);
      CHECK_EQ(spec.store->import_range(low), gone);
      CHECK_EQ(spec.store->size(), keys);
    }
    finish(spec, log);
    std::vector<std::string> expected = uninterrupted(make, script);
    std::ranges::sort(log);  // at the end windows by count give what is left in the order in which keys came
    std::ranges::sort(expected);
    CHECK(log == expected);
  }
}

TEST(what_was_late_stays_late) {
  const Make make = window(WindowKind::Time, 10, 10);
  const OperatorSpec spec = make();
  std::vector<std::string> log;
  CHECK_EQ(apply(spec, {0, {}, 25}, log), 0);
  CHECK_EQ(spec.store->size(), 0U);  // no key: the watermark alone
  const OperatorSpec there = moved(spec, make);
  log.clear();
  CHECK_EQ(apply(there, {0, {{view("a"), 19, 0, view("n")}, {view("a"), 20, 0, view("n")}}, kNoWatermark}, log), 0);
  CHECK_EQ(log.size(), 1U);
  CHECK_EQ(log[0].substr(0, 9), "late a 19");
}

// As behind a router: every record to the replica that has its key, every watermark to both, and each replica does when it likes what waits
// for it. Whoever gives keys away has done all that came before; who gets them lags behind.
TEST(keys_move_to_a_replica_that_lags_behind) {
  for (std::size_t which = 0; which < 7; ++which) {  // the windows
    const Make& make = kCases[which].make;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Script script(seed, 300, 1);
      std::mt19937_64 random(seed);
      const OperatorSpec replicas[] = {make(), make()};
      std::vector<Step> waiting[2];
      std::vector<std::string> log;
      std::uint64_t first_of_second = UINT64_MAX / 2;  // hash of a key
      const auto work = [&](std::size_t one, std::size_t steps) {
        for (std::size_t i = 0; i < steps; ++i) CHECK(apply(replicas[one], waiting[one][i], log) >= 0);
        waiting[one].erase(waiting[one].begin(), waiting[one].begin() + static_cast<std::ptrdiff_t>(steps));
      };
      for (const Step& step : script.steps) {
        Step parts[] = {step, step};
        for (std::size_t one = 0; one < 2; ++one) {
          std::erase_if(parts[one].rows, [&](const Row& row) { return (hash_of(row.key) >= first_of_second) != (one == 1); });
          if (step.rows.empty() || !parts[one].rows.empty()) waiting[one].push_back(parts[one]);
          work(one, random() % (waiting[one].size() + 1));
        }
        const std::uint64_t next = random();
        const std::size_t giver = next < first_of_second ? 0 : 1;
        const std::uint64_t low = std::min(next, first_of_second);
        const std::uint64_t high = std::max(next, first_of_second) - 1;
        first_of_second = next;
        work(giver, waiting[giver].size());
        const std::size_t moved = replicas[1 - giver].store->import_range(replicas[giver].store->export_range(low, high));
        CHECK_EQ(replicas[giver].store->remove_range(low, high), moved);
      }
      for (std::size_t one = 0; one < 2; ++one) {
        work(one, waiting[one].size());
        finish(replicas[one], log);
      }
      std::vector<std::string> expected = uninterrupted(make, script);
      const auto is_mark = [](const std::string& line) { return line.starts_with("mark "); };
      std::erase_if(log, is_mark);
      std::erase_if(expected, is_mark);
      std::ranges::sort(log);
      std::ranges::sort(expected);
      CHECK_EQ(log.size(), expected.size());
      CHECK(log == expected);
    }
  }
}

TEST(event_time_announces_again_what_it_had_announced) {
  const Make make = [] { return make_event_time("t", kRows, "at", 3); };
  const OperatorSpec spec = make();
  std::vector<std::string> log;
  CHECK_EQ(apply(spec, {0, {{view("a"), 50, 0, view("n")}}, 0}, log), 0);
  CHECK_EQ(log.back(), "mark 46");
  const OperatorSpec there = moved(spec, make);
  log.clear();
  CHECK_EQ(apply(there, {0, {{view("a"), 47, 0, view("n")}, {view("a"), 46, 0, view("n")}}, 0}, log), 0);
  CHECK_EQ(log.size(), 3U);
  CHECK_EQ(log[1], "mark 46");  // in front of the late one
  const OperatorSpec other = make_event_time("t", kRows, "at", 0);
  (void)other.store->import_range(spec.store->export_range(0, kEverything));  // another lateness may go on from it
  const OperatorSpec unlike = make_event_time("t", kRows, "x", 3);
  CHECK_THROWS(unlike.store->import_range(spec.store->export_range(0, kEverything)), StateError);
}

TEST(damaged_exports_are_refused_or_are_others) {
  std::mt19937_64 random(3);
  for (const auto& [make, ports] : kCases) {
    const Script script(11, 60, ports);
    const OperatorSpec spec = make();
    std::vector<std::string> log;
    for (const Step& step : script.steps) (void)apply(spec, step, log);
    const std::vector<std::byte> good = spec.store->export_range(0, kEverything);
    for (std::size_t length = 0; length < good.size(); ++length) {
      const OperatorSpec fresh = make();
      CHECK_THROWS(fresh.store->import_range(std::span(good).first(length)), StateError);
      CHECK_EQ(fresh.store->size(), 0U);
    }
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::byte> bad = good;
      for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) bad[random() % bad.size()] = static_cast<std::byte>(random());
      const OperatorSpec fresh = make();
      try {
        (void)fresh.store->import_range(bad);
        CHECK(fresh.store->export_range(0, kEverything).size() == bad.size());
      } catch (const StateError&) {
        CHECK_EQ(fresh.store->size(), 0U);
      }
    }
    if (spec.store->size() > 0) CHECK_THROWS(spec.store->import_range(good), StateError);  // keys that are here already
  }
}

TEST(damaged_times_are_no_harm) {  // by times and counts alone: what is in a set or a sketch is as trusted as that of an aggregate
  std::mt19937_64 random(4);
  const auto counts =
      schema_of({field("key", Type::String), field("start", Type::Int64), field("end", Type::Int64), field("n", Type::Int64)});
  const auto plain = schema_of({field("key", Type::String), field("n", Type::Int64)});
  const std::vector<Aggregate> count = {{AggregateFunction::Count, ""}};
  std::vector<Case> cases;
  for (const WindowKind kind : {WindowKind::Count, WindowKind::Time, WindowKind::Session}) {
    const bool timed = kind != WindowKind::Count;
    cases.push_back({[=] {
      return make_window("w", kRows, timed ? counts : plain, {"key"}, {.kind = kind, .size = 6, .slide = 2, .time = timed ? "at" : ""},
                         count);
    }});
  }
  cases.insert(cases.end(), kCases.begin() + 7, kCases.end());
  for (const auto& [make, ports] : cases) {
    const Script script(21, 80, ports);
    const OperatorSpec spec = make();
    std::vector<std::string> log;
    for (std::size_t i = 0; i < 50; ++i) (void)apply(spec, script.steps[i], log);
    const std::vector<std::byte> good = spec.store->export_range(0, kEverything);
    int taken = 0;
    for (int round = 0; round < 1000; ++round) {
      std::vector<std::byte> bad = good;
      bad[32 + random() % (bad.size() - 32)] = static_cast<std::byte>(random());  // behind the header
      const OperatorSpec fresh = make();
      try {
        (void)fresh.store->import_range(bad);
      } catch (const StateError&) {
        continue;
      }
      ++taken;
      for (std::size_t i = 50; i < script.steps.size(); ++i) (void)apply(fresh, script.steps[i], log);
      finish(fresh, log);
      log.clear();
    }
    CHECK(taken > 0);
  }
}

TEST(other_windows_and_joins_are_of_another_layout) {
  for (const auto& [make, ports] : kCases) {
    for (const auto& [other, others] : kCases) {
      const bool same = &make == &other;
      const OperatorSpec one = make();
      const OperatorSpec two = other();
      if (one.store->layout() == two.store->layout()) CHECK(same || ports == 2);  // joins that differ only in being outer
      if (!same && one.store->layout() != two.store->layout())
        CHECK_THROWS(two.store->import_range(one.store->export_range(0, kEverything)), StateError);
    }
  }
}

REL_TEST_MAIN
