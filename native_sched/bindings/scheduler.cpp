// rayelastic._native.Scheduler, and what happens to running schedulers when the interpreter exits.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "python/gate/python_gate.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "record/record_codec.hpp"
#include "scheduler_values.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

using Seconds = std::chrono::duration<double>;
constexpr std::chrono::milliseconds kSignalPeriod{50};  // how long Ctrl-C may wait in wait()
constexpr double kExitPatience = 2;                     // seconds, for user code that hangs when the interpreter exits

std::chrono::nanoseconds nanoseconds(double seconds) { return std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds)); }

class SchedulerObject {
 public:
  explicit SchedulerObject(const SchedulerOptions& options) : scheduler_(std::make_shared<Scheduler>(options)) { running().insert(this); }
  SchedulerObject(const SchedulerObject&) = delete;
  SchedulerObject& operator=(const SchedulerObject&) = delete;
  ~SchedulerObject() {
    running().erase(this);
    // Operator threads may need the GIL to come to their end.
    const nb::gil_scoped_release released;
    scheduler_.reset();
  }

  // All that are alive; guarded by the GIL.
  static std::set<SchedulerObject*>& running() {
    static std::set<SchedulerObject*> all;
    return all;
  }

  OperatorId add(const OperatorObject& operator_object, const std::optional<std::string>& model, std::uint64_t skip) {
    const std::shared_ptr<Operator>& op = operator_object.op;
    Placement placement = operator_object.placement;
    placement.skip = skip;
    if (model.has_value()) placement.model = model_named(*model);
    inputs_.push_back(op->inputs());
    failures_.push_back(operator_object.failure);
    names_.push_back(op->name());
    try {
      return scheduler_->add_operator(op, std::move(placement));
    } catch (...) {
      inputs_.pop_back(), failures_.pop_back(), names_.pop_back();
      throw;
    }
  }

  [[nodiscard]] bool wait(std::optional<double> timeout) const {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
      const Seconds left =
          timeout.has_value() ? Seconds(Seconds(*timeout) - (std::chrono::steady_clock::now() - start)) : Seconds(kSignalPeriod);
      bool over = false;
      {
        const nb::gil_scoped_release released;
        over = scheduler_->wait_for(
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::clamp<Seconds>(left, Seconds(0), Seconds(kSignalPeriod))));
      }
      if (over) return true;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (timeout.has_value() && left <= Seconds(kSignalPeriod)) return false;
    }
  }

  void stop(bool drain, bool finish) {
    const nb::gil_scoped_release released;
    scheduler_->stop(drain, finish);
  }

  void hold(const std::vector<OperatorId>& operators, bool drain, double timeout) {
    std::string refusal;
    {
      const nb::gil_scoped_release released;
      refusal = scheduler_->hold(operators, drain, nanoseconds(timeout));
    }
    if (refusal.empty()) return;
    PyErr_SetString(PyExc_TimeoutError, refusal.c_str());
    throw nb::python_error();
  }

  // As stop(false), in a thread of its own, which Python 3.12 has no more of while the interpreter exits. False: user code hasn't come
  // back. Then this may be called again; until it returns true the scheduler, and all that the code may touch, is never destroyed.
  bool stop_within(double seconds) {
    if (!stopped_.valid()) {
      std::packaged_task<void()> stop([scheduler = scheduler_] { scheduler->stop(false); });
      std::shared_future<void> stopped = stop.get_future().share();
      std::thread(std::move(stop)).detach();  // may throw; then nothing has begun
      stopped_ = std::move(stopped);
      kept_ = new std::shared_ptr<Scheduler>(scheduler_);
    }
    {
      const nb::gil_scoped_release released;
      if (stopped_.wait_for(nanoseconds(seconds)) != std::future_status::ready) return false;
    }
    delete std::exchange(kept_, nullptr);
    stopped_.get();  // what the stop threw
    return true;
  }

  [[nodiscard]] Scheduler& scheduler() const noexcept { return *scheduler_; }
  [[nodiscard]] OperatorPause pause(OperatorId id, double timeout) const {
    return {.owner = scheduler_, .id = id, .timeout = nanoseconds(timeout)};
  }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  [[nodiscard]] std::optional<FailureObject> failure() const {
    std::optional<Failure> failed = scheduler_->failure();
    if (!failed.has_value()) return std::nullopt;
    const OperatorId id = failed->operator_id;
    nb::object record = nb::none(), unreadable = nb::none();
    if (!failed->record.empty() && id < inputs_.size() && failed->port < inputs_[id].size()) {
      const RecordCodec codec(failed->operator_name, inputs_[id][failed->port], nullptr);
      PyObject* decoded = codec.decode_one(failed->record.data());
      if (decoded != nullptr) record = nb::steal(decoded);
      if (decoded == nullptr) unreadable = nb::borrow(nb::python_error().value());  // nanoseconds that no datetime holds, what isn't JSON
    }
    PyObject* exception = id < failures_.size() && failures_[id] != nullptr ? failures_[id]->exception() : nullptr;
    const nb::object otherwise = failed->message.empty() ? unreadable : nb::none();  // what the failure itself says counts more
    return FailureObject{*std::move(failed), std::move(record), exception != nullptr ? nb::borrow(exception) : otherwise};
  }

 private:
  std::shared_ptr<Scheduler> scheduler_;
  std::vector<std::vector<std::shared_ptr<const Schema>>> inputs_;  // by operator and port
  std::vector<std::shared_ptr<PythonFailure>> failures_;
  std::vector<std::string> names_;
  std::shared_future<void> stopped_;            // valid once stop_within was called
  std::shared_ptr<Scheduler>* kept_ = nullptr;  // what is never destroyed, while user code hasn't come back
};

Desired desired_of(unsigned thread_count, const std::map<OperatorId, std::string>& models) {
  Desired desired{.thread_count = thread_count};
  for (const auto& [id, model] : models) desired.models.emplace(id, model_named(model));
  return desired;
}

void stop_all() {
  // Waiting lets go of the GIL: a scheduler may come or go meanwhile, so look anew each time.
  while (!SchedulerObject::running().empty()) {
    SchedulerObject* scheduler = *SchedulerObject::running().begin();
    SchedulerObject::running().erase(scheduler);
    const nb::object kept = nb::find(*scheduler);
    (void)scheduler->stop_within(kExitPatience);
  }
  close_gate();
}

}  // namespace

void bind_scheduler(nb::module_& module) {
  const SchedulerOptions defaults;
  nb::class_<SchedulerObject>(module, "Scheduler",
                              "The native scheduler of one PE. All methods may be called from any thread; those that wait release the GIL.")
      .def(
          "__init__",
          [](SchedulerObject* self, std::size_t queue_records, std::size_t queue_bytes, std::size_t run_records, std::size_t run_bytes,
             double run_work, std::vector<int> cpus, bool deep_copy) {
            new (self) SchedulerObject(SchedulerOptions{.queue_records = queue_records,
                                                        .queue_bytes = queue_bytes,
                                                        .run_work = nanoseconds(run_work),
                                                        .run_records = run_records,
                                                        .run_bytes = run_bytes,
                                                        .profile_period = std::chrono::milliseconds(10),
                                                        .cpus = std::move(cpus),
                                                        .deep_copy = deep_copy,
                                                        .hooks = python_hooks()});
          },
          nb::arg("queue_records") = defaults.queue_records, nb::arg("queue_bytes") = defaults.queue_bytes,
          nb::arg("run_records") = defaults.run_records, nb::arg("run_bytes") = defaults.run_bytes, nb::arg("run_work") = 0.0,
          nb::arg("cpus") = std::vector<int>(), nb::arg("deep_copy") = false,
          "Sizes of the queues in front of operators, and of the runs that move; run_work: seconds of work that a run may be where\n"
          "there are no queues (0: any); cpus: thread i runs on cpus[i % len(cpus)] alone; deep_copy is for benchmarks alone.")
      .def(
          "add", &SchedulerObject::add, nb::arg("operator"), nb::arg("model") = nb::none(), nb::arg("skip") = std::uint64_t{0},
          nb::sig("def add(self, operator: Operator, model: str | None = None, skip: int = 0) -> int"),
          "Adds an operator before the start, with threading model 'manual', 'dynamic' or 'dedicated'; returns its number. skip: how many\n"
          "records a source has submitted before, which it reads again and doesn't submit again.")
      .def(
          "connect",
          [](SchedulerObject& self, OperatorId from, OperatorId to, std::size_t output_port, std::size_t input_port, bool feedback) {
            self.scheduler().connect(from, to, output_port, input_port, feedback);
          },
          nb::arg("from_"), nb::arg("to"), nb::arg("output_port") = 0, nb::arg("input_port") = 0, nb::arg("feedback") = false,
          "Makes a port of `to` a consumer of what `from_` emits by one of its ports; before the start. feedback: this edge closes a loop.")
      .def(
          "minimum_threads", [](const SchedulerObject& self) { return self.scheduler().minimum_threads(); },
          "The threads that are to be had at least, so that none is missing where operators wait for another port; fewer work too.")
      .def(
          "start",
          [](SchedulerObject& self, unsigned thread_count, const std::map<OperatorId, std::string>& models) {
            const Desired desired = desired_of(thread_count, models);
            const nb::gil_scoped_release released;
            self.scheduler().start(desired);
          },
          nb::arg("thread_count") = 1, nb::arg("models") = std::map<OperatorId, std::string>(),
          nb::sig("def start(self, thread_count: int = 1, models: collections.abc.Mapping[int, str] = {}) -> None"),
          "Starts all threads. ValueError: a cycle, an operator that nothing feeds, an unknown operator in models.")
      .def(
          "apply",
          [](SchedulerObject& self, unsigned thread_count, const std::map<OperatorId, std::string>& models) {
            const Desired desired = desired_of(thread_count, models);
            InForce in_force;
            {
              const nb::gil_scoped_release released;
              in_force = self.scheduler().apply(desired);
            }
            return in_force_object(in_force);
          },
          nb::arg("thread_count"), nb::arg("models") = std::map<OperatorId, std::string>(),
          nb::sig("def apply(self, thread_count: int, models: collections.abc.Mapping[int, str] = {}) -> InForce"),
          "Brings about what is desired, idempotently; answers with what is in force.")
      .def(
          "in_force", [](const SchedulerObject& self) { return in_force_object(self.scheduler().in_force()); }, "What is in force now.")
      .def(
          "sample", [](const SchedulerObject& self) { return sample_object(self.scheduler().sample(), self.names()); },
          "Counters: per operator in order of number, and of the threads.")
      .def("wait", &SchedulerObject::wait, nb::arg("timeout") = nb::none(),
           "True when all is over: every operator final, failed, or stopped. False after timeout seconds. Ctrl-C gets through.")
      .def("failure", &SchedulerObject::failure, nb::sig("def failure(self) -> OperatorFailure | None"), "The first failure, if any.")
      .def(
          "end_source",
          [](const SchedulerObject& self, OperatorId id) {
            const nb::gil_scoped_release released;
            self.scheduler().end_source(id);
          },
          nb::arg("operator"), "Ends one source as if it had no more tuples; the others go on.")
      .def(
          "poke", [](const SchedulerObject& self, OperatorId id) { self.scheduler().poke(id); }, nb::arg("operator"),
          "Has an operator that takes commands (a router) look at them soon.")
      .def("hold", &SchedulerObject::hold, nb::arg("operators"), nb::arg("drain") = false, nb::arg("timeout") = 10.0,
           nb::sig("def hold(self, operators: collections.abc.Sequence[int], drain: bool = False, timeout: float = 10.0) -> None"),
           "Keeps operators at their safe points until release(): none of them runs, what comes for them waits, their state may be moved.\n"
           "A source is held where it submits nothing: its tuples_out is its position. drain: what waits at those that only held operators "
           "feed\nis processed first. May be called again for operators downstream. TimeoutError: not within timeout seconds; then none of "
           "them is held.")
      .def("pause", &SchedulerObject::pause, nb::arg("operator"), nb::arg("timeout") = 10.0,
           "How to have an operator at its safe point while its state is worked on; waits for nothing yet. One such work at a time.")
      .def(
          "release",
          [](const SchedulerObject& self, bool finish) {
            const nb::gil_scoped_release released;
            self.scheduler().release(finish);
          },
          nb::arg("finish") = true,
          "All held operators go on. Idempotent; stop does it too. finish=False, after end_source of every source: as for stop.")
      .def(
          "let_go",
          [](const SchedulerObject& self, const std::vector<OperatorId>& operators) {
            const nb::gil_scoped_release released;
            self.scheduler().let_go(operators);
          },
          nb::arg("operators"), "Some go on, the other held ones stay.")
      .def(
          "begin_after",
          [](SchedulerObject& self, OperatorId source, OperatorId id, std::size_t port, double patience) {
            self.scheduler().begin_after({source, id, port, nanoseconds(patience)});
          },
          nb::arg("source"), nb::arg("operator"), nb::arg("port"), nb::arg("patience"),
          "Before the start: a source that begins once an input port of another operator has ended, or nothing upstream of it has moved "
          "for "
          "patience seconds.")
      .def(
          "stop_at_epochs",
          [](SchedulerObject& self, std::vector<OperatorId> operators) { self.scheduler().stop_at_epochs(std::move(operators)); },
          nb::arg("operators"),
          "Before the start: which operators are to be saved where the mark of an epoch is: their state is copied there, or they are held, "
          "until let_go.")
      .def(
          "send_epoch",
          [](SchedulerObject& self, const std::vector<OperatorId>& sources, std::int64_t epoch) {
            const nb::gil_scoped_release released;
            return self.scheduler().send_epoch(sources, epoch);
          },
          nb::arg("sources"), nb::arg("epoch"),
          "Has sources that are held send the mark of an epoch, 1 and up, and go on. False: the marks of the last one are still being "
          "sent.")
      .def(
          "wait_sent",
          [](const SchedulerObject& self, double timeout) {
            const nb::gil_scoped_release released;
            return self.scheduler().wait_sent(nanoseconds(timeout));
          },
          nb::arg("timeout"), "True once the marks of the last epoch have been sent: ask before its sources are held for the next one.")
      .def(
          "wait_epoch",
          [](SchedulerObject& self, const std::vector<OperatorId>& operators, std::int64_t epoch, double timeout) {
            const nb::gil_scoped_release released;
            return self.scheduler().wait_epoch(operators, epoch, nanoseconds(timeout));
          },
          nb::arg("operators"), nb::arg("epoch"), nb::arg("timeout"),
          nb::sig("def wait_epoch(self, operators: collections.abc.Sequence[int], epoch: int, timeout: float) -> list[int]"),
          "Those that are held, or whose state was copied, at the mark, or that have ended before it; waits until there is one, or timeout "
          "seconds.")
      .def(
          "take_copy",
          [](const SchedulerObject& self, OperatorId id, std::int64_t epoch) {
            std::shared_ptr<StateCopy> copy;
            {
              const nb::gil_scoped_release released;
              copy = self.scheduler().take_copy(id, epoch);
            }
            return copy != nullptr ? std::optional(StateCopyObject{.copy = std::move(copy)}) : std::nullopt;
          },
          nb::arg("operator"), nb::arg("epoch"), nb::sig("def take_copy(self, operator: int, epoch: int) -> StateCopy | None"),
          "The state of an operator at the mark, once; the operator goes on. None: it is held there, or has ended.")
      .def(
          "abandon_epochs",
          [](SchedulerObject& self, std::int64_t epoch) {
            const nb::gil_scoped_release released;
            self.scheduler().abandon_epochs(epoch);
          },
          nb::arg("epoch"), "Marks up to that one mean nothing any more, and who is held at one goes on.")
      .def("stop", &SchedulerObject::stop, nb::arg("drain") = false, nb::arg("finish") = true,
           "Ends all threads; with drain, sources end first and what is under way is processed. Idempotent. finish=False, with drain: the\n"
           "stream isn't at its end, it goes on elsewhere: only sinks get their call at the end of the input.")
      .def("stop_within", &SchedulerObject::stop_within, nb::arg("timeout"),
           "As stop(), for functions that may not return. False: after so many seconds one hasn't; it may be asked again. What it may "
           "touch\n"
           "stays until then, whoever drops the scheduler.");

  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_all));
}

}  // namespace rayelastic::python
