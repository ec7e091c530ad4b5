// Wires operators and ports, applies desired state, and decides when the PE is over.
#include "rayelastic/engine/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "engine/control/epochs.hpp"
#include "engine/control/safe_points.hpp"
#include "engine/control/token_waits.hpp"
#include "engine/engine.hpp"
#include "engine/engine_threads.hpp"
#include "engine/errands.hpp"
#include "engine/graph/graph.hpp"
#include "engine/graph/wiring.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/mutex.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {
namespace {

constexpr std::chrono::milliseconds kApplyPatience{50};
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // a wait for ever must not overflow the clock

}  // namespace

// Locks: hold_mutex_ makes holders wait for one another and is taken before all others; apply_mutex_ makes apply and stop wait for one
// another and is never taken by an engine thread; over_mutex_ guards the outcome. Taken in the order hold, apply, over, EngineThreads'
// own. No engine lock is waited for under any of them; engine threads may take over_mutex_ whatever engine locks they hold.
class Scheduler::State {
 public:
  explicit State(SchedulerOptions options) : options_(options) {}
  ~State() { stop(false, true); }

  OperatorId add(std::shared_ptr<Operator> op, Placement placement) {
    check_operator(*op, placement);
    if (started_) throw std::logic_error("operators can't be added to a scheduler that has started");
    operators_.push_back(std::move(op));
    placements_.push_back(std::move(placement));
    RE_CHECK(operators_.size() == placements_.size());
    return operators_.size() - 1;
  }

  void connect(const Edge& edge) {
    if (started_) throw std::logic_error("operators of a scheduler that has started can't be connected");
    check_edge(operators_, edge);
    RE_CHECK(edge.from < operators_.size() && edge.to < operators_.size());
    edges_.push_back(edge);
  }

  [[nodiscard]] unsigned minimum_threads() const {
    std::size_t most = 0;
    for (const auto& op : operators_) most = std::max(most, op->inputs().size());
    return static_cast<unsigned>(1 + most);
  }

  void start(const Desired& desired) {
    if (started_) throw std::logic_error("a scheduler starts once");
    check(desired);
    auto graph = std::make_unique<Graph>(operators_, placements_, edges_);
    const Lock apply_guard(apply_mutex_);
    build(std::move(graph), desired);
    started_ = true;
    try {
      for (const auto& ports : graph_->ports()) {
        for (const auto& port : ports) {
          if (port->model() == ThreadingModel::Dedicated) threads_->start_dedicated(*port);
        }
      }
      threads_->set_count(desired.thread_count);
      if (options_.profile_period.count() > 0)
        threads_->start_profiler([this](std::chrono::nanoseconds duration) { return wait_for(duration); },
                                 [this](const Profile& profile) { token_waits_.look(profile, graph_->contexts()); });
      for (const auto& context : graph_->contexts()) {
        if (context->op().has_any(REL_SOURCE)) threads_->start_source(*context);
      }
    } catch (...) {
      halt();
      join();
      throw;
    }
  }

  InForce apply(const Desired& desired) {
    check(desired);
    const Lock apply_guard(apply_mutex_);
    if (!started_ || is_over()) return in_force();
    Desired possible = desired;
    try {
      for (const auto& [id, model] : desired.models) {
        if (graph_->ports()[id].empty()) possible.models.erase(id);
        for (const auto& port : graph_->ports()[id]) {
          const ThreadingModel model_of_port = possible.models[id] = graph_->possible_model(id, model);
          if (model_of_port == ThreadingModel::Dedicated) threads_->start_dedicated(*port);
          port->switch_to(model_of_port);
        }
      }
      threads_->set_count(desired.thread_count);
    } catch (const std::system_error&) {  // no more threads to be had: the answer says what there is
    }
    Lock lock(over_mutex_);
    changed_.wait_for(lock, kApplyPatience, [&]() REL_HELD(over_mutex_) { return over_ || holds(possible); });
    lock.unlock();
    return in_force();
  }

  [[nodiscard]] InForce in_force() const {
    InForce answer;
    if (started_) threads_->tell(answer);
    for (OperatorId id = 0; id < operators_.size(); ++id) answer.models.push_back(model_of(id));
    return answer;
  }

  [[nodiscard]] Sample sample() const {
    Sample sample;
    if (!started_) return sample;
    for (OperatorId id = 0; id < operators_.size(); ++id) {
      const OperatorContext& context = *graph_->contexts()[id];
      OperatorSample& each = sample.operators.emplace_back(OperatorSample{.tuples_in = context.tuples_in(),
                                                                          .tuples_out = context.tuples_out(),
                                                                          .model = model_of(id),
                                                                          .final = context.is_final(),
                                                                          .answered = context.counted(Tally::Answered),
                                                                          .skipped = context.counted(Tally::Skipped),
                                                                          .repaired = context.counted(Tally::Repaired),
                                                                          .untaken = context.untaken(),
                                                                          .watermark = context.event_time()});
      for (const auto& port : graph_->ports()[id]) {
        each.queued += port->queued();
        each.queue_capacity += port->capacity();
      }
      if (const StateTable* state = operators_[id]->state(); state != nullptr) {
        each.state_keys = state->size();
        each.state_bytes = state->bytes();
      }
    }
    RE_CHECK(sample.operators.size() == operators_.size());
    threads_->tell(sample);
    return sample;
  }

  bool wait_for(std::chrono::nanoseconds duration) const {
    Lock lock(over_mutex_);
    return changed_.wait_for(lock, std::min(duration, kLongest), [this]() REL_HELD(over_mutex_) { return over_; });
  }

  [[nodiscard]] std::optional<Failure> failure() const {
    const Lock guard(over_mutex_);
    return failure_;
  }

  void end_source(OperatorId id) {
    if (id >= operators_.size() || !operators_[id]->has_any(REL_SOURCE))
      throw std::invalid_argument("operator " + std::to_string(id) + " is no source");
    if (started_) graph_->contexts()[id]->interrupt();
  }

  void poke(OperatorId id) {
    if (id >= operators_.size() || !operators_[id]->takes_commands())
      throw std::invalid_argument("operator " + std::to_string(id) + " takes no commands");
    RE_CHECK(!started_ || !graph_->ports()[id].empty());
    if (started_) errands_->add(*graph_->ports()[id].front());
  }

  [[nodiscard]] std::string hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience) {
    check(ids, "to hold");
    if (!started_) throw std::logic_error("operators of a scheduler that hasn't started can't be held");
    const Lock hold_guard(hold_mutex_);
    engine_->replaces_waiting.store(true, std::memory_order_relaxed);  // others shall go on, and those who waited before know nothing of it
    threads_->replace_waiting();
    std::string refusal = safe_points_->hold(ids, drain, std::min(patience, kLongest), *engine_);
    // Whoever stops releases after it has said so: one of us sees the other.
    if (draining_.load(std::memory_order_seq_cst)) {
      release(true);
      refusal = "the PE is being stopped";
    }
    return refusal;
  }

  [[nodiscard]] std::string take_in_parts(OperatorId id, std::chrono::nanoseconds patience) {
    check({id}, "to take in its parts");
    return started_ ? safe_points_->take_in_parts(id, std::min(patience, kLongest), *engine_) : std::string();
  }

  void release(bool finish) {
    if (!started_) return;
    if (!finish) engine_->finishing.store(false, std::memory_order_relaxed);
    safe_points_->release();
  }

  void let_go(const std::vector<OperatorId>& ids) {
    check(ids, "to let go");
    if (!started_) return;
    for (const OperatorId id : ids) graph_->contexts()[id]->barrier_hold().let_go();
  }

  void begin_after(const Beginning& beginning) {
    if (started_) throw std::logic_error("after what a source of a scheduler begins is said before it starts");
    check_beginning(operators_, beginnings_.emplace_back(beginning));
  }

  void stop_at_epochs(std::vector<OperatorId> ids) {
    check(ids, "to stop at epochs");
    if (started_) throw std::logic_error("where operators of a scheduler stop is said before it starts");
    stops_ = std::move(ids);
  }

  [[nodiscard]] bool send_epoch(const std::vector<OperatorId>& sources, std::int64_t epoch) {
    check(sources, "to send an epoch");
    return !started_ || epochs_->send(sources, epoch);
  }

  [[nodiscard]] bool wait_sent(std::chrono::nanoseconds patience) const { return !started_ || epochs_->sent(std::min(patience, kLongest)); }

  [[nodiscard]] std::vector<OperatorId> wait_epoch(const std::vector<OperatorId>& ids, std::int64_t epoch,
                                                   std::chrono::nanoseconds patience) {
    check(ids, "to wait for");
    return started_ ? epochs_->wait(ids, epoch, std::min(patience, kLongest)) : std::vector<OperatorId>();
  }

  [[nodiscard]] std::shared_ptr<StateCopy> take_copy(OperatorId id, std::int64_t epoch) {
    check({id}, "to copy");
    return started_ ? graph_->contexts()[id]->take_copy(epoch) : nullptr;
  }

  void abandon_epochs(std::int64_t epoch) {
    if (started_) epochs_->abandon(epoch);
  }

  void stop(bool drain, bool finish) {
    if (!started_) return;
    if (drain && !is_over()) {
      draining_.store(true, std::memory_order_seq_cst);
      epochs_->abandon(INT64_MAX);
      for (const auto& context : graph_->contexts()) {
        if (context->op().has_any(REL_SOURCE)) context->interrupt();
      }
      release(finish);
      Lock lock(over_mutex_);
      changed_.wait(lock, [this]() REL_HELD(over_mutex_) { return over_; });
    }
    halt();
    const Lock apply_guard(apply_mutex_);
    join();
    RE_ASSERT(is_over());
  }

 private:
  void check(const std::vector<OperatorId>& ids, const char* what) const {
    for (const OperatorId id : ids) {
      if (id >= operators_.size()) throw std::invalid_argument("there is no operator " + std::to_string(id) + " " + what);
    }
  }

  void check(const Desired& desired) const {
    for (const auto& [id, model] : desired.models) {
      if (id >= operators_.size())
        throw std::invalid_argument("desired state names operator " + std::to_string(id) + ", which there isn't");
    }
  }

  void build(std::unique_ptr<Graph> graph, const Desired& desired) {
    graph_ = std::move(graph);
    engine_ = std::make_unique<Engine>(options_, graph_->port_count(),
                                       Engine::Listener{.failed = [this](Failure failure) { fail(std::move(failure)); },
                                                        .terminal_final = [this] { count_final(); },
                                                        .changed = [this] { tell_changed(); },
                                                        .waiting = [this] { threads_->replace_waiting(); }});
    threads_ = std::make_unique<EngineThreads>(*engine_, operators_.size());
    errands_ = std::make_unique<Errands>(*engine_);
    graph_->build(*engine_, desired.models, [this](OperatorId id) {
      fail({.operator_id = id,
            .operator_name = operators_[id]->name(),
            .message = "has more than loop_bytes on its feedback edge: the loop makes records faster than it ends them; end more of "
                       "them each round, or raise loop_bytes"});
    });
    RE_CHECK(graph_->contexts().size() == operators_.size());
    safe_points_ = std::make_unique<SafePoints>(graph_->contexts(), graph_->ports(), edges_, graph_->order());
    epochs_ = std::make_unique<Epochs>(graph_->contexts(), *engine_);
    for (const OperatorId id : stops_) graph_->contexts()[id]->barrier_hold().enable();
    for (const Beginning& one : beginnings_) graph_->begin_after(one);
    const Lock guard(over_mutex_);
    for (const auto& context : graph_->contexts()) terminals_left_ += context->is_terminal() ? 1 : 0;
    RE_CHECK(terminals_left_ > 0 || operators_.empty());
    if (terminals_left_ == 0) over_ = true;  // no operators at all
  }

  // Before the start: what was asked for.
  [[nodiscard]] ThreadingModel model_of(OperatorId id) const {
    if (started_) return graph_->model_of(id);
    return operators_[id]->inputs().empty() ? ThreadingModel::Dedicated : placements_[id].model;
  }

  [[nodiscard]] bool holds(const Desired& desired) const {
    return threads_->has(desired.thread_count) &&
           std::ranges::all_of(desired.models, [this](const auto& entry) { return model_of(entry.first) == entry.second; });
  }

  [[nodiscard]] bool is_over() const {
    const Lock guard(over_mutex_);
    return over_;
  }

  // From here on engine threads call.
  void fail(Failure failure) {
    {
      const Lock guard(over_mutex_);
      if (over_) return;  // the first failure counts, and none that comes of stopping
      failure_ = std::move(failure);
    }
    halt();
  }

  void count_final() {
    const Lock guard(over_mutex_);
    RE_CHECK(terminals_left_ > 0);
    if (--terminals_left_ > 0) return;
    over_ = true;
    changed_.notify_all();
  }

  void tell_changed() {
    const Lock guard(over_mutex_);
    changed_.notify_all();
  }

  // Everything unwinds; nobody sleeps on.
  void halt() {
    engine_->stopping.store(true, std::memory_order_seq_cst);
    {
      const Lock guard(over_mutex_);
      over_ = true;
      changed_.notify_all();
    }
    for (const auto& context : graph_->contexts()) {
      context->interrupt();
      if (context->junction() != nullptr) context->junction()->gate.interrupt();
    }
    safe_points_->release();  // after `stopping`: see SafePoints::hold
    epochs_->halt();
    errands_->halt();
    threads_->halt();
  }

  void join() {
    threads_->join();
    errands_->join();
    epochs_->join();
  }

  const SchedulerOptions options_;
  Operators operators_;
  std::vector<Placement> placements_;  // of these
  std::vector<Edge> edges_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<SafePoints> safe_points_;
  std::unique_ptr<EngineThreads> threads_;
  std::unique_ptr<Errands> errands_;
  std::unique_ptr<Epochs> epochs_;
  std::vector<Beginning> beginnings_;
  std::vector<OperatorId> stops_;  // at epochs
  TokenWaits token_waits_;         // the profiler's thread's
  std::atomic<bool> started_{false};

  Mutex hold_mutex_;
  std::atomic<bool> draining_{false};
  Mutex apply_mutex_;

  mutable Mutex over_mutex_;
  mutable std::condition_variable changed_;
  bool over_ REL_GUARDED_BY(over_mutex_) = false;
  std::size_t terminals_left_ REL_GUARDED_BY(over_mutex_) = 0;
  std::optional<Failure> failure_ REL_GUARDED_BY(over_mutex_);
};

Scheduler::Scheduler(SchedulerOptions options) : state_(std::make_unique<State>(options)) {}
Scheduler::~Scheduler() = default;
OperatorId Scheduler::add_operator(std::shared_ptr<Operator> op, Placement placement) {
  return state_->add(std::move(op), std::move(placement));
}
void Scheduler::connect(OperatorId from, OperatorId to, std::size_t output_port, std::size_t input_port, bool feedback) {
  state_->connect({.from = from, .to = to, .output = output_port, .input = input_port, .feedback = feedback});
}
unsigned Scheduler::minimum_threads() const { return state_->minimum_threads(); }
void Scheduler::start(const Desired& desired) { state_->start(desired); }
InForce Scheduler::apply(const Desired& desired) { return state_->apply(desired); }
InForce Scheduler::in_force() const { return state_->in_force(); }
Sample Scheduler::sample() const { return state_->sample(); }
bool Scheduler::wait_for(std::chrono::nanoseconds duration) const { return state_->wait_for(duration); }
std::optional<Failure> Scheduler::failure() const { return state_->failure(); }
void Scheduler::poke(OperatorId id) { state_->poke(id); }
void Scheduler::end_source(OperatorId id) { state_->end_source(id); }
std::string Scheduler::hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience) {
  return state_->hold(ids, drain, patience);
}
std::string Scheduler::take_in_parts(OperatorId id, std::chrono::nanoseconds patience) { return state_->take_in_parts(id, patience); }
void Scheduler::release(bool finish) { state_->release(finish); }
void Scheduler::let_go(const std::vector<OperatorId>& ids) { state_->let_go(ids); }
void Scheduler::begin_after(const Beginning& beginning) { state_->begin_after(beginning); }
void Scheduler::stop_at_epochs(std::vector<OperatorId> ids) { state_->stop_at_epochs(std::move(ids)); }
bool Scheduler::send_epoch(const std::vector<OperatorId>& sources, std::int64_t epoch) { return state_->send_epoch(sources, epoch); }
bool Scheduler::wait_sent(std::chrono::nanoseconds patience) const { return state_->wait_sent(patience); }
std::vector<OperatorId> Scheduler::wait_epoch(const std::vector<OperatorId>& ids, std::int64_t epoch, std::chrono::nanoseconds patience) {
  return state_->wait_epoch(ids, epoch, patience);
}
std::shared_ptr<StateCopy> Scheduler::take_copy(OperatorId id, std::int64_t epoch) { return state_->take_copy(id, epoch); }
void Scheduler::abandon_epochs(std::int64_t epoch) { state_->abandon_epochs(epoch); }
void Scheduler::stop(bool drain, bool finish) { state_->stop(drain, finish); }

}  // namespace rayelastic
