// Wires operators and ports, owns the threads, applies desired state, and decides when the PE is over.
#include "rayelastic/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "engine.hpp"
#include "operator_context.hpp"
#include "operator_thread.hpp"
#include "port.hpp"
#include "profiler.hpp"
#include "rayelastic/keyed_state.hpp"
#include "safe_points.hpp"
#include "wiring.hpp"
#include "worker.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::milliseconds kApplyPatience{50};
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // a wait for ever must not overflow the clock

bool takes_runs(const OperatorSpec& spec) { return spec.demands.empty(); }

}  // namespace

// Locks: hold_mutex_ makes holders wait for one another and is taken before all others. threads_mutex_ guards the lists of threads and is held shortly; over_mutex_ guards the outcome; apply_mutex_ makes apply and
// stop wait for one another and is never taken by an engine thread. Taken in the order apply, over, threads. No engine lock is
// waited for under any of them; engine threads may take over_mutex_ and threads_mutex_ whatever engine locks they hold.
class Scheduler::State {
 public:
  explicit State(SchedulerOptions options) : options_(options) {}
  ~State() { stop(false, true); }

  OperatorId add(OperatorSpec spec) {
    check_operator(spec);
    if (started_) throw std::logic_error("operators can't be added to a scheduler that has started");
    if (spec.store == nullptr) spec.store = spec.keyed;
    specs_.push_back(std::move(spec));
    return specs_.size() - 1;
  }

  void connect(const Edge& edge) {
    if (started_) throw std::logic_error("operators of a scheduler that has started can't be connected");
    check_edge(specs_, edge);
    edges_.push_back(edge);
  }

  [[nodiscard]] unsigned minimum_threads() const {
    std::size_t most = 0;
    for (const OperatorSpec& spec : specs_) most = std::max(most, input_count(spec));
    return static_cast<unsigned>(1 + most);
  }

  void start(const Desired& desired) {
    if (started_) throw std::logic_error("a scheduler starts once");
    check(desired);
    const Wiring wiring(specs_, edges_);
    const std::lock_guard apply_guard(apply_mutex_);
    build(desired, wiring);
    started_ = true;
    try {
      const std::lock_guard guard(threads_mutex_);
      for (const auto& ports : ports_) {
        for (const auto& port : ports) {
          if (port->model() == ThreadingModel::Dedicated) start_dedicated(*port);
        }
      }
      set_thread_count(desired.thread_count);
      if (options_.profile_period.count() > 0) profiling_ = std::thread([this] { profile(); });
      for (const auto& context : contexts_) {
        if ((context->spec().flags & REL_SOURCE) != 0) operator_threads_.emplace_back(*engine_, *context);
      }
    } catch (...) {
      halt();
      join();
      throw;
    }
  }

  InForce apply(const Desired& desired) {
    check(desired);
    const std::lock_guard apply_guard(apply_mutex_);
    if (!started_ || is_over()) return in_force();
    Desired possible = desired;
    try {
      const std::lock_guard guard(threads_mutex_);
      for (const auto& [id, model] : desired.models) {
        if (ports_[id].empty()) possible.models.erase(id);
        for (const auto& port : ports_[id]) {
          const ThreadingModel wish = possible.models[id] = possible_model(id, model);
          if (wish == ThreadingModel::Dedicated) start_dedicated(*port);
          port->wish(wish);
        }
      }
      set_thread_count(desired.thread_count);
    } catch (const std::system_error&) {  // no more threads to be had: the answer says what there is
    }
    std::unique_lock lock(over_mutex_);
    changed_.wait_for(lock, kApplyPatience, [&] { return over_ || holds(possible); });
    lock.unlock();
    return in_force();
  }

  [[nodiscard]] InForce in_force() const {
    const std::lock_guard guard(threads_mutex_);
    InForce answer{.thread_count = able_threads()};
    for (const Worker& worker : workers_) {
      answer.stuck += worker.is_stuck() ? 1 : 0;
      answer.unsuspended += worker.is_suspended() && !worker.is_parked() ? 1 : 0;
    }
    for (OperatorId id = 0; id < specs_.size(); ++id) answer.models.push_back(model_of(id));
    return answer;
  }

  [[nodiscard]] Sample sample() const {
    Sample sample;
    if (!started_) return sample;
    const std::lock_guard guard(threads_mutex_);
    const Profile& profile = profiler_->profile();
    for (OperatorId id = 0; id < contexts_.size(); ++id) {
      const OperatorContext& context = *contexts_[id];
      const StateTable* state = specs_[id].store.get();
      std::size_t queued = 0;
      std::size_t capacity = 0;
      for (const auto& port : ports_[id]) {
        queued += port->queued();
        capacity += port->capacity();
      }
      sample.operators.push_back({.tuples_in = context.tuples_in(),
                                  .tuples_out = context.tuples_out(),
                                  .cpu_ns = profile.operator_cpu[id],
                                  .time_ns = profile.operator_time[id],
                                  .blocked_ns = profile.operator_blocked[id],
                                  .queued = queued,
                                  .queue_capacity = capacity,
                                  .model = model_of(id),
                                  .final = context.is_final(),
                                  .state_keys = state == nullptr ? 0 : state->size(),
                                  .state_bytes = state == nullptr ? 0 : state->bytes()});
    }
    sample.engine_cpu_ns = profile.engine_cpu;
    sample.scheduler_ns = profile.scheduler_time;
    sample.idle_ns = profile.idle_time;
    sample.thread_ns = profile.thread_time;
    sample.blocked_ns = profile.blocked_time;
    sample.ticks = profile.ticks;
    for (const Worker& worker : workers_) sample.stuck += worker.is_stuck() ? 1 : 0;
    sample.thread_count = able_threads();
    sample.threads_idle = std::min(engine_->idle.waiting(), sample.thread_count);
    const auto add = [&sample](const EngineThread& thread) {
      sample.token_wait_ns += thread.token_wait_ns.get();
      sample.token_refusals += thread.token_refusals.get();
      sample.reschedules += thread.reschedules.get();
      sample.sleeps += thread.sleeps.get();
    };
    for (const Worker& worker : workers_) add(worker.own());
    for (const OperatorThread& thread : operator_threads_) add(thread.own());
    return sample;
  }

  bool wait_for(std::chrono::nanoseconds duration) const {
    std::unique_lock lock(over_mutex_);
    return changed_.wait_for(lock, std::min(duration, kLongest), [this] { return over_; });
  }

  [[nodiscard]] std::optional<Failure> failure() const {
    const std::lock_guard guard(over_mutex_);
    return failure_;
  }

  void end_source(OperatorId id) {
    if (id >= specs_.size() || (specs_[id].flags & REL_SOURCE) == 0)
      throw std::invalid_argument("operator " + std::to_string(id) + " is no source");
    if (started_) contexts_[id]->interrupt();
  }

  void poke(OperatorId id) {
    if (id >= specs_.size() || !specs_[id].commanded) throw std::invalid_argument("operator " + std::to_string(id) + " takes no commands");
    if (!started_) return;
    const std::lock_guard guard(errands_mutex_);
    if (engine_->is_stopping() || std::ranges::find(errands_, id) != errands_.end()) return;
    errands_.push_back(id);
    if (!errand_thread_.joinable())
      errand_thread_ = std::thread([this] { run_engine_thread(options_.hooks, errand_own_, [this] { run_errands(); }); });
    errands_changed_.notify_one();
  }

  [[nodiscard]] std::string hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience) {
    for (const OperatorId id : ids) {
      if (id >= specs_.size()) throw std::invalid_argument("there is no operator " + std::to_string(id) + " to hold");
    }
    if (!started_) throw std::logic_error("operators of a scheduler that hasn't started can't be held");
    const std::lock_guard hold_guard(hold_mutex_);
    engine_->replaces_waiting.store(true, std::memory_order_relaxed);  // others shall go on, and those who waited before know nothing of it
    replace_waiting();
    std::string refusal = safe_points_->hold(ids, drain, std::min(patience, kLongest), *engine_);
    // Whoever stops releases after it has said so: one of us sees the other.
    if (draining_.load(std::memory_order_seq_cst)) {
      release(true);
      refusal = "the processing element is being stopped";
    }
    return refusal;
  }

  void release(bool finish) {
    if (!started_) return;
    if (!finish) engine_->finishing.store(false, std::memory_order_relaxed);
    safe_points_->release();
  }

  void stop(bool drain, bool finish) {
    if (!started_) return;
    if (drain && !is_over()) {
      draining_.store(true, std::memory_order_seq_cst);
      for (const auto& context : contexts_) {
        if ((context->spec().flags & REL_SOURCE) != 0) context->interrupt();
      }
      release(finish);
      std::unique_lock lock(over_mutex_);
      changed_.wait(lock, [this] { return over_; });
    }
    halt();
    const std::lock_guard apply_guard(apply_mutex_);
    join();
  }

 private:
  void check(const Desired& desired) const {
    for (const auto& [id, model] : desired.models) {
      if (id >= specs_.size()) throw std::invalid_argument("desired state names operator " + std::to_string(id) + ", which there isn't");
    }
  }

  // Stages need queues in front of them, and so do loops.
  [[nodiscard]] ThreadingModel possible_model(OperatorId id, ThreadingModel wish) const {
    const bool queued =
        !takes_runs(specs_[id]) || std::ranges::any_of(edges_, [id](const Edge& edge) { return edge.feedback && edge.to == id; });
    return queued && wish == ThreadingModel::Manual ? ThreadingModel::Dynamic : wish;
  }

  void build(const Desired& desired, const Wiring& wiring) {
    std::vector<std::vector<Junction::Input>> inputs(specs_.size());
    std::vector<std::vector<std::size_t>> feedback_inputs(specs_.size());  // by operator and port; 0: none
    std::size_t ports = 0;
    for (OperatorId id = 0; id < specs_.size(); ++id) {
      for (std::size_t port = 0; port < input_count(specs_[id]); ++port)
        inputs[id].push_back({.port = port, .stride = input_schema(specs_[id], port)->record_size()});
      feedback_inputs[id].resize(inputs[id].size(), 0);
    }
    for (const Edge& edge : edges_) {
      std::size_t input = edge.input;
      if (edge.feedback) {
        std::size_t& feedback = feedback_inputs[edge.to][edge.input];
        if (feedback == 0) {
          feedback = inputs[edge.to].size();
          inputs[edge.to].push_back({.port = edge.input, .stride = inputs[edge.to][edge.input].stride, .feedback = true});
        }
        input = feedback;
      }
      ++inputs[edge.to][input].edges;
    }
    for (const auto& each : inputs) ports += each.size();
    engine_ = std::make_unique<Engine>(options_, ports,
                                       Engine::Listener{.failed = [this](Failure failure) { fail(std::move(failure)); },
                                                        .terminal_final = [this] { count_final(); },
                                                        .changed = [this] { tell_changed(); },
                                                        .waiting = [this] { replace_waiting(); }});
    profiler_ = std::make_unique<Profiler>(specs_.size(), options_.stuck_after);
    ports_.resize(specs_.size());
    for (OperatorId id = 0; id < specs_.size(); ++id) {
      const OperatorSpec& spec = specs_[id];
      contexts_.push_back(std::make_unique<OperatorContext>(id, spec, *engine_));
      OperatorContext& context = *contexts_.back();
      if (inputs[id].size() > 1 || !takes_runs(spec)) context.meet(inputs[id]);
      if (!takes_runs(spec)) relate_ports(id, wiring);
      const auto named = desired.models.find(id);
      const ThreadingModel model = named == desired.models.end() ? spec.model : named->second;
      for (std::size_t input = 0; input < inputs[id].size(); ++input) {
        ports_[id].push_back(std::make_unique<Port>(context, *engine_, possible_model(id, model), input));
        if (context.junction() != nullptr) ports_[id].back()->meet(context.junction()->gate);
        if (!inputs[id][input].feedback) continue;
        ports_[id].back()->close_loop(make_spill(id, inputs[id][input].stride));
        engine_->replaces_waiting.store(true, std::memory_order_relaxed);
      }
    }
    using Place = OperatorContext::Place;
    for (const Edge& edge : edges_) {
      Port& port = *ports_[edge.to][edge.feedback ? feedback_inputs[edge.to][edge.input] : edge.input];
      const Place place = edge.feedback ? Place::Feedback : wiring.is_in_loop(edge) ? Place::InLoop : Place::Outside;
      const std::uint32_t number = edge.feedback ? 0 : contexts_[edge.to]->add_input();
      contexts_[edge.from]->add_consumer(edge.output, &port, number, place);
      port.add_edge();
    }
    safe_points_ = std::make_unique<SafePoints>(contexts_, ports_, edges_, wiring.order());
    for (OperatorId id = 0; id < specs_.size(); ++id) {
      if (specs_[id].commanded) ports_[id].front()->add_edge();  // of poke
    }
    for (const auto& context : contexts_) context->keep_way();
    for (const auto& context : contexts_) terminals_left_ += context->is_terminal() ? 1 : 0;
    if (terminals_left_ == 0) over_ = true;  // no operators at all
  }

  void relate_ports(OperatorId id, const Wiring& wiring) {
    engine_->replaces_waiting.store(true, std::memory_order_relaxed);
    for (std::size_t port = 0; port < specs_[id].demands.size(); ++port) {
      for (std::size_t other = 0; other < specs_[id].demands.size(); ++other) {
        if (other != port && wiring.are_related(id, port, other)) contexts_[id]->junction()->relate(port, other);
      }
    }
  }

  [[nodiscard]] std::unique_ptr<Spill> make_spill(OperatorId id, std::size_t stride) {
    return std::make_unique<Spill>(stride, options_.loop_bytes, [this, id] {
      fail({.operator_id = id,
            .operator_name = specs_[id].name,
            .message = "has more than loop_bytes on its feedback edge: the loop makes records faster than it ends them; end more of "
                       "them each round, or raise loop_bytes"});
    });
  }

  // threads_mutex_ held.
  void set_thread_count(unsigned count) {
    if (engine_->is_stopping()) return;  // halt() has woken everybody, for good
    wanted_threads_ = bounded(count);
    const bool starving = somebody_starves();
    unsigned able = 0;
    for (Worker& worker : workers_) {
      if (starving && is_waiting(worker)) continue;  // it goes on by itself, and then we come here again
      if (able < wanted_threads_ && !worker.is_stuck()) {
        worker.resume();
        ++able;
      } else {
        worker.suspend();
      }
    }
    for (; able < wanted_threads_; ++able) workers_.emplace_back(*engine_, workers_.size());
  }

  // What runs nowhere is what is missing: records of another port (a stage is full), or what an operator waits for that never returns.
  [[nodiscard]] bool somebody_starves() const {
    const auto starves = [](const auto& thread) { return thread.own().doing.load(std::memory_order_relaxed) == EngineThread::kStarved; };
    return std::ranges::any_of(workers_, [&](const Worker& worker) { return worker.is_stuck() || starves(worker); }) ||
           std::ranges::any_of(operator_threads_, starves);
  }

  [[nodiscard]] static bool is_waiting(const Worker& worker) {
    const std::uint32_t doing = worker.own().doing.load(std::memory_order_relaxed);
    return doing == EngineThread::kStarved || doing == EngineThread::kBlocked;
  }

  // Threads that wait while somebody starves, directly or for one another, are replaced for that time: whatever can run runs, even where
  // one thread was asked for (P33). Extra threads go to sleep when those come back.
  void replace_waiting() {
    bool none = false;
    {
      const std::lock_guard guard(threads_mutex_);
      try {
        set_thread_count(wanted_threads_);
      } catch (const std::system_error&) {  // no more threads to be had
        none = able_threads() == 0;
      }
    }
    if (none)
      fail({.operator_name = "scheduler",
            .message = "all scheduler threads wait at conjunctive operators or loops, and the system gives no more threads"});
  }

  // The thread of poke: one more producer, for which a port may have to wait.
  void run_errands() {
    std::unique_lock lock(errands_mutex_);
    while (true) {
      errands_changed_.wait(lock, [this] { return !errands_.empty() || engine_->is_stopping(); });
      if (engine_->is_stopping()) return;
      const OperatorId id = errands_.front();
      errands_.pop_front();
      lock.unlock();
      if (!ports_[id].front()->accept(Mark{MarkKind::Command, 0})) return;
      engine_->publish_next(errand_own_);
      lock.lock();
    }
  }

  // The profiler's thread: looks, and replaces scheduler threads that got stuck until they come back.
  void profile() {
    std::minstd_rand random;  // the period varies by a half, so that it can't keep in step with what it looks at
    std::uniform_real_distribution<double> share(0.5, 1.5);
    std::unique_lock lock(over_mutex_);
    while (!changed_.wait_for(lock, options_.profile_period * share(random), [this] { return over_; })) {
      lock.unlock();
      tick();
      lock.lock();
    }
  }

  void tick() {
    const std::lock_guard guard(threads_mutex_);
    profiler_->begin(Profiler::Clock::now());
    for (Worker& worker : workers_) {
      profiler_->see(worker.own(), true);
      if (worker.own().watch.paused) engine_->publish_next(worker.own());  // a dear tuple keeps it from its next port
    }
    for (OperatorThread& thread : operator_threads_) profiler_->see(thread.own(), false);
    // A thread may have come to wait for one that is stuck since the last look.
    if (!profiler_->end() && std::ranges::none_of(workers_, &Worker::is_stuck)) return;
    try {
      set_thread_count(wanted_threads_);
    } catch (const std::system_error&) {  // no more threads to be had; sample() says that some are stuck
    }
  }

  [[nodiscard]] unsigned bounded(unsigned threads) const { return std::clamp(threads, 1U, std::max(options_.max_threads, 1U)); }

  void start_dedicated(Port& port) {
    if (std::ranges::find(dedicated_, &port) != dedicated_.end()) return;
    operator_threads_.emplace_back(*engine_, port);
    dedicated_.push_back(&port);
  }

  [[nodiscard]] unsigned able_threads() const {
    const bool starving = somebody_starves();
    return static_cast<unsigned>(std::ranges::count_if(workers_, [starving](const Worker& worker) {
      return !worker.is_parked() && !worker.is_stuck() && !(starving && is_waiting(worker));
    }));
  }

  // As long as one of its ports hasn't switched, the operator hasn't.
  [[nodiscard]] ThreadingModel model_of(OperatorId id) const {
    if (specs_[id].input == nullptr) return ThreadingModel::Dedicated;
    if (id >= ports_.size()) return possible_model(id, specs_[id].model);
    for (std::size_t input = 0; input < input_count(specs_[id]); ++input) {
      if (ports_[id][input]->is_switching()) return ports_[id][input]->model();
    }
    return ports_[id].front()->model();
  }

  [[nodiscard]] bool holds(const Desired& desired) const {
    const std::lock_guard guard(threads_mutex_);
    return able_threads() == bounded(desired.thread_count) &&
           std::ranges::all_of(desired.models, [this](const auto& wish) { return model_of(wish.first) == wish.second; });
  }

  [[nodiscard]] bool is_over() const {
    const std::lock_guard guard(over_mutex_);
    return over_;
  }

  // From here on engine threads call.
  void fail(Failure failure) {
    {
      const std::lock_guard guard(over_mutex_);
      if (over_) return;  // the first failure counts, and none that comes of stopping
      failure_ = std::move(failure);
    }
    halt();
  }

  void count_final() {
    const std::lock_guard guard(over_mutex_);
    if (--terminals_left_ > 0) return;
    over_ = true;
    changed_.notify_all();
  }

  void tell_changed() {
    const std::lock_guard guard(over_mutex_);
    changed_.notify_all();
  }

  // Everything unwinds; nobody sleeps on.
  void halt() {
    engine_->stopping.store(true, std::memory_order_seq_cst);
    {
      const std::lock_guard guard(over_mutex_);
      over_ = true;
      changed_.notify_all();
    }
    for (const auto& context : contexts_) {
      context->interrupt();
      if (context->junction() != nullptr) context->junction()->gate.interrupt();
    }
    safe_points_->release();  // after `stopping`: see SafePoints::hold
    {
      const std::lock_guard errands_guard(errands_mutex_);
    }  // whoever waits has seen `stopping`, or hears this
    errands_changed_.notify_all();
    const std::lock_guard guard(threads_mutex_);
    for (Worker& worker : workers_) worker.resume();
    for (OperatorThread& thread : operator_threads_) thread.wake();
    engine_->idle.interrupt();
  }

  void join() {
    for (Worker& worker : workers_) worker.join();
    for (OperatorThread& thread : operator_threads_) thread.join();
    if (profiling_.joinable()) profiling_.join();
    if (errand_thread_.joinable()) errand_thread_.join();
  }

  const SchedulerOptions options_;
  std::vector<OperatorSpec> specs_;
  std::vector<Edge> edges_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<OperatorContext>> contexts_;
  std::vector<std::vector<std::unique_ptr<Port>>> ports_;  // by operator and input; none for sources
  std::atomic<bool> started_{false};

  std::unique_ptr<SafePoints> safe_points_;

  std::mutex hold_mutex_;
  std::atomic<bool> draining_{false};
  std::mutex apply_mutex_;
  mutable std::mutex threads_mutex_;
  std::deque<Worker> workers_;
  std::deque<OperatorThread> operator_threads_;
  std::vector<const Port*> dedicated_;
  std::unique_ptr<Profiler> profiler_;
  unsigned wanted_threads_ = 0;
  std::thread profiling_;

  std::mutex errands_mutex_;  // innermost
  std::condition_variable errands_changed_;
  std::deque<OperatorId> errands_;
  EngineThread errand_own_;
  std::thread errand_thread_;

  mutable std::mutex over_mutex_;
  mutable std::condition_variable changed_;
  bool over_ = false;
  std::size_t terminals_left_ = 0;
  std::optional<Failure> failure_;
};

Scheduler::Scheduler(SchedulerOptions options) : state_(std::make_unique<State>(options)) {}
Scheduler::~Scheduler() = default;
OperatorId Scheduler::add_operator(OperatorSpec spec) { return state_->add(std::move(spec)); }
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
void Scheduler::release(bool finish) { state_->release(finish); }
void Scheduler::stop(bool drain, bool finish) { state_->stop(drain, finish); }

}  // namespace rayelastic
