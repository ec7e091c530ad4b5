// Wires operators and ports, owns the threads, applies desired state, and decides when the PE is over.
#include "rayelastic/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "engine.hpp"
#include "operator_context.hpp"
#include "operator_thread.hpp"
#include "port.hpp"
#include "profiler.hpp"
#include "worker.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::milliseconds kApplyPatience{50};
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // a wait for ever must not overflow the clock

[[noreturn]] void refuse(const OperatorSpec& spec, const std::string& why) {
  throw std::invalid_argument("operator '" + spec.name + "' " + why);
}

void validate(const OperatorSpec& spec) {
  const bool source = (spec.flags & REL_SOURCE) != 0;
  const bool sink = (spec.flags & REL_SINK) != 0;
  if (spec.process == nullptr) refuse(spec, "has no function");
  if (source && sink) refuse(spec, "is both source and sink");
  if (source != (spec.input == nullptr)) refuse(spec, source ? "is a source but has an input schema" : "has no input schema");
  if (sink != (spec.output == nullptr)) refuse(spec, sink ? "is a sink but has an output schema" : "has no output schema");
  if (((spec.flags & REL_KEYED) != 0) != (spec.keyed != nullptr)) refuse(spec, "must have keyed state exactly if it is keyed");
  if (source && (spec.flags & REL_KEYED) != 0) refuse(spec, "is a source and can't be keyed");
}

}  // namespace

// Locks: threads_mutex_ guards the lists of threads and is held shortly; over_mutex_ guards the outcome; apply_mutex_ makes apply and
// stop wait for one another and is never taken by an engine thread. Taken in the order apply, over, threads. No engine lock is
// waited for under any of them.
class Scheduler::State {
 public:
  explicit State(SchedulerOptions options) : options_(options) {}
  ~State() { stop(false); }

  OperatorId add(OperatorSpec spec) {
    validate(spec);
    if (started_) throw std::logic_error("operators can't be added to a scheduler that has started");
    specs_.push_back(std::move(spec));
    return specs_.size() - 1;
  }

  void connect(OperatorId from, OperatorId to) {
    if (started_) throw std::logic_error("operators of a scheduler that has started can't be connected");
    if (from >= specs_.size() || to >= specs_.size()) throw std::invalid_argument("connect: no such operator");
    if (specs_[from].output == nullptr) refuse(specs_[from], "is a sink and has no output to connect");
    if (specs_[to].input == nullptr) refuse(specs_[to], "is a source and has no input to connect");
    if (specs_[from].output->record_size() != specs_[to].input->record_size()) {
      refuse(specs_[to], "takes records of another size than '" + specs_[from].name + "' makes");
    }
    edges_.emplace_back(from, to);
  }

  void start(const Desired& desired) {
    if (started_) throw std::logic_error("a scheduler starts once");
    check(desired);
    check_graph();
    const std::lock_guard apply_guard(apply_mutex_);
    build(desired);
    started_ = true;
    try {
      const std::lock_guard guard(threads_mutex_);
      for (const auto& port : ports_) {
        if (port != nullptr && port->model() == ThreadingModel::Dedicated) start_dedicated(*port);
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
        if (ports_[id] == nullptr) {
          possible.models.erase(id);
        } else {
          if (model == ThreadingModel::Dedicated) start_dedicated(*ports_[id]);
          ports_[id]->wish(model);
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
      const Port* port = ports_[id].get();
      sample.operators.push_back({.tuples_in = context.tuples_in(),
                                  .tuples_out = context.tuples_out(),
                                  .cpu_ns = profile.operator_cpu[id],
                                  .time_ns = profile.operator_time[id],
                                  .queued = port == nullptr ? 0 : port->queued(),
                                  .queue_capacity = port == nullptr ? 0 : port->capacity(),
                                  .model = model_of(id),
                                  .final = context.is_final()});
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

  void stop(bool drain) {
    if (!started_) return;
    if (drain && !is_over()) {
      for (const auto& context : contexts_) {
        if ((context->spec().flags & REL_SOURCE) != 0) context->interrupt();
      }
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

  void check_graph() const {
    std::vector<std::size_t> inputs(specs_.size(), 0);
    for (const auto& [from, to] : edges_) ++inputs[to];
    std::vector<OperatorId> ready;
    for (OperatorId id = 0; id < specs_.size(); ++id) {
      if (specs_[id].input == nullptr)
        ready.push_back(id);
      else if (inputs[id] == 0)
        refuse(specs_[id], "has no operator that feeds it");
    }
    std::size_t ordered = 0;
    for (; ordered < ready.size(); ++ordered) {
      for (const auto& [from, to] : edges_) {
        if (from == ready[ordered] && --inputs[to] == 0) ready.push_back(to);
      }
    }
    if (ordered == specs_.size()) return;
    const auto on_cycle = std::ranges::find_if(inputs, [](std::size_t left) { return left > 0; });
    refuse(specs_[static_cast<std::size_t>(on_cycle - inputs.begin())], "is on or behind a cycle");
  }

  void build(const Desired& desired) {
    engine_ = std::make_unique<Engine>(
        options_, specs_.size(),
        Engine::Listener{[this](Failure failure) { fail(std::move(failure)); }, [this] { count_final(); }, [this] { tell_changed(); }});
    profiler_ = std::make_unique<Profiler>(specs_.size(), options_.stuck_after);
    for (OperatorId id = 0; id < specs_.size(); ++id) {
      contexts_.push_back(std::make_unique<OperatorContext>(id, specs_[id], *engine_));
      const auto named = desired.models.find(id);
      const ThreadingModel model = named == desired.models.end() ? specs_[id].model : named->second;
      ports_.push_back(specs_[id].input == nullptr ? nullptr : std::make_unique<Port>(*contexts_[id], *engine_, model));
    }
    for (const auto& [from, to] : edges_) {
      contexts_[from]->add_consumer(ports_[to].get());
      contexts_[to]->add_input();
      ports_[to]->add_edge();
    }
    for (const auto& context : contexts_) terminals_left_ += context->is_terminal() ? 1 : 0;
    if (terminals_left_ == 0) over_ = true;  // no operators at all
  }

  // threads_mutex_ held.
  void set_thread_count(unsigned count) {
    if (engine_->is_stopping()) return;  // halt() has woken everybody, for good
    wanted_threads_ = bounded(count);
    unsigned able = 0;
    for (Worker& worker : workers_) {
      if (able < wanted_threads_ && !worker.is_stuck()) {
        worker.resume();
        ++able;
      } else {
        worker.suspend();
      }
    }
    for (; able < wanted_threads_; ++able) workers_.emplace_back(*engine_, workers_.size());
  }

  // The profiler's thread: looks, and replaces scheduler threads that got stuck until they come back.
  void profile() {
    std::unique_lock lock(over_mutex_);
    while (!changed_.wait_for(lock, options_.profile_period, [this] { return over_; })) {
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
    if (!profiler_->end()) return;
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
    return static_cast<unsigned>(
        std::ranges::count_if(workers_, [](const Worker& worker) { return !worker.is_parked() && !worker.is_stuck(); }));
  }

  [[nodiscard]] ThreadingModel model_of(OperatorId id) const {
    if (id >= ports_.size()) return specs_[id].input == nullptr ? ThreadingModel::Dedicated : specs_[id].model;
    return ports_[id] == nullptr ? ThreadingModel::Dedicated : ports_[id]->model();
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
    for (const auto& context : contexts_) context->interrupt();
    const std::lock_guard guard(threads_mutex_);
    for (Worker& worker : workers_) worker.resume();
    for (OperatorThread& thread : operator_threads_) thread.wake();
    engine_->idle.interrupt();
  }

  void join() {
    for (Worker& worker : workers_) worker.join();
    for (OperatorThread& thread : operator_threads_) thread.join();
    if (profiling_.joinable()) profiling_.join();
  }

  const SchedulerOptions options_;
  std::vector<OperatorSpec> specs_;
  std::vector<std::pair<OperatorId, OperatorId>> edges_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<OperatorContext>> contexts_;
  std::vector<std::unique_ptr<Port>> ports_;  // null for sources
  std::atomic<bool> started_{false};

  std::mutex apply_mutex_;
  mutable std::mutex threads_mutex_;
  std::deque<Worker> workers_;
  std::deque<OperatorThread> operator_threads_;
  std::vector<const Port*> dedicated_;
  std::unique_ptr<Profiler> profiler_;
  unsigned wanted_threads_ = 0;
  std::thread profiling_;

  mutable std::mutex over_mutex_;
  mutable std::condition_variable changed_;
  bool over_ = false;
  std::size_t terminals_left_ = 0;
  std::optional<Failure> failure_;
};

Scheduler::Scheduler(SchedulerOptions options) : state_(std::make_unique<State>(options)) {}
Scheduler::~Scheduler() = default;
OperatorId Scheduler::add_operator(OperatorSpec spec) { return state_->add(std::move(spec)); }
void Scheduler::connect(OperatorId from, OperatorId to) { state_->connect(from, to); }
void Scheduler::start(const Desired& desired) { state_->start(desired); }
InForce Scheduler::apply(const Desired& desired) { return state_->apply(desired); }
InForce Scheduler::in_force() const { return state_->in_force(); }
Sample Scheduler::sample() const { return state_->sample(); }
bool Scheduler::wait_for(std::chrono::nanoseconds duration) const { return state_->wait_for(duration); }
std::optional<Failure> Scheduler::failure() const { return state_->failure(); }
void Scheduler::end_source(OperatorId id) { state_->end_source(id); }
void Scheduler::stop(bool drain) { state_->stop(drain); }

}  // namespace rayelastic
