// Hold: whoever runs an operator and whoever holds it are never both at its state, each sees what the other did there, and who waits
// is released. Its fence is that of machines without membarrier: both sides pass one, here a read and a write of one word.
// CopyMarks: while one thread changes slots, another reads them as they were: each comes out once, kept aside by the one or read by the
// other, and is never touched by both at a time.
#include <cstdint>
#include <memory>

#include "checker/atom.hpp"
#include "engine/control/hold.hpp"
#include "scenarios/scenarios.hpp"
#include "state/copy/copy_marks.hpp"

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

enum class Reads { AtOnce, OneByOne };  // as KeyedState::Copy::export_group does, or export_singly

// The operator changes slots, some of them twice; the reader comes once.
template <unsigned kSlots, int kRounds, Reads kReads = Reads::AtOnce>
class Copy final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      operate();
    } else if (kReads == Reads::AtOnce) {
      read();
    } else {
      read_one_by_one();
    }
  }
  void finish() override {
    for (unsigned at = 0; at < kSlots; ++at) {
      require(slots_[at] == kRounds, "a change is lost");
      require(was_kept_[at] != was_read_[at], "a slot comes out twice, or not at all");
    }
  }

 private:
  void operate() {
    for (int round = 0; round < kRounds; ++round) {
      for (unsigned at = 0; at < kSlots; ++at) {
        if (marks_.begin_keep(at)) {
          Machine<Atom>::reads(&slots_[at], sizeof slots_[at]);
          Machine<Atom>::writes(&aside_[at], sizeof aside_[at]);
          require(slots_[at] == 0, "what is kept aside isn't what there was");
          was_kept_[at] = true;
          marks_.kept(at);
        }
        Machine<Atom>::writes(&slots_[at], sizeof slots_[at]);
        ++slots_[at];
      }
    }
  }

  void read() {
    const std::uint32_t taken = marks_.begin_export();
    for (unsigned at = 0; at < kSlots; ++at) {
      if ((taken >> at & 1) != 0) {
        Machine<Atom>::reads(&aside_[at], sizeof aside_[at]);
        require(was_kept_[at], "what was kept aside isn't there");
        continue;
      }
      Machine<Atom>::reads(&slots_[at], sizeof slots_[at]);
      require(slots_[at] == 0, "what is read isn't what there was");
      was_read_[at] = true;
    }
    marks_.exported();
  }

  // What was kept aside is read behind all slots: nobody keeps anything any more.
  void read_one_by_one() {
    for (unsigned at = 0; at < kSlots; ++at) {
      if (!marks_.begin_keep(at)) continue;
      Machine<Atom>::reads(&slots_[at], sizeof slots_[at]);
      require(slots_[at] == 0, "what is read isn't what there was");
      was_read_[at] = true;
      marks_.kept(at);
    }
    for (unsigned at = 0; at < kSlots; ++at) {
      if (was_read_[at]) continue;
      Machine<Atom>::reads(&aside_[at], sizeof aside_[at]);
      require(was_kept_[at], "what was kept aside isn't there");
    }
  }

  BasicCopyMarks<Atom> marks_;
  std::int64_t slots_[kSlots] = {};  // races are looked for in words of 8 bytes
  std::int64_t aside_[kSlots] = {};
  bool was_kept_[kSlots] = {};
  bool was_read_[kSlots] = {};
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

std::vector<Case> copy_cases() {
  return {
      {"Copy", "a slot, changed twice", make<Copy<1, 2>>},
      {"Copy", "2 slots, changed twice", make<Copy<2, 2>>},
      {"Copy", "3 slots, changed twice", make<Copy<3, 2>>, true, {.preemptions = 4, .stale = 2}},
      {"Copy", "a slot, read one by one", make<Copy<1, 2, Reads::OneByOne>>},
      {"Copy", "2 slots, read one by one", make<Copy<2, 2, Reads::OneByOne>>},
      {"Copy", "3 slots, read one by one", make<Copy<3, 2, Reads::OneByOne>>, true, {.preemptions = 4, .stale = 2}},
  };
}

}  // namespace rayelastic::model
