#include "engine/engine_threads.hpp"

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

bool is_waiting(const Worker& worker) {
  const std::uint32_t doing = worker.own().doing.load(std::memory_order_relaxed);
  return doing == EngineThread::kStarved || doing == EngineThread::kBlocked;
}

}  // namespace

void EngineThreads::set_count(unsigned count) {
  const Lock guard(mutex_);
  wanted_ = bounded(count);
  adjust();
}

void EngineThreads::adjust() {
  if (engine_.is_stopping()) return;  // halt() has woken everybody, for good
  const bool starving = somebody_starves();
  unsigned able = 0;
  for (Worker& worker : workers_) {
    if (starving && is_waiting(worker)) continue;  // it goes on by itself, and then we come here again
    if (able < wanted_ && !worker.is_stuck()) {
      worker.resume();
      ++able;
    } else {
      worker.suspend();
    }
  }
  RE_CHECK(able <= wanted_);
  for (; able < wanted_; ++able) workers_.emplace_back(engine_, workers_.size());
}

void EngineThreads::start_dedicated(Port& port) {
  const Lock guard(mutex_);
  if (std::ranges::find(dedicated_, &port) != dedicated_.end()) return;
  operator_threads_.emplace_back(engine_, port);
  dedicated_.push_back(&port);
  RE_CHECK(dedicated_.size() <= operator_threads_.size());
}

void EngineThreads::start_source(OperatorContext& source) {
  const Lock guard(mutex_);
  RE_CHECK(source.op().has_any(REL_SOURCE));
  operator_threads_.emplace_back(engine_, source);
}

// The period varies by a half, so that it can't keep in step with what it looks at.
void EngineThreads::start_profiler(std::function<bool(std::chrono::nanoseconds)> over_within, std::function<void(const Profile&)> looked) {
  profiling_ = std::thread([this, over_within = std::move(over_within), looked = std::move(looked)] {
    std::minstd_rand random;
    std::uniform_real_distribution<double> share(0.5, 1.5);
    const std::chrono::duration<double> period = engine_.options.profile_period;
    while (!over_within(std::chrono::duration_cast<std::chrono::nanoseconds>(period * share(random)))) tick(looked);
  });
}

// Looks, and replaces workers that got stuck until they come back.
void EngineThreads::tick(const std::function<void(const Profile&)>& looked) {
  const Lock guard(mutex_);
  profiler_.begin(Profiler::Clock::now());
  for (Worker& worker : workers_) {
    profiler_.see(worker.own(), true);
    if (worker.own().watch.paused) engine_.publish_next(worker.own());  // a dear tuple keeps it from its next port
  }
  for (OperatorThread& thread : operator_threads_) profiler_.see(thread.own(), false);
  looked(profiler_.profile());
  // A thread may have come to wait for one that is stuck since the last look.
  if (!profiler_.end() && std::ranges::none_of(workers_, &Worker::is_stuck)) return;
  try {
    adjust();
  } catch (const std::system_error&) {  // no more threads to be had; tell() says that some are stuck
  }
}

// What runs nowhere is what is missing: records of another port (a stage is full), or what an operator waits for that never returns.
bool EngineThreads::somebody_starves() const {
  const auto starves = [](const auto& thread) { return thread.own().doing.load(std::memory_order_relaxed) == EngineThread::kStarved; };
  return std::ranges::any_of(workers_, [&](const Worker& worker) { return worker.is_stuck() || starves(worker); }) ||
         std::ranges::any_of(operator_threads_, starves);
}

void EngineThreads::replace_waiting() {
  bool none = false;
  {
    const Lock guard(mutex_);
    try {
      adjust();
    } catch (const std::system_error&) {  // no more threads to be had
      none = able() == 0;
    }
  }
  if (none)
    engine_.listener.failed(
        {.operator_name = "scheduler",
         .message = "all scheduler threads wait at conjunctive operators or loops, and the system has no more threads"});
}

void EngineThreads::halt() {
  const Lock guard(mutex_);
  for (Worker& worker : workers_) worker.resume();
  for (OperatorThread& thread : operator_threads_) thread.wake();
  engine_.idle.interrupt();
}

void EngineThreads::join() {
  for (Worker& worker : workers_) worker.join();
  for (OperatorThread& thread : operator_threads_) thread.join();
  if (profiling_.joinable()) profiling_.join();
}

unsigned EngineThreads::bounded(unsigned count) const { return std::clamp(count, 1U, std::max(engine_.options.max_threads, 1U)); }

unsigned EngineThreads::able() const {
  const bool starving = somebody_starves();
  return static_cast<unsigned>(std::ranges::count_if(workers_, [starving](const Worker& worker) {
    return !worker.is_parked() && !worker.is_stuck() && !(starving && is_waiting(worker));
  }));
}

bool EngineThreads::has(unsigned count) const {
  const Lock guard(mutex_);
  return able() == bounded(count);
}

void EngineThreads::tell(InForce& answer) const {
  const Lock guard(mutex_);
  RE_CHECK(wanted_ > 0 && able() <= workers_.size());
  answer.thread_count = able();
  for (const Worker& worker : workers_) {
    answer.stuck += worker.is_stuck() ? 1 : 0;
    answer.unsuspended += worker.is_suspended() && !worker.is_parked() ? 1 : 0;
  }
}

void EngineThreads::tell(Sample& sample) const {
  const Lock guard(mutex_);
  const Profile& profile = profiler_.profile();
  RE_CHECK(profile.operator_cpu.size() == sample.operators.size());
  for (std::size_t id = 0; id < sample.operators.size(); ++id) {
    sample.operators[id].cpu_ns = profile.operator_cpu[id];
    sample.operators[id].time_ns = profile.operator_time[id];
    sample.operators[id].waited_ns = profile.operator_waited[id];
    sample.operators[id].blocked_ns = profile.operator_blocked[id];
  }
  sample.engine_cpu_ns = profile.engine_cpu;
  sample.scheduler_ns = profile.scheduler_time;
  sample.idle_ns = profile.idle_time;
  sample.thread_ns = profile.thread_time;
  sample.blocked_ns = profile.blocked_time;
  sample.ticks = profile.ticks;
  for (const Worker& worker : workers_) sample.stuck += worker.is_stuck() ? 1 : 0;
  sample.thread_count = able();
  sample.threads_idle = std::min(engine_.idle.waiting(), sample.thread_count);
  const auto add = [&sample](const EngineThread& thread) {
    sample.token_wait_ns += thread.token_wait_ns.get();
    sample.token_refusals += thread.token_refusals.get();
    sample.reschedules += thread.reschedules.get();
    sample.sleeps += thread.sleeps.get();
  };
  for (const Worker& worker : workers_) add(worker.own());
  for (const OperatorThread& thread : operator_threads_) add(thread.own());
}

}  // namespace rayelastic
