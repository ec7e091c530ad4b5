#include "engine/worker.hpp"

#include <pthread.h>
#include <sched.h>

#include "engine/context/port.hpp"

namespace rayelastic {

namespace {

constexpr int kIdleSpins = 64;

// A thread that can't be bound to its CPU (it isn't ours to use, or there is no such) runs anywhere.
void bind(const std::vector<int>& cpus, std::size_t index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpus[index % cpus.size()]), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

Worker::Worker(Engine& engine, std::size_t index) : engine_(engine) {
  own_.keeps_next = true;
  thread_ = std::thread([this, index] {
    if (!engine_.options.cpus.empty()) bind(engine_.options.cpus, index);
    run_engine_thread(engine_, own_, [this] { run(); });
  });
}

void Worker::run() {
  while (!engine_.stopping.load(std::memory_order_relaxed)) {
    own_.visits.add(1);
    if (own_.suspended.load(std::memory_order_relaxed)) {
      park();
    } else if (Port* port = engine_.free_ports.pop(); port != nullptr) {
      port->visit();
      Port::follow(own_);
    } else {
      wait_for_work();
    }
  }
}

void Worker::wait_for_work() {
  const Doing idle(own_, EngineThread::kIdle);
  for (int spin = 0; spin < kIdleSpins; ++spin) {
    if (!engine_.free_ports.looks_empty()) {
      if (spin > 0) return;
      std::this_thread::yield();  // a pusher is in the middle of its push
      return;
    }
    cpu_relax();
  }
  engine_.idle.prepare();
  if (!engine_.free_ports.looks_empty() || engine_.stopping.load(std::memory_order_seq_cst) || is_suspended()) {
    engine_.idle.cancel();
  } else {
    engine_.idle.wait([this] { return is_suspended() || engine_.stopping.load(std::memory_order_seq_cst); });
  }
}

// A notification that it took may have been meant for work that is still there: passed on first.
void Worker::park() {
  if (!engine_.free_ports.looks_empty()) engine_.idle.notify_one();
  const Doing suspended(own_, EngineThread::kSuspended);
  own_.parked.store(true, std::memory_order_release);
  engine_.listener.changed();
  while (is_suspended() && !engine_.stopping.load(std::memory_order_seq_cst)) own_.suspended.wait(true, std::memory_order_relaxed);
  own_.parked.store(false, std::memory_order_release);
  engine_.listener.changed();
}

void Worker::suspend() noexcept {
  own_.suspended.store(true, std::memory_order_seq_cst);
  engine_.idle.interrupt();  // if it sleeps for want of work, it shall park
}

void Worker::resume() noexcept {
  own_.suspended.store(false, std::memory_order_seq_cst);
  own_.suspended.notify_all();
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace rayelastic
