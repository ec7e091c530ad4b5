#include "engine/errands.hpp"

#include <algorithm>

#include "engine/context/port.hpp"
#include "engine/worker.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

void Errands::add(Port& port) {
  const Lock guard(mutex_);
  if (engine_.is_stopping() || std::ranges::find(ports_, &port) != ports_.end()) return;
  ports_.push_back(&port);
  if (!thread_.joinable()) thread_ = std::thread([this] { run_engine_thread(engine_, own_, [this] { run(); }); });
  changed_.notify_one();
}

void Errands::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() REL_HELD(mutex_) { return !ports_.empty() || engine_.is_stopping(); });
    if (engine_.is_stopping()) return;
    RE_CHECK(ports_.front() != nullptr);
    Port& port = *ports_.front();
    ports_.pop_front();
    lock.unlock();
    if (!port.accept(Mark{MarkKind::Command, 0})) return;
    engine_.publish_next(own_);
    lock.lock();
  }
}

void Errands::halt() noexcept {
  {
    const Lock guard(mutex_);
  }  // whoever waits has seen `stopping`, or hears this
  changed_.notify_all();
}

void Errands::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace rayelastic
