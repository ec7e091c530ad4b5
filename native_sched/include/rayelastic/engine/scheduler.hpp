// The native scheduler of one PE: operators, ports between them, threads, counters (PLDI'17 section 4.1, threading models of
// Middleware'19 section 2). It carries out a desired state and reports what is in force; it knows no goal, no trend, no
// clock period, no Python and no network.
//
// Use: add_operator and connect in any order, start once, then apply / sample / wait_for / failure from any thread, stop at the
// end (the destructor does it without draining).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "rayelastic/engine/latency.hpp"
#include "rayelastic/engine/token.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

using OperatorId = std::size_t;

struct SchedulerOptions {
  std::size_t queue_records = 1024;     // per port, rounded up to a power of two (P09); fewer if ring_bytes says so
  std::size_t ring_bytes = 32768;       // bounds a queue's records too, but never below 64: full queues of a long pipeline shall
                                        // stay in the cache (100 operators of 128 B: 2-3 times faster than with 128 KiB)
  std::size_t queue_bytes = 64U << 20;  // heap bytes that a queue may keep alive; one run always fits
  std::chrono::nanoseconds queue_work = std::chrono::milliseconds(1);  // work that may wait in a queue, as measured; never less than 4
                                                                       // records; 0: no bound
  std::chrono::nanoseconds run_work = {};                              // work of an output run where there are no queues; 0: no bound
  std::size_t run_records = 256;                                       // largest output run
  std::size_t run_bytes = 16384;                                       // bounds the run's records too, but never below 64 records
  std::size_t loop_bytes = 64U << 20;  // what may pile up on a feedback edge, or at a conjunctive port whose partner gets less of the
                                       // same stream, where waiting for room would be for ever; beyond it the PE fails
  unsigned max_threads = 256;          // bound of Desired::thread_count
  std::chrono::nanoseconds profile_period =
      std::chrono::milliseconds(10);                               // between two looks of the profiler (M02: 100 Hz); 0: no profiler,
                                                                   // and stuck threads are neither seen nor replaced
  std::chrono::nanoseconds stuck_after = std::chrono::seconds(1);  // a scheduler thread that long in user code is stuck
  std::vector<int> cpus = {};  // scheduler thread i runs on cpus[i % size] alone, e.g. ordered by NUMA node; empty: anywhere
  bool deep_copy = false;      // queues copy texts too, as the papers' engine did: for benchmarks alone
  ThreadHooks hooks = {};      // see token.hpp
};

// How a scheduler runs one of its operators.
struct Placement {
  ThreadingModel model = ThreadingModel::Manual;
  std::uint64_t skip = 0;  // of a source: so many records were submitted before a restart, and aren't again
  std::optional<std::chrono::nanoseconds> time_marks = {};  // of a source: it marks the time in its stream at most once a period
  std::shared_ptr<LatencyCounts> latency = {};              // how long the time marks that arrive here were under way
  WallClock clock = wall_clock;
};

// What shall be. Operators that are not named keep their model. Sources have a thread of their own whatever is asked.
struct Desired {
  unsigned thread_count = 1;  // scheduler threads; at least 1, at most max_threads
  std::map<OperatorId, ThreadingModel> models = {};
};

// What is. A conjunctive operator or the head of a loop, asked to be manual, is dynamic; so is one in about 1,000 operators in a row, one
// in 64 that give more than they take or give it to several others (their calls are inside one another). A thread that is stuck in user code is replaced
// by another and counted apart; a port switches when its next run arrives (an idle port keeps its old model until then).
struct InForce {
  unsigned thread_count = 0;                // scheduler threads that are neither suspended nor stuck
  unsigned stuck = 0;                       // in user code for longer than SchedulerOptions::stuck_after (P25)
  unsigned unsuspended = 0;                 // asked to suspend but still at work, stuck ones included (P25)
  std::vector<ThreadingModel> models = {};  // by operator; sources: Dedicated
};

struct OperatorSample {
  std::uint64_t tuples_in = 0;
  std::uint64_t tuples_out = 0;
  std::uint64_t cpu_ns = 0;      // by the profiler's snapshots (M02): CPU time inside its function, without that of operators downstream
  std::uint64_t time_ns = 0;     // likewise, time inside its function, whether it ran or waited (for input, the GIL, a CPU)
  std::uint64_t waited_ns = 0;   // likewise, of that, time asleep: it waited for something, not for a CPU
  std::uint64_t blocked_ns = 0;  // likewise, time that threads waited for room for what it gave
  std::size_t queued = 0;        // records in its port
  std::size_t queue_capacity = 0;
  ThreadingModel model = ThreadingModel::Manual;  // in force
  bool final = false;                             // has seen all its final marks
  std::uint64_t answered = 0;                     // Tally::Answered
  std::uint64_t skipped = 0;                      // Tally::Skipped
  std::uint64_t repaired = 0;                     // Tally::Repaired
  std::vector<std::uint64_t> untaken = {};        // records of output ports 1, 2, ... that nobody takes, by port
  std::size_t state_keys = 0;                     // of its store
  std::size_t state_bytes = 0;                    // memory of its store
  std::int64_t watermark = kNoWatermark;          // the last one before the end; kNoWatermark: none yet
};

// A counter of an operator as readers outside the engine see it. Times are in seconds.
struct OperatorCounter {
  const char* name;
  double (*read)(const OperatorSample& sample);
};

template <auto kMember>
double count_in(const OperatorSample& sample) {
  return static_cast<double>(sample.*kMember);
}
template <auto kMember>
double seconds_in(const OperatorSample& sample) {
  return static_cast<double>(sample.*kMember) * 1e-9;
}

// Every counter, once. Readers take them by name (OperatorSample in rayelastic/runtime/values/status.py), so the order doesn't matter.
inline constexpr std::array kOperatorCounters = {
    OperatorCounter{"tuples_in", count_in<&OperatorSample::tuples_in>},
    OperatorCounter{"tuples_out", count_in<&OperatorSample::tuples_out>},
    OperatorCounter{"queued", count_in<&OperatorSample::queued>},
    OperatorCounter{"queue_capacity", count_in<&OperatorSample::queue_capacity>},
    OperatorCounter{"cpu_seconds", seconds_in<&OperatorSample::cpu_ns>},
    OperatorCounter{"inside_seconds", seconds_in<&OperatorSample::time_ns>},
    OperatorCounter{"waited_seconds", seconds_in<&OperatorSample::waited_ns>},
    OperatorCounter{"blocked_seconds", seconds_in<&OperatorSample::blocked_ns>},
    OperatorCounter{"state_keys", count_in<&OperatorSample::state_keys>},
    OperatorCounter{"state_bytes", count_in<&OperatorSample::state_bytes>},
    OperatorCounter{"answered_by_python", count_in<&OperatorSample::answered>},
    OperatorCounter{"skipped", count_in<&OperatorSample::skipped>},
    OperatorCounter{"lines_repaired", count_in<&OperatorSample::repaired>},
    OperatorCounter{"model", count_in<&OperatorSample::model>},
    // in ticks; NaN: none yet
    OperatorCounter{"watermark",
                    [](const OperatorSample& sample) {
                      return sample.watermark == kNoWatermark ? std::numeric_limits<double>::quiet_NaN() : double(sample.watermark);
                    }},
    OperatorCounter{"untaken",
                    [](const OperatorSample& sample) {
                      return double(std::accumulate(sample.untaken.begin(), sample.untaken.end(), std::uint64_t{0}));
                    }},
};

struct Sample {
  std::vector<OperatorSample> operators = {};
  unsigned thread_count = 0;  // scheduler threads that are not suspended
  unsigned threads_idle = 0;  // of these, asleep for want of work
  std::uint64_t token_wait_ns = 0;
  std::uint64_t token_refusals = 0;  // dynamic ports put aside because the token was taken
  std::uint64_t reschedules = 0;     // pushes that found a full queue (P17)
  std::uint64_t sleeps = 0;          // of these, that had to sleep
  // What the profiler saw since the start, ns: CPU time outside of operators; time of scheduler threads that aren't suspended and, of
  // that, without work; time of all engine threads and, of that, waiting for room in a queue; looks.
  std::uint64_t engine_cpu_ns = 0;
  std::uint64_t scheduler_ns = 0;
  std::uint64_t idle_ns = 0;
  std::uint64_t thread_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t ticks = 0;
  unsigned stuck = 0;  // scheduler threads, see InForce
};

// An error of user code as a value. `record` is the input record that failed (empty if there is none); `chunks` keeps alive what
// its string views point to.
struct Failure {
  OperatorId operator_id = 0;
  std::string operator_name;
  std::int64_t index = -1;  // within the run that was processed
  std::size_t port = 0;     // the input port of that run; of a firing the first
  std::vector<std::byte> record = {};
  std::vector<ChunkRef> chunks = {};
  std::string message;  // empty if the function only returned REL_FAILED
};

// A source begins when an input port of another operator has ended, one of the first 32; or when nothing upstream of that port has moved for
// so long, for what is upstream may wait for the source.
struct Beginning {
  OperatorId source = 0;
  OperatorId id = 0;
  std::size_t port = 0;
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
};
inline constexpr std::size_t kPortsWaitedFor = 32;

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Throws std::invalid_argument, naming the operator, when what it says of itself contradicts itself.
  OperatorId add_operator(std::shared_ptr<Operator> op, Placement placement = {});
  // Throws std::invalid_argument for unknown operators or ports, a source as target, a sink as origin, or records of different size.
  // feedback: this edge closes a loop. It never makes its producer wait (SchedulerOptions::loop_bytes); the operator that it leads to,
  // the head of the loop, takes nothing new while what goes round doesn't fit into its queue, and is final when its other edges are
  // and the loop is empty. Marks other than the final one don't go round.
  void connect(OperatorId from, OperatorId to, std::size_t output_port = 0, std::size_t input_port = 0, bool feedback = false);
  // The threads that PLDI'17 section 4.2.3 asks for at least, so that none is missing where operators block (P33). Fewer work too:
  // a thread that waits at a conjunctive operator is replaced for that time.
  [[nodiscard]] unsigned minimum_threads() const;

  // Starts all threads. Throws std::invalid_argument for a cycle without feedback edge, a loop with a second entry, loop or
  // conjunctive operator inside, a port that nothing feeds, or an unknown operator in `desired`; std::system_error when threads can't be had. `desired.models` goes before Placement::model.
  void start(const Desired& desired);
  // Idempotent, on a live PE; waits up to 50 ms for the change to happen, then answers with what is in force.
  InForce apply(const Desired& desired);
  [[nodiscard]] InForce in_force() const;
  [[nodiscard]] Sample sample() const;

  // True when the PE is over: all operators final, failed, or stopped. False after `duration`.
  bool wait_for(std::chrono::nanoseconds duration) const;
  // The first failure, if any.
  [[nodiscard]] std::optional<Failure> failure() const;
  // Ends one source as if it had no more tuples; the others go on. Throws std::invalid_argument if it is no source.
  void end_source(OperatorId id);

  // Brings operators to their safe points and keeps them there: none of them runs, what comes for them waits, and their state may be
  // exported, imported and removed until release(). Others go on as far as they can; threads that wait are replaced. A source is held
  // when it submits nothing: its tuples_out is its position, exactly.
  // drain: before an operator is held, what waits at it is processed, if all that feeds it is held too (or was before).
  // Empty when done; otherwise why not, naming the operator, and none is held that wasn't before. May be called again for more operators:
  // upstream ones first, for one that is in the middle of a call has to get rid of its output. Waits up to `patience`. Call without the
  // GIL. Throws std::invalid_argument for an unknown operator, std::logic_error before the start.
  [[nodiscard]] std::string hold(const std::vector<OperatorId>& ids, bool drain, std::chrono::nanoseconds patience);
  // Has an operator that is held take into its state what producers took in part since the last mark (Operator::takes_partial_runs). Empty when
  // done; otherwise why not. Waits up to `patience` for a producer that is at it. Throws StateError as Operator::settle does.
  [[nodiscard]] std::string take_in_parts(OperatorId id, std::chrono::nanoseconds patience);
  // All go on. Idempotent; a stop does it too. finish = false, after end_source of every source: as for stop.
  void release(bool finish = true);
  // Some go on, the others stay held. Throws std::invalid_argument for an unknown operator.
  void let_go(const std::vector<OperatorId>& ids);

  // A source begins once an input port of another operator has ended, or stands still; it can be held and sends marks all the same. Before the start; throws
  // std::invalid_argument for what is no source, or no port of the first 32, and std::logic_error after the start.
  void begin_after(const Beginning& beginning);

  // Epochs: each source sends a mark where it is held, and goes on; what an operator had taken when the mark had come by all of its edges is
  // exactly what those upstream had sent before theirs. Not for graphs with loops.
  // Before the start: which operators are to be saved where the mark is: their state is copied there, or they are held, until let_go. Throws
  // std::logic_error after it.
  void stop_at_epochs(std::vector<OperatorId> ids);
  // Whether the marks of the last epoch have all been sent, and its sources let go; waits for that. To be asked before these are held.
  [[nodiscard]] bool wait_sent(std::chrono::nanoseconds patience) const;
  // Sources that are held; epochs are numbered upwards from 1. False: the last one's are still being sent, and nothing is done.
  [[nodiscard]] bool send_epoch(const std::vector<OperatorId>& sources, std::int64_t epoch);
  // Those of `ids` that are held, or whose state was copied, at the mark of that epoch, or that have ended before it; waits until there is one, or up to `patience`.
  // Call without the GIL.
  [[nodiscard]] std::vector<OperatorId> wait_epoch(const std::vector<OperatorId>& ids, std::int64_t epoch,
                                                   std::chrono::nanoseconds patience);
  // What an operator kept at that mark, if that is copied: once. It may be read for longer than there is this scheduler.
  [[nodiscard]] std::shared_ptr<StateCopy> take_copy(OperatorId id, std::int64_t epoch);
  // Marks up to that one mean nothing any more, nobody waits for them, and who is held at one goes on. Any thread, at any time.
  void abandon_epochs(std::int64_t epoch);

  // Soon calls an operator that takes commands (Operator::takes_commands) with a Command mark, after what waits at its port, as long as it
  // isn't final. Returns at once.
  void poke(OperatorId id);
  // drain: sources end, what is under way is processed, then threads end; otherwise what is under way is dropped. Blocks until
  // all threads have ended; may be called again, and stop(false) from another thread cuts a drain short. Call without the GIL.
  // finish = false, with drain: only sinks, and those who tell the end to others (tells_others), get their call at the end of the input; the stream isn't at its end, it goes on elsewhere from
  // the state that operators have now. What held sources hold back isn't submitted.
  void stop(bool drain, bool finish = true);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rayelastic
