// Who decides, at every step of an execution, what happens next: all possibilities in turn (Exhaustive), or dice (Random).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "checker/site.hpp"

namespace rayelastic::model {

inline constexpr int kThreads = 4;
using Threads = std::uint8_t;  // a set of them, a bit each

// What a thread does at its next step, or did.
struct Step {
  Kind kind = Kind::Start;
  std::uint8_t location = 0;
  bool writes = false;
  bool sequential = false;  // seq_cst
};
using Steps = std::array<Step, kThreads>;

// Whether the order of two steps matters, by different threads.
[[nodiscard]] constexpr bool depends(const Step& one, const Step& other) {
  if (one.kind == Kind::Relax || other.kind == Kind::Relax) return true;
  if (one.kind == Kind::Start || other.kind == Kind::Start) return false;
  return one.location == other.location && (one.writes || other.writes || (one.sequential && other.sequential));
}

class Choices {
 public:
  static constexpr int kRedundant = -1;

  virtual ~Choices() = default;
  // One of `able`. `running` is the thread that ran last if it is still able, else -1. kRedundant: what follows was seen before.
  [[nodiscard]] virtual int thread(Threads able, int running) = 0;
  // Which of `count` stores a load sees, the newest first.
  [[nodiscard]] virtual unsigned store(unsigned count) = 0;
  // Any other choice, below `count`.
  [[nodiscard]] virtual unsigned any(unsigned count) = 0;
  // `thread` has done `step`; `next` are the next steps of the others.
  virtual void done(int thread, const Step& step, const Steps& next) = 0;
};

// Bounds of a search; kUnbounded is none.
struct Bounds {
  static constexpr unsigned kUnbounded = 1000000;
  unsigned preemptions = kUnbounded;  // threads taken off although they could go on, per execution
  unsigned stale = kUnbounded;        // loads that see a store that isn't the newest, per execution
};

// Depth first, one execution after the other. Without a bound of preemptions executions that differ only in the order of independent
// steps are seen once (sleep sets, Godefroid 1996); with one, each order within the bound is seen (CHESS, Musuvathi 2007).
class Exhaustive final : public Choices {
 public:
  explicit Exhaustive(Bounds bounds) : bounds_(bounds) {}

  void begin();
  // False: that was the last.
  [[nodiscard]] bool next();

  [[nodiscard]] int thread(Threads able, int running) override;
  [[nodiscard]] unsigned store(unsigned count) override;
  [[nodiscard]] unsigned any(unsigned count) override;
  void done(int thread, const Step& step, const Steps& next) override;

 private:
  struct Node {
    bool of_threads = false;
    std::uint8_t chosen = 0;
    std::uint8_t count = 0;  // of values
    Threads left = 0;        // not yet chosen
    Threads seen = 0;        // chosen before
    Threads asleep = 0;
  };

  const Bounds bounds_;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  Threads asleep_ = 0;
  unsigned preemptions_ = 0;
  unsigned stale_ = 0;
};

// A schedule is a seed. It also says how restless the schedule is, and how often loads see old stores.
class Random final : public Choices {
 public:
  void begin(std::uint64_t seed);

  [[nodiscard]] int thread(Threads able, int running) override;
  [[nodiscard]] unsigned store(unsigned count) override;
  [[nodiscard]] unsigned any(unsigned count) override;
  void done(int, const Step&, const Steps&) override {}

 private:
  [[nodiscard]] std::uint32_t roll(std::uint32_t sides);

  std::uint64_t state_ = 0;
  std::uint32_t switch_in_16_ = 8;
  std::uint32_t stale_in_16_ = 4;
};

}  // namespace rayelastic::model
