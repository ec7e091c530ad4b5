// Detects operators that wait in Python instead of computing: they are called beside the token (token.hpp), so that others can use it
// meanwhile. Uses the profiler's snapshots. Knows no threads and no Python.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/control/profiler.hpp"

namespace rayelastic {

class TokenWaits {
 public:
  // After each look of the profiler.
  void look(const Profile& profile, const std::vector<std::unique_ptr<OperatorContext>>& contexts) {
    if (profile.ticks % kLooks != 0) return;
    seen_.resize(contexts.size());
    std::uint64_t computed = 0;  // by those that wait, they say
    std::uint64_t longest = 0;
    for (std::size_t id = 0; id < contexts.size(); ++id) {
      Seen& seen = seen_[id];
      const Seen now{profile.operator_time[id], profile.operator_waited[id], profile.operator_cpu[id]};
      seen.passed = {now.total.time - seen.total.time, now.total.waited - seen.total.waited, now.total.cpu - seen.total.cpu};
      seen.total = now.total;
      if (!contexts[id]->gil().waits()) continue;
      computed += seen.passed.cpu;
      longest = std::max(longest, seen.passed.time);
    }
    const bool fight = static_cast<double>(computed) > kBusy * static_cast<double>(longest);
    for (std::size_t id = 0; id < contexts.size(); ++id) {
      const Times& passed = seen_[id].passed;
      if (passed.time < kLeast) continue;
      const auto share = [&](std::uint64_t part) { return static_cast<double>(part) / static_cast<double>(passed.time); };
      if (!contexts[id]->gil().waits()) {
        contexts[id]->gil().set_waits(share(passed.waited) >= kWaits);
      } else if (share(passed.cpu) > kComputes || (fight && share(passed.cpu) > kComputesBesides)) {
        contexts[id]->gil().set_waits(false);
      }
    }
  }

 private:
  static constexpr std::uint64_t kLooks = 10;          // of the profiler, between two decisions
  static constexpr std::uint64_t kLeast = 20'000'000;  // ns inside an operator that say something about it
  static constexpr double kWaits = 0.6;                // of its time: more is waiting
  static constexpr double kComputes = 0.4;             // of its time: more is computing
  static constexpr double kBusy = 0.7;                 // of the interpreter: those beside the token are in each other's way
  static constexpr double kComputesBesides = 0.1;      // of its time, then: it waits for the interpreter, not for something else

  struct Times {
    std::uint64_t time = 0;
    std::uint64_t waited = 0;
    std::uint64_t cpu = 0;
  };
  struct Seen {
    Seen() = default;
    Seen(std::uint64_t time, std::uint64_t waited, std::uint64_t cpu) : total{time, waited, cpu} {}
    Times total;
    Times passed;
  };

  std::vector<Seen> seen_;  // by operator
};

}  // namespace rayelastic
