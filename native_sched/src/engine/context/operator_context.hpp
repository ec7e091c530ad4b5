// A running operator: what the engine does around its calls. It consists of parts, each with a header and an invariant of its own: its outputs and
// the memory of what it emits, how long its runs are, the GIL, its counters; for checkpoint barriers its alignment and where it is held; its
// partial run; watermarks, the ends of its inputs, the probe of a loop, the start of a source.
//
// Architecture section 4: scheduling decisions happen inside flush only (P06). Knows nothing of threads, queues or threading models.
// Invariant: at any time a single caller runs execute, accept or run_source (Port ensures it).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/context/alignment.hpp"
#include "engine/context/barrier_hold.hpp"
#include "engine/context/call_memory.hpp"
#include "engine/context/counters.hpp"
#include "engine/context/gil_gate.hpp"
#include "engine/context/input_ends.hpp"
#include "engine/context/loop_probe.hpp"
#include "engine/context/output_buffer.hpp"
#include "engine/context/outputs.hpp"
#include "engine/context/partial_run.hpp"
#include "engine/context/run_pace.hpp"
#include "engine/context/source_start.hpp"
#include "engine/context/watermarks.hpp"
#include "engine/control/hold.hpp"
#include "engine/engine.hpp"
#include "engine/graph/junction.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Port;

class alignas(64) OperatorContext final : public rel_context {
 public:
  OperatorContext(OperatorId id, std::shared_ptr<Operator> op, const Placement& placement, Engine& engine);

  // What an edge is to a loop.
  enum class Place : std::uint8_t { Outside, InLoop, Feedback };

  // Wiring, before the start.
  // `edge`: its number at the consumer.
  void add_consumer(std::size_t output, Port* port, std::uint32_t edge, Place place);
  // An edge that isn't feedback; its number.
  std::uint32_t add_input() {
    watermarks_.add_edge();
    return ends_.add_edge();
  }
  // Its consumers are complete.
  void keep_way();
  // Its inputs meet in a junction: there are several, or it is conjunctive.
  void meet(std::vector<Junction::Input> inputs);
  [[nodiscard]] Junction* junction() noexcept { return junction_.get(); }
  // One of its consumers has several edges: see operator_epochs.cpp.
  void align_with(OperatorContext& consumer) { alignment_.add_meeting(consumer); }
  [[nodiscard]] std::size_t inputs() const noexcept { return ends_.edges(); }
  // It can be run in part, as it is said by its specification, or as what it gives goes to `next` alone, which can. False: it can't.
  [[nodiscard]] bool run_in_parts(OperatorContext* next);
  [[nodiscard]] SourceStart& source_start() noexcept { return start_; }
  [[nodiscard]] const SourceStart& source_start() const noexcept { return start_; }
  // Where it is held at barriers.
  [[nodiscard]] BarrierHold& barrier_hold() noexcept { return barrier_hold_; }
  [[nodiscard]] const BarrierHold& barrier_hold() const noexcept { return barrier_hold_; }

  // Processes a run and submits what comes out. writable: the records are the callee's to overwrite. token_held: the caller
  // entered the token for this operator; it is left again here. False: stop.
  [[nodiscard]] bool execute(const Run& run, bool writable, bool token_held);
  [[nodiscard]] bool accept(Mark mark);
  // The same for an operator with a junction, inside its gate. Returns how many records it took, fewer if there is no room in a stage or in a loop; negative: stop.
  [[nodiscard]] std::int64_t take(std::size_t input, const Run& run, bool writable, bool token_held);
  [[nodiscard]] bool take(std::size_t input, Mark mark);
  // The producer's, beside whoever runs the operator (operator_parts.cpp): how many records were taken, all of them or none. Negative: stop.
  [[nodiscard]] std::int64_t take_partial(const Run& run);
  // Takes in what was taken so; it is held, and whoever holds it calls. False: somebody is in the part, and nobody enters it until
  // this is called again, or it is no longer to be settled. Throws StateError.
  [[nodiscard]] bool try_settle();
  [[nodiscard]] PartialRun& partial_run() noexcept { return partial_; }
  // The stage of that input is full and its producer about to wait. True: there is room now after all.
  [[nodiscard]] bool widen(std::size_t input);
  // The next port with a queue, if its output goes one way only; null otherwise. bounded: and no more goes there than comes in.
  [[nodiscard]] Port* next_port(bool bounded) const noexcept;
  // Runs a source until it has finished or has to stop.
  void run_source();

  [[nodiscard]] OperatorId id() const noexcept { return id_; }
  [[nodiscard]] Operator& op() const noexcept { return *op_; }
  [[nodiscard]] GilGate& gil() noexcept { return gil_; }
  // The GIL lock is to be entered before a run is taken; a firing enters it itself, and so does an operator that waits.
  [[nodiscard]] bool needs_token() const noexcept { return gil_.needs_lock() && !shape_.conjunctive; }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema(std::size_t input) const noexcept;
  [[nodiscard]] bool is_final() const noexcept { return is_final_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_ended(std::size_t port) const noexcept { return is_final() || ends_.has_ended(port); }
  [[nodiscard]] bool is_terminal() const noexcept { return outputs_.is_terminal(); }
  [[nodiscard]] std::uint64_t tuples_in() const noexcept {
    return counters_.in.get() + counters_.partial.get() + (partial_.twin == nullptr ? 0 : partial_.twin->tuples_in());
  }
  [[nodiscard]] std::uint64_t tuples_out() const noexcept {
    return counters_.out.get() + (partial_.twin == nullptr ? 0 : partial_.twin->tuples_out());
  }
  [[nodiscard]] std::uint64_t counted(Tally what) const noexcept {
    return counters_.counted(what) + (partial_.twin == nullptr ? 0 : partial_.twin->counted(what));
  }
  // Records of output ports 1, 2, ... that nobody takes, by port.
  [[nodiscard]] std::vector<std::uint64_t> untaken() const { return outputs_.untaken(); }
  // Calls the operator's interrupt hook, the first time. A source ends then.
  void interrupt();
  // Epochs (operator_epochs.cpp).
  // Of a source that is held: its mark goes out, at its position. False: stop.
  [[nodiscard]] bool send_epoch(std::int64_t epoch) { return is_final() || pass({MarkKind::Barrier, epoch}); }
  // The copy of its state at that barrier; null: there is none.
  [[nodiscard]] std::shared_ptr<StateCopy> take_copy(std::int64_t epoch) { return barrier_hold_.take_copy(epoch, op_); }
  // After Engine::abandoned or `stopping` is set: nobody waits for an epoch up to that one any more, nor is held at one.
  void give_epochs_up(std::int64_t epoch) noexcept;
  // Its safe point: entered around every run, firing and mark; by a source around what it submits, which may wait inside for ever.
  [[nodiscard]] Hold& safe_point() noexcept { return safe_point_; }

  // rel_context, called by the operator's function.
  [[nodiscard]] bool flush(std::int64_t n) override;
  void finish() override { call_.finished = true; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void attach(Chunk* chunk) override;
  [[nodiscard]] bool keep_text(void* field, const char* text, std::uint32_t bytes) override;
  void fail(std::string message) override;
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return call_.input.chunks; }
  void mark(Mark mark) override;
  [[nodiscard]] bool mark_output(std::int32_t output, Mark mark) override;
  [[nodiscard]] std::size_t room(std::int32_t output) const override;
  [[nodiscard]] bool stopping() const override;
  [[nodiscard]] std::int32_t port() const override;
  [[nodiscard]] bool emit(std::int32_t output, const void* records, std::int64_t n) override;
  [[nodiscard]] const void* staged(std::int32_t port, std::int64_t& n) const override;
  [[nodiscard]] std::int64_t firings() const override;
  void count(Tally what, std::int64_t n) override { counters_.count(what, n); }
  void kept(std::int64_t n) override { call_.kept = n; }
  [[nodiscard]] std::int64_t watermark() const override { return watermarks_.value(); }
  // The last watermark before the end, for whoever reads the counters: that of its inputs, or what it emits where it has none.
  [[nodiscard]] std::int64_t event_time() const noexcept { return watermarks_.event_time(); }

 private:
  // What a call without a run is for.
  enum class Occasion : std::uint8_t { Records, Watermark, PortEnd, Finish };

  // What doesn't change, of the records and the calls.
  struct Shape {
    Shape(const Operator& op, const Engine& engine);

    const std::size_t out_stride;
    const std::size_t capacity;  // records of the buffer
    const bool text_out;
    const bool source;
    const bool conjunctive;
    const bool bounded;  // the operator bounds the length of its runs
    const bool paced;    // it may emit more than it receives
    const bool whole;    // its calls take all of a run, where it works in place
  };

  // The call that is under way.
  struct Call {
    std::size_t in_stride = 0;  // of the port
    bool in_place = false;      // its records may be overwritten by the output, if the caller says so
    Run input = {};
    std::byte* out = nullptr;
    std::int64_t capacity = 0;
    Occasion occasion = Occasion::Records;
    bool flushing = false;
    bool needs_cleanup = false;  // there is a message, or memory was asked for
    bool refused = false;        // flush said stop
    bool finished = false;       // a source has no more
    bool in_mark = false;        // a source has entered its safe point for a mark
    std::int64_t kept = 0;       // what rel_kept said
    std::string message = {};
    OperatorContext* next_cleanup = nullptr;  // of a chain that a run goes down
  };

  // Into the safe point, when it is to be had; leaves the token before it waits. False: stop.
  [[nodiscard]] bool enter(bool& token_held) { return safe_point_.try_enter() || wait_released(token_held); }
  [[nodiscard]] bool wait_released(bool& token_held);
  template <class Body>
  [[nodiscard]] bool inside(Body body) {
    bool token_held = false;
    if (!enter(token_held)) return false;
    const bool ok = body();
    safe_point_.leave();
    return ok;
  }
  // A source whose stream goes on elsewhere from where it was held: what its function has made since isn't submitted.
  [[nodiscard]] bool is_cut_off() const noexcept {
    return engine_.is_stopping() || (is_interrupted_.load(std::memory_order_relaxed) && !engine_.finishing.load(std::memory_order_relaxed));
  }
  template <class Body>
  [[nodiscard]] bool inside_if_source(Body body) {
    if (!shape_.source || call_.in_mark) return body();
    return inside([&] { return !is_cut_off() && body(); });
  }
  // Where a run goes that goes down a chain, and the ports on its way that are locked until it is through.
  struct Onward {
    OperatorContext* next;
    Port* locked = nullptr;
  };
  [[nodiscard]] bool step(EngineThread& thread, Run& run, bool& writable, bool token_held, Onward& onward);
  [[nodiscard]] bool step_whole(Run& run, bool token_held, Onward& onward);
  [[nodiscard]] bool step_in_parts(EngineThread& thread, Run& run, bool in_place, bool token_held, Onward& onward);
  [[nodiscard]] bool find_next(Onward& onward);
  [[nodiscard]] bool go_by(const Run& run, Onward& onward);
  [[nodiscard]] bool hand_on(std::byte* out, std::size_t count, Chunk* home, Run& run, Onward& onward);
  [[nodiscard]] bool call_and_submit(Occasion occasion);
  [[nodiscard]] bool begin_paced(EngineThread& thread) { return pace_.begin(engine_, thread, counters_.out.get()); }
  void end_paced(EngineThread& thread) { pace_.end(thread, counters_.out.get()); }
  [[nodiscard]] bool call_once();
  [[nodiscard]] std::int64_t stage(std::size_t input, const Run& run);
  [[nodiscard]] bool fire();
  [[nodiscard]] bool fire_all();
  [[nodiscard]] std::int64_t call(std::byte* out, std::int64_t capacity, bool token_held);
  [[nodiscard]] std::int64_t process(std::byte* out, std::int64_t capacity);
  [[nodiscard]] std::int64_t recover(std::int64_t failed, std::uint64_t sent, std::byte* out, std::int64_t capacity);
  [[nodiscard]] bool submit(std::byte* out, std::size_t count);
  [[nodiscard]] bool deliver(std::byte* out, std::size_t count);
  [[nodiscard]] std::int64_t take_part(const Run& run);
  [[nodiscard]] bool leads_straight_to(const OperatorContext* end) const noexcept;
  [[nodiscard]] bool deliver(Mark mark);
  [[nodiscard]] bool pass(Mark mark);
  [[nodiscard]] bool pass(std::size_t output, Mark mark);
  [[nodiscard]] bool show(Mark mark);
  [[nodiscard]] bool advance(std::uint32_t edge, std::int64_t watermark);
  [[nodiscard]] bool take_epoch(Mark mark);
  [[nodiscard]] bool align();
  [[nodiscard]] bool is_aligned(std::int64_t epoch) const noexcept;
  // Before anything is submitted behind a mark.
  [[nodiscard]] bool await_alignment() { return alignment_.awaited() == 0 || wait_aligned(); }
  [[nodiscard]] bool wait_aligned();
  [[nodiscard]] bool send_probe();
  [[nodiscard]] bool take_probe();
  [[nodiscard]] bool end();
  [[nodiscard]] bool end_port();
  [[nodiscard]] bool send_time_mark();
  // An output's texts may point into its input's chunks, and into what this call attached or allocated.
  [[nodiscard]] std::span<Chunk* const> output_chunks() {
    return call_.needs_cleanup ? memory_.chunks(call_.input.chunks) : call_.input.chunks;
  }
  void end_call();
  [[nodiscard]] bool try_renew_buffer(bool token_held);
  void report(std::int64_t index);
  [[nodiscard]] std::string thrown(const std::exception& error) const;
  void tell(std::string message, const Run& run, std::int64_t index) const;

  // What every call touches comes first, in as few cache lines as can be: long pipelines don't fit the first cache otherwise.
  Outputs outputs_;
  const std::shared_ptr<Operator> op_;
  Engine& engine_;
  const Shape shape_;
  const OperatorId id_;
  Hold safe_point_;
  Bypass* const bypass_;
  Counters counters_;
  GilGate gil_;
  OutputBuffer buffer_;
  Call call_;
  CallMemory memory_;
  RunPace pace_;
  const Placement placement_;
  PartialRun partial_;
  std::unique_ptr<Junction> junction_;  // null for an operator with a single port that takes runs as they come
  InputEnds ends_;
  Watermarks watermarks_;
  LoopProbe probe_;
  Alignment alignment_;
  BarrierHold barrier_hold_{safe_point_};
  SourceStart start_;
  std::atomic<bool> is_final_{false};  // release: everything that the operator did is done
  std::atomic<bool> is_interrupted_{false};
};

}  // namespace rayelastic
