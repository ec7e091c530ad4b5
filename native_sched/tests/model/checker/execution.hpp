// One execution of a scenario: its threads are fibers, every access to an atomic is a step, and between any two steps Choices decides
// who goes on. Memory is modelled, not used: a location is the row of all its stores.
//
// The memory model (C++20 without fences and consume):
//   The stores of a location are ordered as they are executed. A load sees any store that is not older than the newest one that happens
//     before it, or that was seen by something that happens before it (coherence). A read-modify-write sees the newest.
//   What a thread knows (who happens before it, what it may still see) goes with a release store, and with the read-modify-writes that
//     follow it, to whoever acquires it.
//   seq_cst accesses have the order in which they are executed: one sees nothing older than an earlier one of them saw or stored.
//   wait() compares with the newest store and falls asleep in one step, as a futex does; only a later notify wakes it.
// Not modelled: stores of different threads that race for their place in a location's order (each thread's store is the newest when
//   it is executed), loads that see a later store (out-of-thin-air), spurious failures of compare_exchange_weak.
// Plain memory: reads and writes that are reported are checked against happens-before (vector clocks): a data race is a failure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checker/choices.hpp"
#include "checker/fiber.hpp"
#include "checker/race_detector.hpp"
#include "checker/site.hpp"

namespace rayelastic::model {

inline constexpr int kLocations = 64;
inline constexpr unsigned kMaxSteps = 4000;  // of an execution; one that goes on is stuck

// What is run; made anew for every execution. What a thread leaves on its stack may never be destroyed: own things here.
class Scenario {
 public:
  virtual ~Scenario() = default;
  [[nodiscard]] virtual int threads() const = 0;
  virtual void run(int thread) = 0;
  virtual void finish() {}  // after all threads, before the destructor
};

// Ends the execution, which has shown a defect.
void fail(const std::string& what);
inline void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

class Execution {
 public:
  // The only one; used again and again.
  [[nodiscard]] static Execution& the();

  enum class End : std::uint8_t { Done, Failed, Redundant };
  // `trace`: keep the steps as text.
  [[nodiscard]] End run(std::unique_ptr<Scenario> (*make)(), Choices& choices, bool trace = false);
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] const std::string& trace() const noexcept { return trace_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  // --- for atoms
  [[nodiscard]] int add_location(std::uint64_t value);
  [[nodiscard]] std::uint64_t load(int location, Site& site);
  void store(int location, std::uint64_t value, Site& site);
  [[nodiscard]] std::uint64_t exchange(int location, std::uint64_t value, Site& site);
  [[nodiscard]] std::uint64_t add(int location, std::uint64_t amount, std::uint64_t mask, Site& site);
  [[nodiscard]] bool compare_exchange(int location, std::uint64_t& expected, std::uint64_t desired, Site& site);
  void wait(int location, std::uint64_t old, Site& site);
  void notify(int location, bool all, Site& site);

  // A pointer as a value of an atom: its number among those of this execution, so that an execution can be replayed at other addresses.
  [[nodiscard]] std::uint64_t number_of(void* pointer);
  [[nodiscard]] void* numbered(std::uint64_t number) const { return number == 0 ? nullptr : pointers_[number - 1]; }

  // --- for everybody
  void relax();
  [[nodiscard]] bool much_time_passes();  // a choice, once in an execution
  [[nodiscard]] unsigned choose(unsigned count) { return running_ == kOutside ? 0 : choices_->any(count); }
  [[nodiscard]] int running() const noexcept { return running_; }
  void plain(const void* address, std::size_t bytes, bool write);
  void stop(const std::string& failure);

 private:
  static constexpr int kOutside = -1;

  struct Knowledge {
    Clock clock{};                                 // happens-before
    std::array<std::uint16_t, kLocations> seen{};  // by location, the oldest store that may still be seen
    void join(const Knowledge& other, int locations);
  };
  struct Store {
    std::uint64_t value = 0;
    bool passes = false;
    Knowledge passed;
  };
  struct Location {
    std::vector<Store> stores;
    std::size_t count = 0;  // of stores in use
    std::uint16_t sequential = 0;
    Threads asleep = 0;
    [[nodiscard]] Store& newest() { return stores[count - 1]; }
  };
  enum class State : std::uint8_t { Ready, Relaxed, Asleep, Ended };
  struct PutOff {
    int location = 0;
    std::uint64_t value = 0;
    Site* site = nullptr;
  };
  struct Thread {
    State state = State::Ended;
    Knowledge knows;
    PutOff put_off;
    std::unique_ptr<Fiber> fiber;
  };

  Execution();
  static void body(void* thread);
  [[nodiscard]] Thread& self() { return threads_[static_cast<std::size_t>(running_)]; }
  void point(Kind kind, int location, bool writes, const Site& site);
  void done(Kind kind, int location, bool writes, const Site& site);
  void go_on();
  [[nodiscard]] int choose_thread();
  void append(int location, std::uint64_t value, std::memory_order order, const Knowledge* follows);
  void see(int location, std::size_t index, std::memory_order order);
  [[nodiscard]] std::size_t oldest(int location, bool sequential);
  void note(const Site& site, int location, std::uint64_t value, const char* extra = "");

  std::array<Location, kLocations> locations_;
  int location_count_ = 0;
  std::array<Thread, kThreads> threads_;
  int thread_count_ = 0;
  Steps next_{};
  std::vector<void*> pointers_;
  RaceDetector races_;
  Fiber outside_;
  int running_ = kOutside;
  bool starting_ = false;
  Choices* choices_ = nullptr;
  Scenario* scenario_ = nullptr;
  End end_ = End::Done;
  unsigned idle_rounds_ = 0;
  bool much_time_passed_ = false;
  unsigned steps_of_this_ = 0;
  std::uint64_t steps_ = 0;
  std::string failure_;
  bool tracing_ = false;
  std::string trace_;
};

}  // namespace rayelastic::model
