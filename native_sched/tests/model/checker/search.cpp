#include "checker/search.hpp"

#include <chrono>

namespace rayelastic::model {

namespace {

class Watch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// `again` makes the choices ready to be made once more.
template <class Again>
void explain(Outcome& outcome, const Case& scenario, Choices& choices, Again&& again) {
  Execution& execution = Execution::the();
  outcome.failure = execution.failure();
  again();
  (void)execution.run(scenario.make, choices, true);
  outcome.trace = execution.trace();
  const std::string failure = execution.failure();
  again();
  (void)execution.run(scenario.make, choices, true);
  outcome.replayed = outcome.trace == execution.trace() && failure == outcome.failure && execution.failure() == failure;
}

}  // namespace

Outcome search_all(const Case& scenario, std::uint64_t most) {
  const Watch watch;
  Outcome outcome;
  Exhaustive choices(scenario.bounds);
  Execution& execution = Execution::the();
  const std::uint64_t steps = execution.steps();
  do {
    choices.begin();
    const auto end = execution.run(scenario.make, choices);
    outcome.executions += end == Execution::End::Redundant ? 0 : 1;
    if (!execution.failure().empty()) {
      outcome.found_by = outcome.executions;
      explain(outcome, scenario, choices, [&] { choices.begin(); });
      break;
    }
    if (!choices.next()) {
      outcome.complete = true;
      break;
    }
  } while (outcome.executions < most);
  outcome.steps = execution.steps() - steps;
  outcome.seconds = watch.seconds();
  return outcome;
}

Outcome search_random(const Case& scenario, std::uint64_t first_seed, std::uint64_t count) {
  const Watch watch;
  Outcome outcome;
  Random choices;
  Execution& execution = Execution::the();
  const std::uint64_t steps = execution.steps();
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    choices.begin(seed);
    (void)execution.run(scenario.make, choices);
    ++outcome.executions;
    if (!execution.failure().empty()) {
      outcome.found_by = seed;
      explain(outcome, scenario, choices, [&] { choices.begin(seed); });
      break;
    }
  }
  outcome.complete = outcome.failure.empty();
  outcome.steps = execution.steps() - steps;
  outcome.seconds = watch.seconds();
  return outcome;
}

}  // namespace rayelastic::model
