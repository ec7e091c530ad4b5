// The wheel against a sorted map: each timer once, in the order of times, those of the same time as they were set.
#include "state/timer_wheel.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "check.hpp"
#include "state/timer_set.hpp"

using namespace rayelastic;

namespace {

void* numbered(std::uint64_t number) { return reinterpret_cast<void*>(number); }

void as_sorted(std::uint64_t seed, std::int64_t spread, std::int64_t start) {
  std::mt19937_64 dice(seed);
  TimerWheel wheel;
  std::multimap<std::int64_t, void*> expected;
  std::int64_t now = start;
  std::uint64_t number = 0;
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t n = dice() % 20; n > 0; --n) {
      const std::int64_t at = now + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(spread));
      wheel.push(at, numbered(++number));
      expected.emplace(at, numbered(number));
    }
    CHECK(wheel.size() == expected.size());
    const std::int64_t until = now + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(spread / 2 + 1));
    TimerWheel::Timer timer;
    while (wheel.pop(until, timer)) {
      CHECK(!expected.empty());
      CHECK(timer.at == expected.begin()->first);
      CHECK(timer.of == expected.begin()->second);
      expected.erase(expected.begin());
      now = timer.at;
      if (dice() % 4 == 0) {  // one that is set by another, at the same time perhaps
        const std::int64_t at = now + static_cast<std::int64_t>(dice() % 3);
        wheel.push(at, numbered(++number));
        expected.emplace(at, numbered(number));
      }
    }
    CHECK(expected.empty() || expected.begin()->first > until);
    now = until;
  }
}

}  // namespace

TEST(times_as_far_as_they_go) {
  TimerWheel wheel;
  TimerWheel::Timer timer;
  wheel.push(INT64_MAX, numbered(1));
  wheel.push(INT64_MIN, numbered(2));
  wheel.push(0, numbered(3));
  CHECK(wheel.pop(INT64_MIN, timer) && timer.of == numbered(2));
  CHECK(!wheel.pop(-1, timer));
  CHECK(wheel.pop(0, timer) && timer.of == numbered(3));
  wheel.push(-5, numbered(4));  // over: at once
  CHECK(wheel.pop(0, timer) && timer.of == numbered(4));
  CHECK(!wheel.pop(INT64_MAX - 1, timer));
  CHECK(wheel.pop(INT64_MAX, timer) && timer.of == numbered(1));
  CHECK(wheel.size() == 0);
}

TEST(each_time_once) {
  std::mt19937_64 dice(7);
  TimerSet timers;
  std::vector<std::int64_t> expected;
  for (int round = 0; round < 20000; ++round) {
    const auto at = static_cast<std::int64_t>(dice() % 2000);
    const auto place = std::ranges::lower_bound(expected, at);
    const bool there = place != expected.end() && *place == at;
    if (dice() % 2 == 0) {
      CHECK(timers.add(at) == !there);
      if (!there) expected.insert(place, at);
    } else {
      CHECK(timers.remove(at) == there);
      if (there) expected.erase(place);
    }
    CHECK(timers.size() == expected.size());
    CHECK(timers.times() == expected);
  }
  timers.clear();
  CHECK(timers.size() == 0 && timers.add(1));
}

TEST(in_the_order_of_times_and_then_as_set) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    as_sorted(seed, 3, 0);
    as_sorted(seed, 1000, -500);
    as_sorted(seed, std::int64_t{1} << 40, -(std::int64_t{1} << 50));
  }
}

REL_TEST_MAIN
