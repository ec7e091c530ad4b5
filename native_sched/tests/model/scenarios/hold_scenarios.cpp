// Hold: whoever runs an operator and whoever holds it are never both at its state, each sees what the other did there, and who waits
// is released. Its fence is that of machines without membarrier: both sides pass one, here a read and a write of one word.
#include <memory>

#include "checker/atom.hpp"
#include "engine/control/hold.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

namespace {

struct ModelFence {
  static void pass(Fault left_out) {
    if (fault != left_out) (void)word->exchange(0, std::memory_order_acq_rel);
  }
  static void pass() { pass(Fault::EntersWithoutFence); }

  static inline Atom<int>* word = nullptr;
};

using ModelHold = BasicHold<Atom, ModelFence>;

// A chain of operators is run by one thread, each handing over to the next, while another holds all of them, the first one first; or
// holds the first one and waits until the others are quiet: then no run is anywhere.
template <int kOperators, int kRuns, bool kDrains = false>
class Chain final : public Scenario {
 public:
  Chain() { ModelFence::word = &word_; }
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override { thread == 0 ? operate() : kDrains ? drain() : hold(); }
  void finish() override {
    for (const Operator& each : operators_) require(each.runs == kRuns && each.hold.settled(), "a run is lost");
  }

 private:
  struct Operator {
    ModelHold hold;
    int runs = 0;
  };

  // OperatorContext::step and wait_released
  void operate() {
    for (int count = 0; count < kRuns; ++count) {
      for (int at = 0; at < kOperators; ++at) {
        Operator& here = operators_[at];
        while (!here.hold.try_enter()) {
          here.hold.leave();
          here.hold.wait();
        }
        Machine<Atom>::writes(&here.runs, sizeof here.runs);
        ++here.runs;
        if (at + 1 < kOperators) operators_[at + 1].hold.expect();
        here.hold.leave();
      }
    }
  }
  // SafePoints::hold. Who is refused leaves, so each settles; the operators downstream of it go on meanwhile.
  void hold() {
    for (Operator& each : operators_) {
      each.hold.hold();
      ModelFence::pass(Fault::HoldsWithoutFence);
      while (!each.hold.settled()) Machine<Atom>::relax();
      Machine<Atom>::writes(&each.runs, sizeof each.runs);
    }
    for (Operator& each : operators_) Machine<Atom>::writes(&each.runs, sizeof each.runs);
    for (Operator& each : operators_) each.hold.release();
  }

  void drain() {
    operators_[0].hold.hold();
    ModelFence::pass(Fault::HoldsWithoutFence);
    for (Operator& each : operators_) {
      while (!each.hold.settled()) Machine<Atom>::relax();
      Machine<Atom>::reads(&each.runs, sizeof each.runs);
      require(each.runs == operators_[0].runs, "a run is between two operators");
    }
    operators_[0].hold.release();
  }

  Atom<int> word_{0};
  Operator operators_[kOperators];
};

template <class Kind>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<Case> hold_cases() {
  return {
      {"Hold", "an operator, 2 runs", make<Chain<1, 2>>, true},
      {"Hold", "2 operators, the second drained", make<Chain<2, 2, true>>, true, {.preemptions = 4, .stale = 2}},
      {"Hold", "2 operators in a chain, 2 runs", make<Chain<2, 2>>, true, {.preemptions = 4, .stale = 2}},
  };
}

}  // namespace rayelastic::model
