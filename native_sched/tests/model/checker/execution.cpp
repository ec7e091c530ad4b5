#include "checker/execution.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "checker/atom.hpp"

namespace rayelastic::model {

namespace {

constexpr unsigned kMaxIdleRounds = 8;  // all threads waited for another to do something, and none did

Threads bit(int thread) { return static_cast<Threads>(1U << thread); }

}  // namespace

void fail(const std::string& what) { Execution::the().stop(what); }

ChosenClock::time_point ChosenClock::now() {
  static duration far = duration::zero();
  if (Execution::the().much_time_passes()) far += std::chrono::hours(1);
  return time_point(far);
}

void Execution::Knowledge::join(const Knowledge& other, int locations) {
  for (std::size_t index = 0; index < clock.size(); ++index) clock[index] = std::max(clock[index], other.clock[index]);
  for (std::size_t index = 0; index < static_cast<std::size_t>(locations); ++index) seen[index] = std::max(seen[index], other.seen[index]);
}

Execution& Execution::the() {
  static Execution execution;
  return execution;
}

Execution::Execution() {
  for (int thread = 0; thread < kThreads; ++thread) {
    threads_[static_cast<std::size_t>(thread)].fiber =
        std::make_unique<Fiber>(&Execution::body, reinterpret_cast<void*>(std::intptr_t{thread}));
  }
}

Execution::End Execution::run(std::unique_ptr<Scenario> (*make)(), Choices& choices, bool trace) {
  tracing_ = trace;
  trace_.clear();
  failure_.clear();
  end_ = End::Done;
  location_count_ = 0;
  pointers_.clear();
  races_.clear();
  idle_rounds_ = 0;
  much_time_passed_ = false;
  steps_of_this_ = 0;
  choices_ = &choices;
  running_ = kOutside;
  auto scenario = make();
  scenario_ = scenario.get();
  thread_count_ = scenario->threads();
  // Every thread runs up to its first step, which is then known.
  starting_ = true;
  for (int thread = 0; thread < thread_count_ && end_ == End::Done; ++thread) {
    Thread& fresh = threads_[static_cast<std::size_t>(thread)];
    fresh.state = State::Ready;
    fresh.knows = {};
    fresh.knows.clock[static_cast<std::size_t>(thread)] = 1;
    fresh.put_off = {};
    next_[static_cast<std::size_t>(thread)] = {};
    fresh.fiber->restart();
    running_ = thread;
    Fiber::jump(outside_, *fresh.fiber);
    running_ = kOutside;
  }
  starting_ = false;
  if (end_ == End::Done) {
    const int first = choose_thread();
    if (first != kOutside) {
      running_ = first;
      Fiber::jump(outside_, *self().fiber);
      running_ = kOutside;
    }
  }
  if (end_ == End::Done) scenario->finish();
  if (end_ == End::Failed) (void)scenario.release();  // what a defect has left behind is in no state to be destroyed
  return end_;
}

void Execution::body(void* thread) {
  Execution& execution = the();
  execution.scenario_->run(static_cast<int>(reinterpret_cast<std::intptr_t>(thread)));
  execution.self().state = State::Ended;
  execution.go_on();
  std::abort();
}

// From inside: never returns.
void Execution::stop(const std::string& failure) {
  if (end_ == End::Done) {
    failure_ = failure;
    end_ = End::Failed;
  }
  if (running_ == kOutside) return;
  if (tracing_) trace_ += "  " + std::to_string(running_) + "  " + failure + "\n";
  Fiber& here = *self().fiber;
  running_ = kOutside;
  Fiber::jump(here, outside_);
}

// --- schedule

void Execution::point(Kind kind, int location, bool writes, const Site& site) {
  next_[static_cast<std::size_t>(running_)] = {kind, static_cast<std::uint8_t>(location), writes,
                                               site.in_force == std::memory_order_seq_cst};
  ++steps_;
  if (++steps_of_this_ > kMaxSteps) stop("no end after " + std::to_string(kMaxSteps) + " steps");
  go_on();
}

// Leaves the running thread for whoever is next; returns when it is this one's turn.
void Execution::go_on() {
  Fiber& here = *self().fiber;
  const int before = running_;
  const int next = starting_ ? kOutside : choose_thread();
  if (next == before) return;
  running_ = next;
  Fiber::jump(here, next == kOutside ? outside_ : *self().fiber);
}

int Execution::choose_thread() {
  Threads able = 0;
  Threads relaxed = 0;
  bool asleep = false;
  for (int thread = 0; thread < thread_count_; ++thread) {
    const State state = threads_[static_cast<std::size_t>(thread)].state;
    if (state == State::Ready) able |= bit(thread);
    if (state == State::Relaxed) relaxed |= bit(thread);
    asleep = asleep || state == State::Asleep;
  }
  if (able == 0 && relaxed != 0) {
    if (++idle_rounds_ > kMaxIdleRounds) {
      end_ = End::Failed;
      failure_ = "livelock: every thread waits for another one to do something";
      return kOutside;
    }
    for (int thread = 0; thread < thread_count_; ++thread) {
      if ((relaxed & bit(thread)) != 0) threads_[static_cast<std::size_t>(thread)].state = State::Ready;
    }
    able = relaxed;
  }
  if (able == 0) {
    if (asleep) {
      end_ = End::Failed;
      failure_ = "deadlock: threads sleep for ever:";
      for (int thread = 0; thread < thread_count_; ++thread) {
        const Step& step = next_[static_cast<std::size_t>(thread)];
        if (threads_[static_cast<std::size_t>(thread)].state == State::Asleep)
          failure_.append(" ").append(std::to_string(thread)).append(" on #").append(std::to_string(step.location));
      }
    }
    return kOutside;
  }
  const bool goes_on = running_ != kOutside && (able & bit(running_)) != 0;
  const int chosen = choices_->thread(able, goes_on ? running_ : -1);
  if (chosen != Choices::kRedundant) return chosen;
  end_ = End::Redundant;
  return kOutside;
}

void Execution::done(Kind kind, int location, bool writes, const Site& site) {
  for (int thread = 0; thread < thread_count_; ++thread) {
    State& state = threads_[static_cast<std::size_t>(thread)].state;
    if (thread != running_ && state == State::Relaxed) state = State::Ready;
  }
  if (writes) idle_rounds_ = 0;
  choices_->done(running_, {kind, static_cast<std::uint8_t>(location), writes, site.in_force == std::memory_order_seq_cst}, next_);
}

bool Execution::much_time_passes() {
  const bool passes = !much_time_passed_ && choose(2) == 1;
  much_time_passed_ = much_time_passed_ || passes;
  return passes;
}

void Execution::relax() {
  if (running_ == kOutside) return;
  static const Site site{.kind = Kind::Relax};
  point(Kind::Relax, 0, false, site);
  done(Kind::Relax, 0, false, site);
  self().state = State::Relaxed;
}

// --- memory

int Execution::add_location(std::uint64_t value) {
  if (location_count_ == kLocations) {
    std::fputs("model: more atomics than kLocations\n", stderr);
    std::abort();
  }
  Location& location = locations_[static_cast<std::size_t>(location_count_)];
  location.count = 1;
  if (location.stores.empty()) location.stores.resize(1);
  location.stores[0].value = value;
  location.stores[0].passes = false;
  location.sequential = 0;
  location.asleep = 0;
  return location_count_++;
}

// The oldest store that the running thread may see.
std::size_t Execution::oldest(int location, bool sequential) {
  const auto index = static_cast<std::size_t>(location);
  const std::uint16_t seen = self().knows.seen[index];
  return sequential ? std::max(seen, locations_[index].sequential) : seen;
}

void Execution::see(int location, std::size_t index, std::memory_order order) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  Knowledge& knows = self().knows;
  auto& seen = knows.seen[static_cast<std::size_t>(location)];
  seen = std::max(seen, static_cast<std::uint16_t>(index));
  if (acquires(order) && at.stores[index].passes) knows.join(at.stores[index].passed, location_count_);
  if (order == std::memory_order_seq_cst) at.sequential = std::max(at.sequential, static_cast<std::uint16_t>(index));
}

// follows: what the store that a read-modify-write read passes on, or null.
void Execution::append(int location, std::uint64_t value, std::memory_order order, const Knowledge* follows) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  Knowledge& knows = self().knows;
  if (at.count == at.stores.size()) at.stores.resize(at.count + 1);
  const std::size_t previous = at.count - 1;
  Store& fresh = at.stores[at.count++];
  fresh.value = value;
  fresh.passes = follows != nullptr || releases(order);
  knows.seen[static_cast<std::size_t>(location)] = static_cast<std::uint16_t>(at.count - 1);
  if (follows != nullptr) fresh.passed = at.stores[previous].passed;
  if (releases(order)) {
    if (follows != nullptr)
      fresh.passed.join(knows, location_count_);
    else
      fresh.passed = knows;
    ++knows.clock[static_cast<std::size_t>(running_)];
  }
  if (order == std::memory_order_seq_cst) at.sequential = static_cast<std::uint16_t>(at.count - 1);
}

std::uint64_t Execution::load(int location, Site& site) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  if (running_ == kOutside) return at.newest().value;
  point(Kind::Load, location, false, site);
  const std::size_t floor = oldest(location, site.in_force == std::memory_order_seq_cst);
  // A store doesn't stay unseen for ever: when nobody can do anything but look again, all is seen.
  const unsigned back = idle_rounds_ > 0 ? 0 : choices_->store(static_cast<unsigned>(at.count - floor));
  const std::size_t index = at.count - 1 - back;
  see(location, index, site.in_force);
  if (tracing_) note(site, location, at.stores[index].value, back > 0 ? "  (an old one)" : "");
  done(Kind::Load, location, false, site);
  return at.stores[index].value;
}

void Execution::store(int location, std::uint64_t value, Site& site) {
  if (site.drops(location)) return;
  if (running_ == kOutside) {
    locations_[static_cast<std::size_t>(location)].newest().value = value;
    return;
  }
  PutOff& put_off = self().put_off;
  if (site.put_off && put_off.site == nullptr) {
    put_off = {location, value, &site};
    return;
  }
  point(Kind::Store, location, true, site);
  append(location, value, site.in_force, nullptr);
  if (tracing_) note(site, location, value);
  done(Kind::Store, location, true, site);
  if (put_off.site != nullptr) {
    const PutOff late = put_off;
    point(Kind::Store, late.location, true, *late.site);
    append(late.location, late.value, late.site->in_force, nullptr);
    if (tracing_) note(*late.site, late.location, late.value, "  (put off)");
    done(Kind::Store, late.location, true, *late.site);
    put_off = {};
  }
}

std::uint64_t Execution::exchange(int location, std::uint64_t value, Site& site) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  if (running_ == kOutside) return std::exchange(at.newest().value, value);
  point(Kind::Exchange, location, true, site);
  const std::uint64_t before = at.newest().value;
  see(location, at.count - 1, site.in_force);
  if (!site.drops(location)) append(location, value, site.in_force, at.newest().passes ? &at.newest().passed : nullptr);
  if (tracing_) note(site, location, value, (" was " + std::to_string(before)).c_str());
  done(Kind::Exchange, location, true, site);
  return before;
}

std::uint64_t Execution::add(int location, std::uint64_t amount, std::uint64_t mask, Site& site) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  const std::uint64_t outside = (at.newest().value + amount) & mask;
  if (running_ == kOutside) return std::exchange(at.newest().value, outside);
  point(Kind::Add, location, true, site);
  const std::uint64_t before = at.newest().value;
  see(location, at.count - 1, site.in_force);
  if (!site.drops(location)) append(location, (before + amount) & mask, site.in_force, at.newest().passes ? &at.newest().passed : nullptr);
  if (tracing_) note(site, location, (before + amount) & mask);
  done(Kind::Add, location, true, site);
  return before;
}

bool Execution::compare_exchange(int location, std::uint64_t& expected, std::uint64_t desired, Site& site) {
  Location& at = locations_[static_cast<std::size_t>(location)];
  if (running_ == kOutside) {
    const std::uint64_t wanted = expected;
    expected = at.newest().value;
    if (expected == wanted) at.newest().value = desired;
    return expected == wanted;
  }
  point(Kind::Compare, location, true, site);
  // It sees the newest store, or an older one that makes it fail.
  const std::size_t floor = oldest(location, site.failure_in_force == std::memory_order_seq_cst);
  unsigned old = 0;
  for (std::size_t index = floor; index + 1 < at.count; ++index) old += at.stores[index].value != expected ? 1 : 0;
  const unsigned chosen = choices_->store(1 + old);
  std::size_t index = at.count - 1;
  for (unsigned left = chosen; left > 0;) {
    if (at.stores[--index].value != expected) --left;
  }
  const std::uint64_t found = at.stores[index].value;
  const bool ok = found == expected;
  see(location, index, ok ? site.in_force : site.failure_in_force);
  if (ok && !site.drops(location)) append(location, desired, site.in_force, at.newest().passes ? &at.newest().passed : nullptr);
  if (tracing_) note(site, location, ok ? desired : found, ok ? "" : chosen > 0 ? "  (failed, an old one)" : "  (failed)");
  done(Kind::Compare, location, ok, site);
  expected = found;
  return ok;
}

void Execution::wait(int location, std::uint64_t old, Site& site) {
  if (running_ == kOutside) return;
  Location& at = locations_[static_cast<std::size_t>(location)];
  for (;;) {
    point(Kind::Wait, location, true, site);
    const std::uint64_t found = at.newest().value;
    see(location, at.count - 1, site.in_force);
    if (tracing_) note(site, location, found, found == old ? "  (sleeps)" : "");
    done(Kind::Wait, location, true, site);
    if (found != old) return;
    self().state = State::Asleep;
    at.asleep |= bit(running_);
  }
}

void Execution::notify(int location, bool all, Site& site) {
  if (running_ == kOutside || site.drops(location)) return;
  Location& at = locations_[static_cast<std::size_t>(location)];
  point(Kind::Notify, location, true, site);
  Threads woken = at.asleep;
  if (!all && woken != 0) {
    unsigned left = choices_->any(static_cast<unsigned>(std::popcount(woken)));
    while (left-- > 0) woken &= static_cast<Threads>(woken - 1);
    woken &= static_cast<Threads>(-woken);
  }
  at.asleep &= static_cast<Threads>(~woken);
  for (int thread = 0; thread < thread_count_; ++thread) {
    if ((woken & bit(thread)) != 0) threads_[static_cast<std::size_t>(thread)].state = State::Ready;
  }
  if (tracing_) note(site, location, at.newest().value);
  done(Kind::Notify, location, true, site);
}

std::uint64_t Execution::number_of(void* pointer) {
  if (pointer == nullptr) return 0;
  const auto found = std::find(pointers_.begin(), pointers_.end(), pointer);
  const auto number = static_cast<std::uint64_t>(found - pointers_.begin()) + 1;
  if (found == pointers_.end()) pointers_.push_back(pointer);
  return number;
}

void Execution::plain(const void* address, std::size_t bytes, bool write) {
  if (running_ == kOutside) return;
  const auto race = races_.touch(address, bytes, write, running_, self().knows.clock);
  if (!race) return;
  stop("data race: thread " + std::to_string(running_) + (write ? " writes" : " reads") + " what thread " + std::to_string(race->other) +
       (race->other_wrote ? " wrote" : " read") + ", word " + std::to_string(race->word));
}

void Execution::note(const Site& site, int location, std::uint64_t value, const char* extra) {
  trace_ +=
      "  " + std::to_string(running_) + "  " + site.text() + " #" + std::to_string(location) + " = " + std::to_string(value) + extra + "\n";
}

}  // namespace rayelastic::model
