#include "engine/control/safe_points.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::microseconds kLook{50};  // between two looks: holding is rare, so those who are held needn't tell anybody
constexpr OperatorId kNone = SIZE_MAX;

// False: `deadline` has come, or the engine stops.
template <class Condition>
bool wait_until(std::chrono::steady_clock::time_point deadline, const Engine& engine, Condition condition) {
  while (!condition()) {
    if (engine.stopping.load(std::memory_order_seq_cst) || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace

SafePoints::SafePoints(const Contexts& contexts, const Ports& ports, const std::vector<Edge>& edges, std::vector<OperatorId> order)
    : contexts_(contexts), ports_(ports), edges_(edges), order_(std::move(order)) {
  RE_CHECK(order_.size() == contexts_.size() && ports_.size() == contexts_.size());
}

std::string SafePoints::hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience, const Engine& engine) {
  RE_CHECK(std::ranges::all_of(ids, [this](OperatorId id) { return id < contexts_.size(); }));
  const Clock::time_point deadline = Clock::now() + patience;
  Some wanted(contexts_.size(), false);
  for (const OperatorId id : ids) wanted[id] = !is_held(id);
  // Roots are fed by nobody who is held or is about to be. Drained are those fed by nobody else.
  Some root = wanted;
  Some drained = wanted;
  for (OperatorId id = 0; id < contexts_.size(); ++id) drained[id] = drained[id] && !ports_[id].empty();
  for (const Edge& edge : edges_) {
    if (edge.feedback) continue;
    if (wanted[edge.from] || is_held(edge.from))
      root[edge.to] = false;
    else
      drained[edge.to] = false;
  }
  std::vector<OperatorId> done;
  const auto give_up = [&](OperatorId at, const std::string& why) {
    for (const OperatorId id : done) contexts_[id]->safe_point().release();
    RE_ASSERT(std::ranges::none_of(done, [this](OperatorId id) { return is_held(id); }));
    return engine.stopping.load(std::memory_order_seq_cst) ? std::string("the PE has stopped")
                                                           : "operator '" + contexts_[at]->op().name() + "' " + why;
  };
  const auto hold_all = [&](auto&& which) {
    for (const OperatorId id : order_) {
      if (!wanted[id] || is_held(id) || !which(id)) continue;
      done.push_back(id);
      if (!settle(id, deadline, engine)) return id;
    }
    return kNone;
  };
  if (const OperatorId at = drain ? open_stages(deadline, engine) : kNone; at != kNone)
    return give_up(at, "is still in a call of its function");
  RE_CHECK(done.empty());
  const char* const busy = "doesn't come to its safe point in time: its function is still at work, or waits for an operator downstream";
  if (const OperatorId at = hold_all([&](OperatorId id) { return drain && root[id]; }); at != kNone) return give_up(at, busy);
  if (drain && !wait_quiet(drained, deadline, engine)) {
    const OperatorId at = first_busy(drained);
    return give_up(at == kNone ? order_.front() : at, "can't be drained in time: records still wait at it, or calls are under way");
  }
  if (const OperatorId at = hold_all([](OperatorId) { return true; }); at != kNone) return give_up(at, busy);
  // Whoever stops the engine releases everybody after it has said so: one of us sees the other.
  return engine.stopping.load(std::memory_order_seq_cst) ? give_up(order_.front(), busy) : std::string();
}

std::string SafePoints::take_in_parts(OperatorId id, std::chrono::nanoseconds patience, const Engine& engine) {
  OperatorContext& context = *contexts_[id];
  RE_CHECK(id < contexts_.size());
  struct SettleRequest {
    explicit SettleRequest(OperatorContext& of) : context(of) { context.partial_run().want_settled(true); }
    SettleRequest(const SettleRequest&) = delete;
    SettleRequest& operator=(const SettleRequest&) = delete;
    ~SettleRequest() { context.partial_run().want_settled(false); }
    OperatorContext& context;
  } const request(context);
  if (wait_until(Clock::now() + patience, engine, [&context] { return context.try_settle(); })) return {};
  return "operator '" + context.op().name() + "' doesn't get in time what its producer makes for it";
}

void SafePoints::release() noexcept {
  for (const auto& context : contexts_) {
    context->safe_point().release();
    if (Junction* const junction = context->junction(); junction != nullptr) junction->open(false);
  }
}

// What is in front of operators that wait for several inputs comes to no end by itself: it is saved where it waits. The one that is busy, if so.
OperatorId SafePoints::open_stages(Clock::time_point deadline, const Engine& engine) {
  for (OperatorId id = 0; id < contexts_.size(); ++id) {
    Junction* const junction = contexts_[id]->junction();
    if (junction == nullptr || contexts_[id]->op().stages() == nullptr || junction->is_open()) continue;
    junction->open(true);
    if (!wait_until(deadline, engine, [junction] { return junction->gate.try_enter(); })) return id;
    junction->gate.release();
    junction->gate.leave();
  }
  return kNone;
}

bool SafePoints::settle(OperatorId id, Clock::time_point deadline, const Engine& engine) {
  Hold& point = contexts_[id]->safe_point();
  point.hold();
  fence_everywhere();
  return wait_until(deadline, engine, [&point] { return point.settled(); });
}

// In this order: a record is in a queue until the operator that it is for has dealt with it.
bool SafePoints::is_quiet(OperatorId id) const noexcept {
  if (contexts_[id]->op().has_pending()) return false;
  return std::ranges::all_of(ports_[id], [](const auto& port) { return port->is_drained(); }) && contexts_[id]->safe_point().settled();
}

OperatorId SafePoints::first_busy(const Some& drained) const noexcept {
  const auto busy = std::ranges::find_if(order_, [&](OperatorId id) { return drained[id] && !is_quiet(id); });
  return busy == order_.end() ? kNone : *busy;
}

std::uint64_t SafePoints::taken(const Some& drained) const noexcept {
  std::uint64_t sum = 0;
  for (OperatorId id = 0; id < drained.size(); ++id) sum += drained[id] ? contexts_[id]->tuples_in() : 0;
  return sum;
}

// Quiet twice, upstream first, with nothing taken between: so nothing was on its way from one to another while we looked, in a loop
// or out of it.
bool SafePoints::wait_quiet(const Some& drained, Clock::time_point deadline, const Engine& engine) const {
  return wait_until(deadline, engine, [&] {
    const std::uint64_t before = taken(drained);
    return first_busy(drained) == kNone && first_busy(drained) == kNone && taken(drained) == before;
  });
}

}  // namespace rayelastic
