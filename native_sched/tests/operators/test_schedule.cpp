// The schedule of a throttle, by a clock that the test moves.
#include "rayelastic/operators/schedule.hpp"

#include "check.hpp"

using namespace rayelastic;
using namespace rayelastic::check;
using namespace std::chrono_literals;

namespace {

constexpr Schedule::TimePoint kStart{1'000s};

// Seconds until `records` have passed in parts, where each wake-up comes `late` behind what was asked for.
double seconds_for(double per_second, std::size_t records, std::size_t part, std::chrono::nanoseconds late) {
  Schedule schedule(per_second);
  Schedule::TimePoint now = kStart;
  for (std::size_t passed = 0; passed < records; passed += part) {
    const Schedule::TimePoint due = schedule.next(part, now);
    if (due > now) now = due + late;
  }
  return std::chrono::duration<double>(now - kStart).count();
}

}  // namespace

// Asked for 1,000, 5,000 and 50,000 a second: late wake-ups of 3 ms don't add up.
TEST(a_schedule_keeps_its_rate_on_average) {
  for (const double rate : {1'000.0, 5'000.0, 50'000.0}) {
    const auto records = static_cast<std::size_t>(10 * rate);
    for (const std::chrono::nanoseconds late : {0ns, 200'000ns, 3'000'000ns, 40'000'000ns}) {
      const double seconds = seconds_for(rate, records, static_cast<std::size_t>(rate / 100), late);
      CHECK(seconds > 9.9 && seconds < 10.1);
    }
  }
}

TEST(the_first_part_is_due_at_once_and_the_others_evenly) {
  Schedule schedule(1'000.0);
  CHECK(schedule.next(10, kStart) == kStart);
  CHECK(schedule.next(10, kStart) == kStart + 10ms);
  CHECK(schedule.next(1, kStart + 2ms) == kStart + 20ms);
  CHECK(schedule.next(1, kStart + 2ms) == kStart + 21ms);
}

// After a pause of a minute: what belongs into one second passes at once, and no more.
TEST(a_schedule_catches_up_one_second_at_most) {
  Schedule schedule(1'000.0);
  (void)schedule.next(10, kStart);
  const Schedule::TimePoint later = kStart + 60s;
  std::size_t at_once = 0;
  while (schedule.next(10, later) <= later) at_once += 10;
  CHECK(at_once >= 1'000 && at_once <= 1'010);
}

TEST(a_rate_near_zero_does_not_overflow_the_clock) {
  Schedule schedule(1e-300);
  CHECK(schedule.next(1, kStart) == kStart);
  CHECK(schedule.next(1, kStart) > kStart + std::chrono::hours(1));
}

REL_TEST_MAIN
