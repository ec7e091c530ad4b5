// What windows, joins, patterns, merges and event_time keep: exported after any step and imported elsewhere, they go on as if nothing had happened.
#include <random>
#include <vector>

#include "state/timed_cases.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::uint64_t kEverything = UINT64_MAX;
constexpr std::size_t kSmallChunk = 200;  // bytes: several chunks an export
// GCC's thread sanitizer keeps a frame of its shadow stack for each exception, and copies that stack at each allocation: with all
// of a file's refusals it takes more than 24 GB.
constexpr int kDamages = kThreadSanitized ? 20 : 2000;

// What it has, in another one.
std::shared_ptr<Operator> moved(const std::shared_ptr<Operator>& spec, const Make& make) {
  std::shared_ptr<Operator> fresh = make();
  const KeySelection all = spec->state()->select({0, kEverything});
  std::size_t keys = 0;
  std::uint64_t at = 0;
  do keys += fresh->state()->import_range(spec->state()->export_chunk(all, at, kSmallChunk));
  while (at != 0);
  CHECK_EQ(keys, spec->state()->size());
  CHECK_EQ(fresh->state()->size(), spec->state()->size());
  return fresh;
}

}  // namespace

TEST(moved_after_each_step_they_give_what_they_would_have_given) {
  for (const auto& [make, ports] : kCases) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Script script(seed, 120, ports);
      std::shared_ptr<Operator> spec = make();
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
    const std::shared_ptr<Operator> spec = make();
    std::vector<std::string> log;
    std::mt19937_64 random(5);
    for (const Step& step : script.steps) {
      CHECK(apply(spec, step, log) >= 0);
      const std::uint64_t middle = random();
      const std::size_t keys = spec->state()->size();
      const std::vector<std::byte> low = spec->state()->export_range(0, middle);
      const std::size_t gone = spec->state()->remove_range(0, middle);
      CHECK_EQ(spec->state()->size(), keys - gone);
      CHECK_EQ(spec->state()->import_range(low), gone);
      CHECK_EQ(spec->state()->size(), keys);
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
  const std::shared_ptr<Operator> spec = make();
  std::vector<std::string> log;
  CHECK_EQ(apply(spec, {0, {}, 25}, log), 0);
  CHECK_EQ(spec->state()->size(), 0U);  // no key: the watermark alone
  const std::shared_ptr<Operator> there = moved(spec, make);
  log.clear();
  CHECK_EQ(apply(there, {0, {{view("a"), 19, 0, view("n")}, {view("a"), 20, 0, view("n")}}, kNoWatermark}, log), 0);
  CHECK_EQ(log.size(), 1U);
  CHECK_EQ(log[0].substr(0, 9), "late a 19");
}

// One replica is ahead of another and has forgotten what applied before; records of the other one come and still need it.
TEST(a_rule_that_was_forgotten_comes_with_the_records_that_need_it) {
  const Make make = crossing(false);
  const std::shared_ptr<Operator> ahead = make();
  const std::shared_ptr<Operator> behind = make();
  std::vector<std::string> log;
  for (const std::shared_ptr<Operator>* const replica : {&ahead, &behind}) {
    CHECK_EQ(apply(*replica, {1, {{view("r"), 5, 1, view("n")}, {view("r"), 15, 2, view("n")}}, kNoWatermark}, log), 0);
  }
  CHECK_EQ(apply(behind, {0, {{view("a"), 10, 0, view("n")}}, kNoWatermark}, log), 0);
  CHECK_EQ(apply(ahead, {0, {}, 20}, log), 0);
  CHECK_EQ(apply(ahead, {1, {{view("r"), 21, 3, view("n")}}, kNoWatermark}, log), 0);
  CHECK_EQ(ahead->state()->import_range(behind->state()->export_range(0, ~std::uint64_t{0})), 0U);  // no key has a slot
  CHECK_EQ(apply(ahead, {1, {{view("r"), 22, 4, view("n")}}, kNoWatermark}, log), 0);
  log.clear();
  CHECK_EQ(apply(ahead, {0, {}, 23}, log), 0);
  CHECK_EQ(log.size(), 2U);                                          // and the mark
  CHECK(log[0].starts_with("a 10 0 n null r 4607182418800017408"));  // 1.0 by its bits: what applied at 10
}

// As behind a router: every record to the replica that has its key, every watermark to both, and each replica does when it likes what waits
// for it. Whoever gives keys away has done all that came before; who gets them lags behind.
TEST(keys_move_to_a_replica_that_lags_behind) {
  for (std::size_t which = 0; which < kWindows; ++which) {
    const Make& make = kCases[which].make;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Script script(seed, 300, 1);
      std::mt19937_64 random(seed);
      const std::shared_ptr<Operator> replicas[] = {make(), make()};
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
        const std::size_t moved = replicas[1 - giver]->state()->import_range(replicas[giver]->state()->export_range(low, high));
        CHECK_EQ(replicas[giver]->state()->remove_range(low, high), moved);
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
  const std::shared_ptr<Operator> spec = make();
  std::vector<std::string> log;
  CHECK_EQ(apply(spec, {0, {{view("a"), 50, 0, view("n")}}, 0}, log), 0);
  CHECK_EQ(log.back(), "mark 46");
  const std::shared_ptr<Operator> there = moved(spec, make);
  log.clear();
  CHECK_EQ(apply(there, {0, {{view("a"), 47, 0, view("n")}, {view("a"), 46, 0, view("n")}}, 0}, log), 0);
  CHECK_EQ(log.size(), 3U);
  CHECK_EQ(log[1], "mark 46");  // in front of the late one
  const std::shared_ptr<Operator> other = make_event_time("t", kRows, "at", 0);
  (void)other->state()->import_range(spec->state()->export_range(0, kEverything));  // another lateness may go on from it
  const std::shared_ptr<Operator> unlike = make_event_time("t", kRows, "x", 3);
  CHECK_THROWS(unlike->state()->import_range(spec->state()->export_range(0, kEverything)), StateError);
}

TEST(damaged_exports_are_refused_or_are_others) {
  std::mt19937_64 random(3);
  for (const auto& [make, ports] : kCases) {
    const Script script(11, 60, ports);
    const std::shared_ptr<Operator> spec = make();
    std::vector<std::string> log;
    for (const Step& step : script.steps) (void)apply(spec, step, log);
    const std::vector<std::byte> good = spec->state()->export_range(0, kEverything);
    for (std::size_t length = 0; length < good.size(); length += kThreadSanitized ? 1 + good.size() / 20 : 1) {
      const std::shared_ptr<Operator> fresh = make();
      CHECK_THROWS(fresh->state()->import_range(std::span(good).first(length)), StateError);
      CHECK_EQ(fresh->state()->size(), 0U);
    }
    for (int round = 0; round < kDamages; ++round) {
      std::vector<std::byte> bad = good;
      for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) bad[random() % bad.size()] = static_cast<std::byte>(random());
      const std::shared_ptr<Operator> fresh = make();
      try {
        (void)fresh->state()->import_range(bad);
        CHECK(fresh->state()->export_range(0, kEverything).size() == bad.size());
      } catch (const StateError&) {
        CHECK_EQ(fresh->state()->size(), 0U);
      }
    }
    if (spec->state()->size() > 0) CHECK_THROWS(spec->state()->import_range(good), StateError);  // keys that are here already
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
  cases.insert(cases.end(), kCases.begin() + kWindows, kCases.end());
  for (const auto& [make, ports] : cases) {
    const Script script(21, 80, ports);
    const std::shared_ptr<Operator> spec = make();
    std::vector<std::string> log;
    for (std::size_t i = 0; i < 50; ++i) (void)apply(spec, script.steps[i], log);
    const std::vector<std::byte> good = spec->state()->export_range(0, kEverything);
    int taken = 0;
    for (int round = 0; round < kDamages / 2; ++round) {
      std::vector<std::byte> bad = good;
      bad[32 + random() % (bad.size() - 32)] = static_cast<std::byte>(random());  // behind the header
      const std::shared_ptr<Operator> fresh = make();
      try {
        (void)fresh->state()->import_range(bad);
      } catch (const StateError&) {
        continue;
      }
      ++taken;
      for (std::size_t i = 50; i < script.steps.size(); ++i) (void)apply(fresh, script.steps[i], log);
      finish(fresh, log);
      log.clear();
    }
    CHECK(taken > 0 || kThreadSanitized);
  }
}

TEST(other_windows_and_joins_are_of_another_layout) {
  for (const auto& [make, ports] : kCases) {
    for (const auto& [other, others] : kCases) {
      const bool same = &make == &other;
      const std::shared_ptr<Operator> one = make();
      const std::shared_ptr<Operator> two = other();
      if (one->state()->layout() == two->state()->layout()) CHECK(same || ports == 2);  // joins that differ only in being outer
      if (!same && one->state()->layout() != two->state()->layout())
        CHECK_THROWS(two->state()->import_range(one->state()->export_range(0, kEverything)), StateError);
    }
  }
}

REL_TEST_MAIN
