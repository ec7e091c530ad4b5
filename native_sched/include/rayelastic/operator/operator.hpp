// What the scheduler knows of an operator, and what an operator may ask of the engine while it runs.
// Nothing here knows queues, threads or policies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/abi.h"
#include "rayelastic/record/chunk.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

// Records that move together. Borrows everything: records and chunks stay valid for the length of the call that it is
// passed to. `chunks` are those that the records' string views may point into. `home`, if any, owns the memory of the records: whoever
// may write to them may also share it and so keep them, where they are, for longer than the call.
struct Run {
  const std::byte* records = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;
  std::span<Chunk* const> chunks = {};
  Chunk* home = nullptr;
};

// Flush is the coordinator's: where it has arrived, all that was sent before it on its way has (router.hpp). Time samples how long records
// are under way (latency.hpp); it takes one way at a fork, so that it doesn't multiply. Split says of which part of its source, such as a
// file, the records behind it are (splits.hpp). Turn ends a part of a stream that goes through
// several channels and shall come out in order (channels.hpp). The last two never leave a PE: Probe goes round a loop and finds out
// whether the loop is empty, Command tells an operator that somebody wants something of it.
enum class MarkKind : std::uint8_t { Split, Watermark, Barrier, Flush, Time, Turn, Final, Probe, Command };

struct Mark {
  constexpr Mark(MarkKind of = MarkKind::Final, std::int64_t what = 0, std::uint32_t by = 0) noexcept : kind(of), edge(by), value(what) {}

  MarkKind kind;
  std::uint32_t edge;  // by which edge of its receiver it comes; the engine's
  std::int64_t value;
};

// Event time is what records say of when they happened, in ticks of a unit that the operators agree on. A watermark of `value` says that
// records with times up to it, `value` included, have come; later ones are late. Several inputs: the least of theirs counts.
inline constexpr std::int64_t kNoWatermark = INT64_MIN;  // before the first
inline constexpr std::int64_t kEndOfTime = INT64_MAX;    // all inputs have ended
inline constexpr std::int64_t kIdle = kEndOfTime;        // of a mark: who sends it has nothing for now, and doesn't keep others waiting

enum class ThreadingModel : std::uint8_t { Manual, Dynamic, Dedicated };

class KeyedState;  // keyed_state.hpp
class StateCopy;   // state_copy.hpp
class Stages;      // stages.hpp
class StateTable;  // state_table.hpp
class Recovery;    // recovery.hpp

// What an operator counts of its tuples besides those that come and go.
enum class Tally : std::uint8_t {
  Answered,  // compiled code refused them, Python answered
  Skipped,   // left out, because the function failed on them
  Repaired,  // of a text source: lines with bytes that aren't UTF-8
};

// How many records a conjunctive operator wants of an input port at each firing (J02).
struct Demand {
  enum class Kind : std::uint8_t { Exact, AtLeast };
  std::int64_t count = 1;
  Kind kind = Kind::Exact;
};

// Of an operator that would pass runs on as they are: the engine has them go by it, unseen, but for one in kSeen. Only to a manual operator that
// alone takes its output.
struct Bypass {
  static constexpr std::uint32_t kSeen = 16;

  std::atomic<bool> open{false};  // relaxed: whoever shuts it from another thread sends a mark as well
  std::uint32_t runs = 0;         // this one and the next: whoever runs the operator
  std::uint64_t records = 0;      // that went by; the operator may set it back
};

// What one call of a user's function is for. A function called for each record may take seconds for one, which nobody knows before the
// first; a function that takes whole runs makes more of longer ones.
enum class CalledFor : std::uint8_t { Unknown, Record, Run };

using Schemas = std::vector<std::shared_ptr<const Schema>>;

// An operator: what it is called for, and its state as members. Each kind is a class that derives from this one; the scheduler calls its methods
// and asks nobody which kind it is.
//
// Threads: one thread at a time is in an operator, whichever that is, but for the methods under "any thread".
// Results: `process`, `on_watermark`, `on_port_end` and `finish` leave records in `out`, which has room for `capacity`, and return how many;
//   REL_STOPPED and REL_FAILED(i) as rel_process does (abi.h). More goes out by rel_context::flush and emit.
class Operator {
 public:
  Operator(std::string name, Schemas inputs, Schemas outputs, std::uint32_t flags = 0)
      : name_(std::move(name)), inputs_(std::move(inputs)), outputs_(std::move(outputs)), flags_(flags) {}
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Of the ports; no inputs: a source, no outputs: a sink.
  [[nodiscard]] const Schemas& inputs() const noexcept { return inputs_; }
  [[nodiscard]] const Schemas& outputs() const noexcept { return outputs_; }
  [[nodiscard]] std::uint32_t flags() const noexcept { return flags_; }  // rel_flags
  [[nodiscard]] bool has_any(std::uint32_t flags) const noexcept { return (flags_ & flags) != 0; }

  // --- calls
  // A run of one input port (rel_context::port), or the runs of a firing; a source emits what it has, in = null and n = 0.
  [[nodiscard]] virtual std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity,
                                             rel_context* context) = 0;
  // With REL_ON_WATERMARK: its watermark has advanced to this one, which the operator passes on itself, if at all.
  [[nodiscard]] virtual std::int64_t on_watermark(std::int64_t /*watermark*/, std::byte* out, std::int64_t capacity, rel_context* context) {
    return process(nullptr, 0, out, capacity, context);
  }
  // With REL_ON_PORT_END: an input port has ended (rel_context::port), and another hasn't.
  [[nodiscard]] virtual std::int64_t on_port_end(std::byte* out, std::int64_t capacity, rel_context* context) {
    return process(nullptr, 0, out, capacity, context);
  }
  // With REL_ON_FINISH: all inputs have ended.
  [[nodiscard]] virtual std::int64_t finish(std::byte* out, std::int64_t capacity, rel_context* context) {
    return on_watermark(kEndOfTime, out, capacity, context);
  }
  // A mark has come, but Final, Probe and Command, and no watermark with REL_ON_WATERMARK. False: it goes no further.
  [[nodiscard]] virtual bool on_mark(Mark /*mark*/, rel_context* /*context*/) { return true; }
  // The barrier of a checkpoint has come by all edges: what is processed by now belongs to the checkpoint. Likewise.
  [[nodiscard]] virtual bool on_barrier(std::int64_t checkpoint, rel_context* context) {
    return on_mark({MarkKind::Barrier, checkpoint}, context);
  }
  // Scheduler::poke; only if takes_commands().
  virtual void on_command(rel_context* /*context*/) {}

  // --- partial runs: a producer that finds the queue full has the operator process a run beside `process`, in a part of the state of its own.
  // Only for operators to which the order of records between two marks is nothing. Never called while a mark is under way from there, so
  // on_mark and finish find what it processed, and nobody in it.
  [[nodiscard]] virtual bool takes_partial_runs() const { return false; }
  // n, or REL_FAILED(i) and the reason in `problem`.
  [[nodiscard]] virtual std::int64_t process_partial(const std::byte* /*in*/, std::int64_t /*n*/, std::string& /*problem*/) { return 0; }
  // No: not until the next mark.
  [[nodiscard]] virtual bool has_partial_room() const { return false; }
  // Merges it into the state, for whoever reads that without a mark, with the operator held. Throws StateError; the next call fails then.
  virtual void settle() {}

  // --- any thread
  // Unblocks a call that waits; called once, at the stop.
  virtual void interrupt() {}
  // Whether it will emit more for what it has received, when it is poked: a drain waits for that.
  [[nodiscard]] virtual bool has_pending() const { return false; }
  // Null: it keeps nothing that is moved, counted or saved.
  [[nodiscard]] virtual StateTable* state() { return nullptr; }

  // --- traits
  // The firing rule. Empty: disjunctive, called with a run of any port. Else conjunctive, one demand for each input port: called when all have
  // what they want (rel_staged). Such an operator always has queues, and passes on no marks but the final one.
  [[nodiscard]] virtual const std::vector<Demand>& demands() const {
    static const std::vector<Demand> kNone;
    return kNone;
  }
  // Where the records of a conjunctive operator wait; null: in the engine's own.
  [[nodiscard]] virtual Stages* stages() { return nullptr; }
  // Replaces the result of a record that the function fails on; null: the failure is reported.
  [[nodiscard]] virtual const Recovery* recovery() const { return nullptr; }
  // What rel_keep_text writes to.
  [[nodiscard]] virtual KeyedState* keyed_state() { return nullptr; }
  [[nodiscard]] virtual bool takes_commands() const { return has_any(REL_ON_COMMAND); }
  // Null: it sees every run.
  [[nodiscard]] virtual Bypass* bypass() { return nullptr; }
  // `finish` is called also where its stream isn't at its end but continues elsewhere, because it announces the end to others.
  [[nodiscard]] virtual bool announces_end() const { return false; }
  // It keeps nothing and sends no marks: several threads may call `process`, each with a context of its own.
  [[nodiscard]] virtual bool is_reentrant() const { return false; }
  [[nodiscard]] virtual CalledFor called_for() const { return CalledFor::Unknown; }
  // Whether runs are to be no longer than longest_run(), which is asked before each.
  [[nodiscard]] virtual bool bounds_runs() const { return false; }
  [[nodiscard]] virtual std::size_t longest_run() const { return SIZE_MAX; }

 private:
  const std::string name_;
  const Schemas inputs_;
  const Schemas outputs_;
  const std::uint32_t flags_;
};

}  // namespace rayelastic

// The engine's side of an operator call, opaque to compiled code. One context per operator; never two threads at once.
struct rel_context {
  virtual ~rel_context() = default;

  // Submits out[0..n) and the chunks attached since the last submit. False: stop.
  [[nodiscard]] virtual bool flush(std::int64_t n) = 0;
  virtual void finish() = 0;
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  // Keeps `chunk` alive for the records emitted until the next submit (in addition to the chunks of the input run).
  virtual void attach(rayelastic::Chunk* chunk) = 0;
  // What rel_keep_text does. False: the operator has no keyed state.
  [[nodiscard]] virtual bool keep_text(void* /*field*/, const char* /*text*/, std::uint32_t /*bytes*/) { return false; }
  virtual void fail(std::string message) = 0;
  // The chunks of the run that is being processed.
  [[nodiscard]] virtual std::span<rayelastic::Chunk* const> input_chunks() const = 0;
  // Passes a mark downstream, to all outputs, after what was flushed or emitted so far.
  virtual void mark(rayelastic::Mark mark) = 0;
  // To one output port alone. False: stop.
  [[nodiscard]] virtual bool mark_output(std::int32_t /*output_port*/, rayelastic::Mark /*mark*/) { return false; }
  // How many records an output port takes now without making the operator wait; it may be more in a moment, and with one producer not fewer.
  [[nodiscard]] virtual std::size_t room(std::int32_t /*output_port*/) const { return SIZE_MAX; }
  // What rel_port, rel_emit, rel_staged and rel_firings do; as they are for an operator with one input port and one output port.
  [[nodiscard]] virtual std::int32_t port() const { return 0; }
  [[nodiscard]] virtual bool emit(std::int32_t /*output_port*/, const void* /*records*/, std::int64_t /*n*/) { return false; }
  [[nodiscard]] virtual const void* staged(std::int32_t /*port*/, std::int64_t& n) const {
    n = 0;
    return nullptr;
  }
  [[nodiscard]] virtual std::int64_t firings() const { return -1; }
  virtual void count(rayelastic::Tally /*what*/, std::int64_t /*n*/) {}
  // What rel_kept does.
  virtual void kept(std::int64_t /*n*/) {}
  // What rel_watermark does; a call with n = 0 is then the last one.
  [[nodiscard]] virtual std::int64_t watermark() const { return rayelastic::kEndOfTime; }
  [[nodiscard]] virtual bool stopping() const = 0;
};
