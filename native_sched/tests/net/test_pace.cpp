// A router that holds records back lets in no more than came before, and goes on at once when it may.
#include "rayelastic/net/pace.hpp"

#include <thread>

#include "fake_context.hpp"
#include "pipeline.hpp"
#include "rayelastic/net/router.hpp"

using namespace rayelastic;
using namespace rayelastic::check;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kRun = 10;  // records

// Behind the router, in its own PE.
struct Behind : FakeContext {
  using FakeContext::FakeContext;
  bool emit(std::int32_t, const void* from, std::int64_t n) override {
    const auto* rows = static_cast<const Row*>(from);
    for (std::int64_t i = 0; i < n; ++i) wrong += rows[i].sequence != next++;
    return true;
  }
  std::int64_t next = 0;
  std::int64_t wrong = 0;
};

struct Pacing {
  std::shared_ptr<Router> router =
      std::make_shared<Router>(row_schema(), RouterOptions{.name = "router", .keys = {"stream"}, .owners = {0, 0}, .locals = {0}});
  std::shared_ptr<Operator> spec = make_router(router);
  Behind behind{spec};
  std::int64_t made = 0;

  // A run; what goes on as it came is taken over here.
  void run() {
    Row rows[kRun];
    for (Row& row : rows) row = {0, made++};
    const std::int64_t passed = behind.call(rows, kRun);
    CHECK(passed >= 0);
    (void)behind.emit(0, rows, passed);
  }

  // As many a second, for long enough to be noticed.
  void run_at(std::int64_t per_second) {
    const auto began = Pace::Clock::now();
    for (auto now = began; now - began < 400ms; now = Pace::Clock::now()) {
      run();
      std::this_thread::sleep_until(began + std::chrono::nanoseconds(made * 1'000'000'000 / per_second));
    }
  }
};

}  // namespace

TEST(the_pace_is_that_of_the_last_window) {
  Pace pace;
  const Pace::Clock::time_point start = Pace::Clock::now() + 1000h;  // so that it is this test that looks at the clock
  CHECK(pace.records_in(1s, start, 500) == 500);                     // nothing was seen: no bound
  pace.look(start);
  pace.passed(1000);
  pace.look(start + 1s);
  CHECK(pace.records_in(100ms, start + 1s, SIZE_MAX) == 100);
  CHECK(pace.records_in(1ms, start + 1s, SIZE_MAX) == 1);
  CHECK(pace.records_in(1us, start + 1s, SIZE_MAX) == 1);  // never none
  CHECK(pace.records_in(1s, start + 1s, 500) == 500);
  pace.passed(4000);
  CHECK(pace.records_in(1s, start + 2s, SIZE_MAX) == 4000);  // it has become faster
  pace.look(start + 3s);
  CHECK(pace.records_in(1s, start + 3s, SIZE_MAX) == 2000);
}

TEST(while_something_is_held_no_more_comes_in_than_before) {
  Pacing paced;
  paced.run_at(10'000);
  const auto ticket = paced.router->hold({0, 1}, 0, 1, 1);
  const std::int64_t before = paced.made;
  const auto began = Pace::Clock::now();
  while (paced.made < before + 4000) paced.run();  // of 0.4 s
  CHECK(Pace::Clock::now() - began > 150ms);
  CHECK(paced.router->wait(ticket, 60s) == Router::Answer::Done);
  CHECK(paced.router->counters().held_records == static_cast<std::uint64_t>(paced.made - before));
  (void)paced.router->route({0, 1}, 0, 1);
  paced.run();
  CHECK(paced.behind.next == paced.made);
  CHECK(paced.behind.wrong == 0);
}

TEST(who_waits_for_the_pace_goes_on_with_the_next_command) {
  Pacing paced;
  paced.run_at(100);
  (void)paced.router->hold({0, 1}, 0, 1, 1);
  paced.run();  // as much as comes in a tenth of a second: it may
  std::thread coordinator([&paced] {
    while (paced.router->counters().held_records < 2 * kRun) std::this_thread::yield();
    (void)paced.router->route({0, 1}, 0, 1);
  });
  const auto began = Pace::Clock::now();
  paced.run();
  coordinator.join();
  CHECK(Pace::Clock::now() - began < 5s);
  CHECK(paced.behind.next == paced.made);
  CHECK(paced.behind.wrong == 0);
}

REL_TEST_MAIN
