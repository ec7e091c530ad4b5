// FlagLock: one holder at a time who sees what the holders before it did; notes reach exactly one unlock; sleepers are woken.
#include <cstdint>

#include "checker/atom.hpp"
#include "rayelastic/queue/flag_lock.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

namespace {

using Lock = FlagLock<Atom>;

// Plain memory that the lock guards.
struct Guarded {
  int value = 0;
  void touch() {
    Machine<Atom>::writes(&value, sizeof value);
    ++value;
  }
};

// Tries only: whoever gets it touches what it guards.
template <int kThreadCount>
class Tries final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return kThreadCount; }
  void run(int) override {
    for (int step = 0; step < 2; ++step) {
      if (!lock_.try_lock()) continue;
      guarded_.touch();
      (void)lock_.unlock();
    }
  }
  void finish() override { require(guarded_.value > 0 && lock_.try_lock(), "nobody got a free lock, or it isn't free at the end"); }

 private:
  Lock lock_;
  Guarded guarded_;
};

// lock() with its sleep and its reservation. Everybody gets it, as often as it asks.
template <int kThreadCount, int kTimes>
class Sleepers final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return kThreadCount; }
  void run(int) override {
    for (int step = 0; step < kTimes; ++step) {
      lock_.lock();
      guarded_.touch();
      (void)lock_.unlock();
    }
  }
  void finish() override { require(guarded_.value == kThreadCount * kTimes && lock_.try_lock(), "it isn't free at the end"); }

 private:
  Lock lock_;
  Guarded guarded_;
};

// One waits until it is hungry; another has the lock twice; the third changes the word by leaving a note. The hungry one
// must not fall asleep on a lock that was just reserved for it.
class Patience final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 3; }
  void run(int thread) override {
    if (thread == 0) {
      lock_.lock();
      guarded_.touch();
      (void)lock_.unlock();
    } else if (thread == 1) {
      for (int times = 0; times < 2; ++times) {
        if (!lock_.try_lock()) return;
        guarded_.touch();
        (void)lock_.unlock();
      }
    } else {
      (void)lock_.leave_note(Lock::kRelist);
    }
  }
  void finish() override { require(lock_.try_lock(), "it isn't free at the end"); }

 private:
  Lock lock_;
  Guarded guarded_;
};

// One tries and gets notes back; the other leaves notes, with plain memory behind them, or goes if the lock is free.
// No note is lost, none comes twice.
class Notes final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override { thread == 0 ? hold() : leave(); }
  void finish() override {
    while (lock_.leave_note(Lock::kRelist) != 0) (void)lock_.unlock();
    require(returned_ == left_, "a note is lost, or comes twice, or comes from nowhere");
  }

 private:
  static constexpr int kSteps = 2;

  void hold() {
    for (int step = 0; step < kSteps; ++step) {
      if (!lock_.try_lock()) continue;
      guarded_.touch();
      const std::uint32_t notes = lock_.unlock();
      if ((notes & Lock::kRelist) == 0) continue;
      Machine<Atom>::reads(&behind_[returned_], sizeof behind_[0]);
      ++returned_;
    }
  }
  void leave() {
    for (int step = 0; step < kSteps; ++step) {
      Machine<Atom>::writes(&behind_[left_], sizeof behind_[0]);
      const std::uint32_t seen = lock_.leave_note(Lock::kRelist);
      if (seen == 0) return;
      ++left_;
      // The word with the note: once it is another one, the note was taken.
      lock_.sleep();
    }
  }

  Lock lock_;
  Guarded guarded_;
  std::int64_t behind_[kSteps + 1] = {};
  std::size_t left_ = 0;
  std::size_t returned_ = 0;
};

// One takes it for good, and says why those who wait are to leave: what becomes manual. All of them leave.
template <int kThreadCount>
class Roused final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return kThreadCount; }
  void run(int thread) override {
    if (thread == 0) {
      lock_.lock();
      kept_.store(1, std::memory_order_relaxed);
      lock_.rouse();
      return;
    }
    const auto leave = [this] { return kept_.load(std::memory_order_relaxed) == 1; };
    while (!lock_.try_lock()) {
      lock_.sleep_unless(leave);
      if (leave()) return;
    }
    guarded_.touch();
    (void)lock_.unlock();
  }
  void finish() override { require(!lock_.try_lock(), "it is free at the end"); }

 private:
  Lock lock_;
  Guarded guarded_;
  Atom<std::uint32_t> kept_{0};
};

// What Port::visit and Port::make_room do with a lock: visitors leave when it is held and the holder does their work; producers
// sleep until it is released. All visits come to their end.
class Visits final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 3; }
  void run(int thread) override {
    if (thread == 2) {
      for (int step = 0; step < 2; ++step) {
        while (!lock_.try_lock()) lock_.sleep();
        guarded_.touch();
        done_ += 1;
        release();
      }
    } else {
      visit();
    }
  }
  void finish() override { require(lock_.try_lock() && done_ >= 3, "a visit is lost"); }

 private:
  void visit() {
    for (;;) {
      if (lock_.try_lock()) break;
      if (lock_.leave_note(Lock::kRelist) != 0) return;
    }
    guarded_.touch();
    done_ += 1;
    release();
  }
  void release() {
    if ((lock_.unlock() & Lock::kRelist) != 0) visit();
  }

  Lock lock_;
  Guarded guarded_;
  int done_ = 0;
};

template <class Kind>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<Case> lock_cases() {
  return {
      {"FlagLock", "try_lock and unlock, 2 each", make<Tries<2>>},
      {"FlagLock", "lock with sleep and reservation, 1 each", make<Sleepers<2, 1>>},
      {"FlagLock", "lock with sleep and reservation, 2 each", make<Sleepers<2, 2>>, true, {.preemptions = 3, .stale = 1}},
      {"FlagLock", "notes", make<Notes>},
      {"FlagLock", "3 threads, a hungry one and a note", make<Patience>, true, {.preemptions = 5, .stale = 0}},
      {"FlagLock", "a lock that is kept, and one who waits", make<Roused<2>>},
      {"FlagLock", "3 threads, a lock that is kept", make<Roused<3>>, true, {.preemptions = 3, .stale = 1}},
      {"FlagLock", "3 threads, try_lock", make<Tries<3>>, true, {.preemptions = 3, .stale = 1}},
      {"FlagLock", "3 threads, lock with sleep and reservation", make<Sleepers<3, 2>>, false},
      {"FlagLock", "3 threads, visits and sleepers", make<Visits>, false},
  };
}

}  // namespace rayelastic::model
