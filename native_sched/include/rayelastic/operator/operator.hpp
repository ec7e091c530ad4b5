// What the scheduler knows of an operator, and what an operator may ask of the engine while it runs.
// Nothing here knows queues, threads or policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
enum class MarkKind : std::uint8_t { Split, Watermark, Epoch, Flush, Time, Turn, Final, Probe, Command };

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

// What one call of a user's function is for. A function called for each record may take seconds for one, which nobody knows before the
// first; a function that takes whole runs makes more of longer ones.
enum class CalledFor : std::uint8_t { Unknown, Record, Run };

// An operator as the scheduler runs it.
struct OperatorSpec {
  std::string name = {};
  rel_process process = nullptr;
  std::uint32_t flags = 0;                    // rel_flags
  std::shared_ptr<void> state = {};           // handed to process as it is, unless REL_KEYED
  std::shared_ptr<const Schema> input = {};   // of input port 0; null for sources
  std::shared_ptr<const Schema> output = {};  // of output port 0; null for sinks
  std::shared_ptr<KeyedState> keyed = {};     // with REL_KEYED
  std::shared_ptr<StateTable> store = {};     // what it keeps, for those who move and count it; `keyed` if nothing is said
  std::uint64_t skip = 0;                     // of a source: so many records were submitted before a restart, and aren't again
  void (*interrupt)(void* state) = nullptr;   // unblocks a process call that waits; called from any thread, once, at stop
  // Called for each mark but Final and Probe, between two runs, before it goes on downstream; false: it goes no further.
  bool (*marked)(void* state, Mark mark, rel_context* context) = nullptr;
  std::shared_ptr<const Recovery> recovery = {};  // goes on behind a record that the function fails on; null: the failure is reported
  bool tells_others = false;                      // of the end of its stream, also where that isn't at its end: it goes on elsewhere
  // Whether it will still give something for what it has taken, when it is poked; any thread asks. Who drains it waits for that.
  bool (*pending)(void* state) = nullptr;
  // Of an operator to which the order of records between two marks is nothing: takes in a run beside `process`, at the same time, in a
  // part of the state that is its own. Called by a producer who finds a queue full, and never while a mark is on its way from there: so
  // `marked`, and `process` at the end, have what it took, and nobody is in it. Negative: REL_FAILED(index), and why in `problem`.
  std::int64_t (*partial)(const void* in, std::int64_t n, void* state, std::string& problem) = nullptr;
  bool (*has_partial_room)(void* state) = nullptr;  // asked before; no: not until the next mark
  // To be called by whoever reads the state without a mark, with the operator held and nobody in `partial`: everything is held, or by
  // Scheduler::take_in_parts. Throws StateError; the operator fails then at its next call.
  void (*settle)(void* state) = nullptr;
  // It keeps nothing and sends no marks: `process` may be called by several threads, each with a context of its own.
  bool reentrant = false;
  CalledFor called_for = CalledFor::Unknown;
  bool commanded = false;  // Scheduler::poke may send it Command marks
  ThreadingModel model = ThreadingModel::Manual;
  std::vector<std::shared_ptr<const Schema>> further_inputs = {};   // of input ports 1, 2, ...
  std::vector<std::shared_ptr<const Schema>> further_outputs = {};  // of output ports 1, 2, ...: written to by rel_emit
  // The firing rule. Empty: disjunctive, called with a run of any port (rel_port). Else conjunctive, one demand for each input port:
  // called when all have what they want (rel_staged). Such an operator always has queues, and passes on no marks but the final one.
  std::vector<Demand> demands = {};
  std::shared_ptr<Stages> stages = {};  // where they wait; null: in the engine's own
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
  // OperatorSpec::state, also where `state` is slots.
  [[nodiscard]] virtual void* own_state() const { return nullptr; }
  // What rel_watermark does; a call with n = 0 is then the last one.
  [[nodiscard]] virtual std::int64_t watermark() const { return rayelastic::kEndOfTime; }
  [[nodiscard]] virtual bool stopping() const = 0;
};
