// CopyMarks: while one thread changes slots, another reads them as they were: each slot comes out once, with what it had at the beginning,
// kept aside by the one or read by the other, and never touched by both at a time.
#include <memory>

#include "atom.hpp"
#include "scenarios.hpp"
#include "state/copy/copy_marks.hpp"

namespace rayelastic::model {

namespace {

// The operator changes slots, some of them twice; the reader comes once.
template <unsigned kSlots, int kRounds>
class Copy final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override { thread == 0 ? operate() : read(); }
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

  BasicCopyMarks<Atom> marks_;
  int slots_[kSlots] = {};
  int aside_[kSlots] = {};
  bool was_kept_[kSlots] = {};
  bool was_read_[kSlots] = {};
};

template <class Kind>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<Case> copy_cases() {
  return {
      {"Copy", "a slot, changed twice", make<Copy<1, 2>>},
      {"Copy", "2 slots, changed twice", make<Copy<2, 2>>},
      {"Copy", "3 slots, changed twice", make<Copy<3, 2>>, true, {.preemptions = 4, .stale = 2}},
  };
}

}  // namespace rayelastic::model
