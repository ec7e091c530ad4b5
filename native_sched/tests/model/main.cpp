// The proof of the lock-free structures and of Port's hand-over, by one command:
//
//   test_model [--full] [--seed=1] [--schedules=N] [--only=TEXT] [--replay=SEED] [--trace]
//
// Prints a line per scenario and per mutant: what was searched, how long, killed by what. Exits with 1 if a scenario fails or a mutant
// lives. --full: wider bounds, and a million schedules of three threads and more per structure. --only: what has TEXT in its name.
// --replay: one schedule of the scenarios that --only names, with its trace. --trace: shows every mutant's end.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "checker/execution.hpp"
#include "mutants.hpp"
#include "rayelastic/assert.hpp"
#include "scenarios/scenarios.hpp"

using namespace rayelastic::model;

namespace {

struct Options {
  bool full = false;
  bool trace = false;
  std::uint64_t seed = 1;
  std::uint64_t schedules = 100'000;  // per structure, of three threads and more
  std::uint64_t replay = 0;
  std::string only;
};

std::string limit(unsigned bound) { return bound == Bounds::kUnbounded ? "any" : "<= " + std::to_string(bound); }

void report(const Case& scenario, const std::string& how, const Outcome& outcome) {
  std::printf("%-10s %-44s %-52s %9llu executions %6.2f s  %s\n", scenario.structure, scenario.name, how.c_str(),
              static_cast<unsigned long long>(outcome.executions), outcome.seconds,
              !outcome.failure.empty() ? "FAILS"
              : outcome.complete       ? "holds"
                                       : "NOT COMPLETE");
  if (!outcome.failure.empty()) {
    std::printf("  %s, %s, run again: %s\n%s", outcome.failure.c_str(), how.c_str(),
                outcome.replayed ? "the same to the byte" : "DIFFERENT", outcome.trace.c_str());
  }
  std::fflush(stdout);
}

// Unmutated code: everything must hold.
bool prove(const std::vector<Case>& cases, const Options& options) {
  // Random schedules are for what can't be searched exhaustively, three threads and more; the others get a tenth of one's share.
  std::map<std::string, std::uint64_t> sharing;
  for (const Case& scenario : cases) sharing[scenario.structure] += scenario.exhaustive ? 0 : 1;
  bool ok = true;
  for (Case scenario : cases) {
    if (scenario.exhaustive) {
      if (options.full && scenario.full.preemptions > 0) scenario.bounds = scenario.full;
      const Outcome outcome = search_all(scenario);
      report(scenario, "all schedules: preemptions " + limit(scenario.bounds.preemptions) + ", old loads " + limit(scenario.bounds.stale),
             outcome);
      ok = ok && outcome.failure.empty() && outcome.complete;
    }
    const std::uint64_t share = options.schedules / std::max<std::uint64_t>(sharing[scenario.structure], 1);
    const std::uint64_t count = std::max<std::uint64_t>(scenario.exhaustive ? share / 10 : share, 1);
    const Outcome outcome = search_random(scenario, options.seed, count);
    report(scenario, "seeds " + std::to_string(options.seed) + " to " + std::to_string(options.seed + count - 1), outcome);
    ok = ok && outcome.failure.empty();
  }
  return ok;
}

// True: dead, or alive and known to be harmless.
bool kill(const Mutant& mutant, const std::vector<Case>& cases, const Options& options) {
  constexpr std::uint64_t kRounds[] = {500, 4'000, 20'000};  // executions and schedules of each scenario, if it has so many
  mutant.plant();
  Outcome end;
  std::string by;
  std::uint64_t searched = 0;
  double seconds = 0;
  const auto attempt = [&](const Case& scenario, bool all, std::uint64_t count) {
    if (!end.failure.empty() || (all && !scenario.exhaustive)) return;
    end = all ? search_all(scenario, count) : search_random(scenario, options.seed, count);
    searched += end.executions;
    seconds += end.seconds;
    by = std::string(scenario.structure) + ", " + scenario.name + (all ? ", execution " : ", seed ") + std::to_string(end.found_by);
  };
  for (const std::uint64_t count : kRounds) {
    if (!mutant.needless.empty() && count > kRounds[options.full ? 1 : 0]) break;
    for (const char* structure : mutant.structures) {
      for (const Case& scenario : cases) {
        if (std::strcmp(scenario.structure, structure) != 0) continue;
        attempt(scenario, true, count);
        attempt(scenario, false, count);
      }
    }
  }
  heal();
  const bool dead = !end.failure.empty();
  const bool expected = dead == mutant.needless.empty() && (!dead || end.replayed);
  std::printf("%-9s %-100s %9llu executions %6.2f s  %s%s\n",
              dead                      ? "killed"
              : mutant.needless.empty() ? "ALIVE"
                                        : "harmless",
              mutant.name.c_str(), static_cast<unsigned long long>(searched), seconds,
              dead ? (by + ": " + end.failure).c_str() : mutant.needless.c_str(),
              expected                ? ""
              : dead && !end.replayed ? "  NOT REPLAYED"
              : dead                  ? "  BUT IT WAS CALLED HARMLESS"
                                      : "");
  if (options.trace && dead) std::printf("%s", end.trace.c_str());
  std::fflush(stdout);
  return expected;
}

Options read(int argc, char** argv) {
  Options options;
  for (int index = 1; index < argc; ++index) {
    const std::string argument = argv[index];
    const auto value = [&](const char* key) -> const char* {
      return argument.starts_with(key) ? argument.c_str() + std::strlen(key) : nullptr;
    };
    if (argument == "--full") {
      options.full = true;
      options.schedules = 1'000'000;
    } else if (argument == "--trace") {
      options.trace = true;
    } else if (const char* text = value("--seed="); text != nullptr) {
      options.seed = std::strtoull(text, nullptr, 10);
    } else if (const char* text = value("--schedules="); text != nullptr) {
      options.schedules = std::strtoull(text, nullptr, 10);
    } else if (const char* text = value("--replay="); text != nullptr) {
      options.replay = std::strtoull(text, nullptr, 10);
    } else if (const char* text = value("--only="); text != nullptr) {
      options.only = text;
    } else {
      std::fprintf(stderr, "usage: test_model [--full] [--seed=1] [--schedules=N] [--only=TEXT] [--replay=SEED] [--trace]\n");
      std::exit(2);
    }
  }
  return options;
}

template <class Item, class Name>
void keep(std::vector<Item>& items, const std::string& only, Name&& name) {
  std::erase_if(items, [&](const Item& item) { return name(item).find(only) == std::string::npos; });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read(argc, argv);
  rayelastic::assertions::on_failure = [](const char* failure) { fail(failure); };
  const auto start = std::chrono::steady_clock::now();
  std::vector<Case> cases;
  for (const auto& some : {queue_cases(), lock_cases(), list_cases(), port_cases(), hold_cases(), copy_cases()})
    cases.insert(cases.end(), some.begin(), some.end());
  for (const Case& scenario : cases) (void)search_random(scenario, 1, 300);  // now all sites are known
  std::vector<Mutant> by_hand = mutants_by_hand();
  std::vector<Mutant> by_rule = mutants_by_rule();

  std::vector<Case> chosen = cases;
  keep(chosen, options.only, [](const Case& scenario) { return std::string(scenario.structure) + ", " + scenario.name; });
  if (options.replay != 0) {
    Random choices;
    for (const Case& scenario : chosen) {
      choices.begin(options.replay);
      const auto end = Execution::the().run(scenario.make, choices, true);
      std::printf("%s, %s, seed %llu: %s\n%s", scenario.structure, scenario.name, static_cast<unsigned long long>(options.replay),
                  end == Execution::End::Done ? "holds" : Execution::the().failure().c_str(), Execution::the().trace().c_str());
    }
    return EXIT_SUCCESS;
  }
  bool ok = prove(chosen, options);
  std::size_t unexpected = 0;
  keep(by_hand, options.only, [](const Mutant& mutant) { return mutant.name; });
  keep(by_rule, options.only, [](const Mutant& mutant) { return mutant.name; });
  for (const Mutant& mutant : by_hand) unexpected += kill(mutant, cases, options) ? 0 : 1;
  for (const Mutant& mutant : by_rule) unexpected += kill(mutant, cases, options) ? 0 : 1;
  ok = ok && unexpected == 0;
  std::printf("%s: %zu scenarios, %zu mutants by hand, %zu by rule, %zu of them not as expected; %.0f s\n", ok ? "proven" : "NOT PROVEN",
              chosen.size(), by_hand.size(), by_rule.size(), unexpected,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
