#include "engine/control/epochs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/worker.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::microseconds kLook{200};  // between two looks: marks are rare, so those who are held needn't tell anybody

}  // namespace

bool Epochs::send(std::vector<OperatorId> sources, std::int64_t epoch) {
  const Lock guard(mutex_);
  if (sending_.load(std::memory_order_acquire)) return false;
  if (thread_.joinable()) thread_.join();
  if (engine_.stopping.load(std::memory_order_seq_cst)) return true;
  RE_CHECK(epoch > 0 && !thread_.joinable());
  sending_.store(true, std::memory_order_relaxed);
  thread_ = std::thread([this, sources = std::move(sources), epoch] {
    run_engine_thread(engine_, own_, [&] { run(sources, epoch); });
    sending_.store(false, std::memory_order_release);
  });
  return true;
}

bool Epochs::sent(std::chrono::nanoseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (sending_.load(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

void Epochs::run(const std::vector<OperatorId>& sources, std::int64_t epoch) {
  for (const OperatorId id : sources) {
    RE_CHECK(id < contexts_.size() && contexts_[id]->op().has_any(REL_SOURCE));
    OperatorContext& source = *contexts_[id];
    if (engine_.abandoned.load(std::memory_order_seq_cst) < epoch && !engine_.is_stopping() && source.safe_point().is_held())
      (void)source.send_epoch(epoch);
    source.safe_point().release();
  }
  engine_.publish_next(own_);
}

std::vector<OperatorId> Epochs::wait(const std::vector<OperatorId>& ids, std::int64_t epoch, std::chrono::nanoseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<OperatorId> there;
  for (;;) {
    std::ranges::copy_if(ids, std::back_inserter(there),
                         [&](OperatorId id) { return contexts_[id]->barrier_hold().is_there(epoch) || contexts_[id]->is_final(); });
    RE_CHECK(there.size() <= ids.size());
    const bool over = engine_.stopping.load(std::memory_order_seq_cst) || std::chrono::steady_clock::now() > deadline;
    if (!there.empty() || over) return there;
    std::this_thread::sleep_for(kLook);
  }
}

void Epochs::abandon(std::int64_t epoch) noexcept {
  std::int64_t before = engine_.abandoned.load(std::memory_order_seq_cst);
  while (before < epoch && !engine_.abandoned.compare_exchange_weak(before, epoch, std::memory_order_seq_cst)) {
  }
  RE_CHECK(engine_.abandoned.load(std::memory_order_seq_cst) >= epoch);
  for (const auto& context : contexts_) context->give_epochs_up(epoch);
}

void Epochs::halt() noexcept {
  for (const auto& context : contexts_) context->give_epochs_up(INT64_MAX);
}

void Epochs::join() {
  const Lock guard(mutex_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace rayelastic
