// FreePorts: every item is had by one at a time, and comes again. FreePorts with Notifier: nobody sleeps while there is work.
#include <array>
#include <cstdint>

#include "checker/atom.hpp"
#include "rayelastic/queue/free_ports.hpp"
#include "rayelastic/queue/notifier.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

namespace {

struct alignas(8) Item {
  int visits = 0;  // plain: whoever has popped the item owns it
  void visit() {
    Machine<Atom>::writes(&visits, sizeof visits);
    ++visits;
  }
};

using List = FreePorts<Item, Atom>;

// Items go round: pushed, popped, visited, pushed again, by everybody.
template <int kThreadCount, int kSteps>
class RoundAndRound final : public Scenario {
 public:
  RoundAndRound() : list_(2) {}
  [[nodiscard]] int threads() const override { return kThreadCount; }
  void run(int thread) override {
    if (thread < 2) list_.push(&items_[static_cast<std::size_t>(thread)]);
    for (int step = 0; step < kSteps; ++step) {
      Item* item = list_.pop();
      if (item == nullptr) continue;
      item->visit();
      list_.push(item);
    }
  }
  void finish() override {
    require(!list_.looks_empty(), "a full list looks empty");
    Item* first = list_.pop();
    Item* second = list_.pop();
    require(first != nullptr && second != nullptr && first != second, "an item is lost or doubled");
    require(list_.pop() == nullptr && list_.looks_empty(), "an empty list doesn't look so");
  }

 private:
  List list_;
  std::array<Item, 2> items_;
};

// First in, first out: one pushes four times into room for two, one pops.
class Order final : public Scenario {
 public:
  Order() : list_(2) {}
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      for (Item& item : items_) {
        item.visit();
        list_.push(&item);
      }
    } else {
      for (int tries = 0; tries < 4; ++tries) {
        Item* item = list_.pop();
        if (item == nullptr) continue;
        require(item == &items_[next_++], "an item is out of order");
        item->visit();
      }
      for (; next_ < 2;) {
        Item* item = list_.pop();
        if (item == nullptr) {
          Machine<Atom>::relax();
          continue;
        }
        require(item == &items_[next_++], "an item is out of order");
      }
    }
  }

 private:
  List list_;
  std::array<Item, 4> items_;
  std::size_t next_ = 0;
};

// Worker::wait_for_work and Engine::list: pushers notify, workers look twice and sleep. Ends when every item was popped.
template <int kWorkers, int kItems>
class SleepAndWake final : public Scenario {
 public:
  SleepAndWake() : list_(kItems) {}
  [[nodiscard]] int threads() const override { return kWorkers + 1; }
  void run(int thread) override {
    if (thread == 0) {
      for (Item& item : items_) {
        item.visit();
        list_.push(&item);
        (void)idle_.notify_one();
      }
    } else {
      while (left_.load(std::memory_order_seq_cst) > 0) {
        if (Item* item = list_.pop(); item != nullptr) {
          item->visit();
          if (left_.fetch_add(-1, std::memory_order_seq_cst) == 1) idle_.notify_all();
        } else {
          wait_for_work();
        }
      }
    }
  }
  void finish() override {
    for (const Item& item : items_) require(item.visits == 2, "an item isn't visited, or twice");
    require(idle_.waiting() == 0 && list_.looks_empty(), "somebody still waits, or something is still there");
  }

 private:
  void wait_for_work() {
    if (!list_.looks_empty()) {
      Machine<Atom>::relax();
      return;
    }
    idle_.prepare();
    const bool look = fault != Fault::WaiterWithoutSecondLook;
    if (look && (!list_.looks_empty() || left_.load(std::memory_order_seq_cst) == 0)) {
      idle_.cancel();
    } else {
      idle_.wait();
    }
  }

  List list_;
  Notifier<Atom> idle_;
  std::array<Item, kItems> items_;
  Atom<int> left_{kItems};
};

// The notifier alone, around one seq_cst word: a letter is posted, then somebody is told.
template <int kPosters, int kLettersEach>
class Letters final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return kPosters + 1; }
  void run(int thread) override {
    if (thread < kPosters) {
      for (int letter = 0; letter < kLettersEach; ++letter) {
        posted_.fetch_add(1, std::memory_order_seq_cst);
        (void)idle_.notify_one();
      }
    } else {
      for (int read = 0; read < kPosters * kLettersEach;) {
        if (const int posted = posted_.load(std::memory_order_seq_cst); posted > read) {
          read = posted;
          continue;
        }
        idle_.prepare();
        if (posted_.load(std::memory_order_seq_cst) > read) {
          idle_.cancel();
        } else {
          idle_.wait();
        }
      }
    }
  }
  void finish() override { require(idle_.waiting() == 0, "somebody still waits"); }

 private:
  Notifier<Atom> idle_;
  Atom<int> posted_{0};
};

// Whoever takes a permit has seen what was done before it was posted.
class WakeUp final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      while (idle_.waiting() == 0) Machine<Atom>::relax();
      item_.visit();
      require(idle_.notify_one(), "a waiter isn't there");
    } else {
      idle_.prepare();
      idle_.wait();
      item_.visit();
    }
  }

 private:
  Notifier<Atom> idle_;
  Item item_;
};

// Whoever waits sees what was asked before an interrupt, and leaves.
class Interrupt final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      asked_.store(true, std::memory_order_relaxed);
      idle_.interrupt();
    } else {
      idle_.prepare();
      idle_.wait([&] { return asked_.load(std::memory_order_relaxed); });
    }
  }
  void finish() override { require(idle_.waiting() == 0, "somebody still waits"); }

 private:
  Notifier<Atom> idle_;
  Atom<bool> asked_{false};
};

// Two wait; one permit and one interrupt, which one of them follows, passing a permit on. Both leave.
class InterruptAmongTwo final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 3; }
  void run(int thread) override {
    if (thread == 0) {
      while (idle_.waiting() < 2) Machine<Atom>::relax();
      (void)idle_.notify_one();
      asked_.store(true, std::memory_order_relaxed);
      idle_.interrupt();
    } else {
      idle_.prepare();
      bool left = false;
      idle_.wait([&] { return left = thread == 1 && asked_.load(std::memory_order_relaxed); });
      if (thread == 1 && !left) (void)idle_.notify_one();
    }
  }
  void finish() override { require(idle_.waiting() == 0, "somebody still waits"); }

 private:
  Notifier<Atom> idle_;
  Atom<bool> asked_{false};
};

template <class Kind>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<Case> list_cases() {
  return {
      {"FreePorts", "2 items go round", make<RoundAndRound<2, 1>>, true, {.stale = 1}},
      {"FreePorts", "4 pushes, 4 pops in order", make<Order>, true, {.preemptions = 3, .stale = 1}},
      {"FreePorts", "3 threads, 2 items go round", make<RoundAndRound<3, 3>>, false},
      {"Notifier", "a wake-up", make<WakeUp>},
      {"Notifier", "an interrupt", make<Interrupt>},
      {"Notifier", "a permit and an interrupt for 2", make<InterruptAmongTwo>, true, {.preemptions = 3, .stale = 2}},
      {"Notifier", "2 letters", make<Letters<1, 2>>},
      {"Notifier", "2 posters, 2 letters", make<Letters<2, 1>>, true, {.preemptions = 3, .stale = 2}},
      {"Notifier", "2 posters, 4 letters", make<Letters<2, 2>>, false},
      {"Notifier", "1 worker, 2 items", make<SleepAndWake<1, 2>>, true, {.preemptions = 3, .stale = 2}},
      {"Notifier", "2 workers, 2 items", make<SleepAndWake<2, 2>>, false},
  };
}

}  // namespace rayelastic::model
