#include "engine/control/profiler.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;

// Zero if the thread has ended meanwhile.
std::uint64_t cpu_time(const EngineThread& thread) {
  timespec used{};
  if (!thread.alive.load(std::memory_order_acquire) || clock_gettime(thread.cpu_clock, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * kNanoseconds + static_cast<std::uint64_t>(used.tv_nsec);
}

// Whether a thread uses a CPU now. One that has been woken and waits for its CPU doesn't: a halted one of a virtual machine takes up to
// a millisecond to begin. Where there is one CPU alone, this thread has it, and nobody knows.
bool is_running(const EngineThread& thread, std::uint64_t cpu) {
  static const bool one_cpu = std::thread::hardware_concurrency() == 1;
  return one_cpu || cpu_time(thread) > cpu;
}

// Whether a thread sleeps, whatever for: its file says S or D behind its name in brackets, of 15 bytes at most. Not if nobody knows.
// Some microseconds.
bool is_asleep(EngineThread& thread) {
  constexpr int kUnopened = -1;
  if (!thread.alive.load(std::memory_order_acquire)) return true;
  int& file = thread.watch.state_file;
  if (file == kUnopened) file = open(("/proc/self/task/" + std::to_string(thread.tid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, 64> read{};
  const ssize_t count = file < 0 ? 0 : pread(file, read.data(), read.size(), 0);
  const std::string_view told(read.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  const std::size_t name_end = told.rfind(") ");
  return name_end != std::string_view::npos && name_end + 2 < told.size() && (told[name_end + 2] == 'S' || told[name_end + 2] == 'D');
}

}  // namespace

Profiler::Profiler(std::size_t operators, std::chrono::nanoseconds stuck_after)
    : stuck_after_ns_(static_cast<std::uint64_t>(stuck_after.count())), last_(Clock::now()) {
  profile_.operator_cpu.resize(operators, 0);
  profile_.operator_time.resize(operators, 0);
  profile_.operator_waited.resize(operators, 0);
  profile_.operator_blocked.resize(operators, 0);
}

void Profiler::begin(Clock::time_point now) {
  elapsed_ns_ = static_cast<std::uint64_t>(std::max<std::int64_t>(std::chrono::nanoseconds(now - last_).count(), 0));
  now_ns_ = static_cast<std::uint64_t>(std::chrono::nanoseconds(now.time_since_epoch()).count());
  last_ = now;
  changed_ = false;
  ++profile_.ticks;
}

void Profiler::see(EngineThread& thread, bool of_scheduler) {
  const std::uint32_t doing = thread.doing.load(std::memory_order_relaxed);
  const std::uint64_t cpu = cpu_time(thread);
  // A thread can't have used more than passed, but for clocks that differ a little and a thread seen for the first time.
  const std::uint64_t used = std::min(cpu - std::min(cpu, thread.watch.cpu_ns), elapsed_ns_);
  if (cpu != 0) thread.watch.cpu_ns = cpu;
  const bool in_operator = doing < profile_.operator_cpu.size();
  RE_CHECK(used <= elapsed_ns_);
  thread.watch.unplaced_ns += used;
  const bool ran_on = used >= elapsed_ns_ - elapsed_ns_ / 8;
  const bool asleep = !ran_on && (used > 0 || in_operator) && is_asleep(thread);
  const bool runs = ran_on || (!asleep && (in_operator || is_running(thread, cpu)));
  if (used > 0 && runs) {
    (in_operator ? profile_.operator_cpu[doing] : profile_.engine_cpu) += thread.watch.unplaced_ns;
    thread.watch.unplaced_ns = 0;
  }
  if (in_operator) profile_.operator_time[doing] += elapsed_ns_;
  if (in_operator && asleep) profile_.operator_waited[doing] += elapsed_ns_;
  if (doing != EngineThread::kSuspended) {
    profile_.thread_time += elapsed_ns_;
    if (of_scheduler) profile_.scheduler_time += elapsed_ns_;
    if (of_scheduler && doing == EngineThread::kIdle) profile_.idle_time += elapsed_ns_;
    if (doing == EngineThread::kBlocked || doing == EngineThread::kStarved) {
      profile_.blocked_time += elapsed_ns_;
      const std::uint32_t waiting = thread.waits_in.load(std::memory_order_relaxed);
      if (waiting < profile_.operator_blocked.size()) profile_.operator_blocked[waiting] += elapsed_ns_;
    }
    if (doing == EngineThread::kToken) profile_.token_time += elapsed_ns_;
  }
  if (!of_scheduler) return;
  const std::uint64_t visits = thread.visits.get();
  thread.watch.paused = visits == thread.watch.visits;
  if (visits != thread.watch.visits || !in_operator) {
    thread.watch.visits = visits;
    thread.watch.stuck_ns = now_ns_;
  }
  const bool stuck = in_operator && now_ns_ - thread.watch.stuck_ns >= stuck_after_ns_;
  changed_ = changed_ || thread.watch.stuck.exchange(stuck, std::memory_order_relaxed) != stuck;
}

bool Profiler::end() { return changed_; }

}  // namespace rayelastic
