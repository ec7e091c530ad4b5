// A running operator: its output buffer, the chunks of its current call, its counters, and the route of its output to the consuming ports.
// Architecture section 4: scheduling decisions happen inside flush only (P06). Knows nothing of threads, queues or threading models: at any
// time a single caller runs execute, accept or run_source (Port ensures it).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/control/hold.hpp"
#include "engine/engine.hpp"
#include "engine/graph/junction.hpp"
#include "engine/work_meter.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/mutex.hpp"
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
    watermarks_.push_back(kNoWatermark);
    return static_cast<std::uint32_t>(inputs_++);
  }
  // Its consumers are complete.
  void keep_way();
  // Its inputs meet in a junction: there are several, or it is conjunctive.
  void meet(std::vector<Junction::Input> inputs);
  [[nodiscard]] Junction* junction() noexcept { return junction_.get(); }
  // One of its consumers has several edges: see operator_epochs.cpp.
  void align_with(OperatorContext& consumer) { meetings_.push_back(&consumer); }
  [[nodiscard]] std::size_t inputs() const noexcept { return inputs_; }
  // It can be run in part, as it is said by its specification, or as what it gives goes to `next` alone, which can. False: it can't.
  [[nodiscard]] bool run_in_parts(OperatorContext* next);
  // Of a source: it begins once that port of another operator has ended, or those upstream of it have stood still for so long.
  struct Awaited {
    const OperatorContext* consumer;
    std::size_t port;
    std::vector<const OperatorContext*> upstream;
    std::chrono::nanoseconds patience;
  };
  void begin_after(Awaited side) { begins_after_.push_back(std::move(side)); }
  // It is to be held where its mark of an epoch is.
  void stop_at_epochs() noexcept { stops_at_epochs_ = true; }

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
  // this is called again, or `settles(false)` is. Throws StateError.
  [[nodiscard]] bool try_settle();
  void settles(bool wanted) noexcept { settles_.store(wanted, std::memory_order_relaxed); }
  // The stage of that input is full and its producer about to wait. True: there is room now after all.
  [[nodiscard]] bool widen(std::size_t input);
  // The next port with a queue, if its output goes one way only; null otherwise. bounded: and no more goes there than comes in.
  [[nodiscard]] Port* next_port(bool bounded) const noexcept;
  // Runs a source until it has finished or has to stop.
  void run_source();

  [[nodiscard]] OperatorId id() const noexcept { return id_; }
  [[nodiscard]] Operator& op() const noexcept { return op_; }
  // To be entered before a run is taken; a firing enters it itself, and so does an operator that waits.
  [[nodiscard]] bool needs_token() const noexcept {
    return needs_token_ && op_.demands().empty() && !waits_.load(std::memory_order_relaxed);
  }
  // It spends its time asleep, in the Python code that needs the token: it is called without the token from now on, or with it again.
  void set_waits(bool waits) noexcept { waits_.store(waits && needs_token_, std::memory_order_relaxed); }
  [[nodiscard]] bool waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema(std::size_t input) const noexcept;
  [[nodiscard]] bool is_final() const noexcept { return final_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_ended(std::size_t port) const noexcept {
    return is_final() || (ended_ports_.load(std::memory_order_acquire) >> port & 1U) != 0;
  }
  [[nodiscard]] bool is_terminal() const noexcept { return onward_ == 0; }
  [[nodiscard]] std::uint64_t tuples_in() const noexcept {
    return tuples_in_.get() + partly_in_.get() + (twin_ == nullptr ? 0 : twin_->tuples_in());
  }
  [[nodiscard]] std::uint64_t tuples_out() const noexcept { return tuples_out_.get() + (twin_ == nullptr ? 0 : twin_->tuples_out()); }
  [[nodiscard]] std::uint64_t counted(Tally what) const noexcept {
    return tallies_[static_cast<std::size_t>(what)].get() + (twin_ == nullptr ? 0 : twin_->counted(what));
  }
  // Records of output ports 1, 2, ... that nobody takes, by port.
  [[nodiscard]] std::vector<std::uint64_t> untaken() const;
  // Calls the operator's interrupt hook, the first time. A source ends then.
  void interrupt();
  // Epochs (operator_epochs.cpp).
  // Of a source that is held: its mark goes out, at its position. False: stop.
  [[nodiscard]] bool send_epoch(std::int64_t epoch) { return is_final() || pass({MarkKind::Barrier, epoch}); }
  // Its state at the mark of that epoch can be had: it is held there, and nobody is inside, or a copy was begun.
  [[nodiscard]] bool is_there(std::int64_t epoch) const noexcept {
    if (held_at_.load(std::memory_order_acquire) != epoch) return false;
    return copies_.load(std::memory_order_relaxed) || (safe_point_.is_held() && safe_point_.settled());
  }
  // That copy, which keeps its table and is given up with its last owner; null: there is none.
  [[nodiscard]] std::shared_ptr<StateCopy> take_copy(std::int64_t epoch);
  // After Engine::abandoned or `stopping` is set: nobody waits for an epoch up to that one any more, nor is held at one.
  void give_epochs_up(std::int64_t epoch) noexcept;
  // It is held, and goes on.
  void let_go() noexcept;

  // Its safe point: entered around every run, firing and mark; by a source around what it submits, which may wait inside for ever.
  [[nodiscard]] Hold& safe_point() noexcept { return safe_point_; }

  // rel_context, called by the operator's function.
  [[nodiscard]] bool flush(std::int64_t n) override;
  void finish() override { finished_ = true; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void attach(Chunk* chunk) override;
  [[nodiscard]] bool keep_text(void* field, const char* text, std::uint32_t bytes) override;
  void fail(std::string message) override;
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return input_.chunks; }
  void mark(Mark mark) override;
  [[nodiscard]] bool mark_output(std::int32_t output, Mark mark) override;
  [[nodiscard]] std::size_t room(std::int32_t output) const override;
  [[nodiscard]] bool stopping() const override;
  [[nodiscard]] std::int32_t port() const override;
  [[nodiscard]] bool emit(std::int32_t output, const void* records, std::int64_t n) override;
  [[nodiscard]] const void* staged(std::int32_t port, std::int64_t& n) const override;
  [[nodiscard]] std::int64_t firings() const override;
  void count(Tally what, std::int64_t n) override { tallies_[static_cast<std::size_t>(what)].add(static_cast<std::uint64_t>(n)); }
  void kept(std::int64_t n) override { kept_ = n; }
  [[nodiscard]] std::int64_t watermark() const override { return watermark_; }
  // The last watermark before the end, for whoever reads the counters: that of its inputs, or what it emits where it has none.
  [[nodiscard]] std::int64_t event_time() const noexcept { return event_time_.load(std::memory_order_relaxed); }

 private:
  struct Output {
    Output(std::size_t record_size, bool with_text) : stride(record_size), has_text(with_text) {}

    const std::size_t stride;
    const bool has_text;
    std::vector<Port*> consumers;
    std::vector<std::uint32_t> edges;  // of the consumers
    Counter untaken;                   // records, where there are none
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
    return engine_.is_stopping() || (interrupted_.load(std::memory_order_relaxed) && !engine_.finishing.load(std::memory_order_relaxed));
  }
  template <class Body>
  [[nodiscard]] bool inside_if_source(Body body) {
    if (!source_ || in_mark_) return body();
    return inside([&] { return !is_cut_off() && body(); });
  }
  [[nodiscard]] bool step(EngineThread& thread, Run& run, bool& writable, bool token_held, OperatorContext*& next);
  [[nodiscard]] bool step_whole(Run& run, bool token_held, OperatorContext*& next);
  [[nodiscard]] bool step_in_parts(EngineThread& thread, Run& run, bool in_place, bool token_held, OperatorContext*& next);
  [[nodiscard]] bool hand_on(std::byte* out, std::size_t count, Chunk* home, Run& run, OperatorContext*& next);
  void enter_token();
  void leave_token();
  // What a call without a run is for.
  enum class Occasion : std::uint8_t { Records, Watermark, PortEnd, Finish };
  [[nodiscard]] bool call_and_submit(Occasion occasion);
  [[nodiscard]] bool begin_paced(EngineThread& thread);
  void end_paced(EngineThread& thread);
  [[nodiscard]] bool is_bounded() const noexcept;
  [[nodiscard]] bool somebody_waits() const noexcept;  // for a run of this one to end
  [[nodiscard]] bool somebody_looks() const noexcept;  // at how many tuples there are
  // Records of its output that a call may have at hand.
  [[nodiscard]] std::size_t output_run(std::size_t count) const noexcept;
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
  template <class Body>
  void without_token(Body body);
  [[nodiscard]] bool pass(Mark mark);
  [[nodiscard]] bool pass_one_way(Mark mark);
  [[nodiscard]] bool pass(std::size_t output, Mark mark);
  [[nodiscard]] bool show(Mark mark);
  [[nodiscard]] bool advance(std::uint32_t edge, std::int64_t watermark);
  [[nodiscard]] bool take_epoch(Mark mark);
  [[nodiscard]] bool align();
  void hold_here();
  [[nodiscard]] bool is_aligned(std::int64_t epoch) const noexcept;
  // Before anything is submitted behind a mark.
  [[nodiscard]] bool await_alignment() { return unaligned_ == 0 || wait_aligned(); }
  [[nodiscard]] bool wait_aligned();
  [[nodiscard]] bool send_probe();
  [[nodiscard]] bool take_probe();
  [[nodiscard]] bool end();
  [[nodiscard]] bool end_port();
  void await_beginning();
  [[nodiscard]] bool send_time_mark();
  [[nodiscard]] std::span<Chunk* const> output_chunks();
  void end_call();
  void renew_buffer();
  [[nodiscard]] bool try_renew_buffer(bool token_held);
  void report(std::int64_t index);
  void tell(std::string message, const Run& run, std::int64_t index) const;

  // What every call touches comes first, in as few cache lines as can be: long pipelines don't fit the first cache otherwise.
  std::atomic<OperatorContext*> way_{nullptr};  // to the only consumer, while it is manual (BasicPort)
  Operator& op_;
  Engine& engine_;
  std::size_t in_stride_;  // of the port of the current call
  const std::size_t out_stride_;
  const std::size_t capacity_;  // records in buffer_
  const std::uint32_t number_;  // id_, as EngineThread::doing has it
  bool in_place_;               // likewise
  const bool text_out_;
  const bool needs_token_;
  const bool always_beside_;
  const bool bounded_;  // the operator bounds the length of its runs
  const bool source_;
  const bool paced_;  // it may give more than it takes, to be measured by pace_
  const bool whole_;  // its calls take all of a run, where it works in place
  std::uint64_t skip_;
  Hold safe_point_;
  // Of the current call.
  bool in_token_ = false;
  bool beside_token_ = false;  // in Python without it
  bool flushing_ = false;
  bool untidy_ = false;  // one of message_, attached_, allocated_, arena_touched_ is set
  std::byte* out_ = nullptr;
  std::int64_t out_capacity_ = 0;
  Run input_;
  Counter tuples_in_;
  Counter tuples_out_;
  ChunkRef home_;                // of buffer_; null for sinks
  std::byte* buffer_ = nullptr;  // in home_, aligned
  Port* only_ = nullptr;         // the consumer, if there is one and no more
  std::vector<Port*> consumers_;

  OperatorContext* also_untidy_ = nullptr;  // of a chain that a run goes down
  std::int64_t kept_ = 0;                   // what rel_kept said
  Counter tallies_[3];                      // by Tally
  bool refused_ = false;                    // flush said stop
  bool finished_ = false;
  Occasion occasion_ = Occasion::Records;
  bool in_mark_ = false;  // a source has entered its safe point for a mark
  bool arena_touched_ = false;
  std::string message_;
  std::vector<ChunkRef> attached_;   // until the next submit
  std::vector<ChunkRef> allocated_;  // full or odd-sized arena chunks, until the call ends
  std::vector<Chunk*> combined_;
  ChunkRef arena_;
  std::size_t arena_used_ = 0;

  const OperatorId id_;
  const std::shared_ptr<Operator> owner_;  // of op_
  const Placement placement_;
  std::int64_t time_mark_due_ = 0;         // of a source that sends them
  // operator_parts.cpp
  Counter partly_in_;                        // what take_part took
  std::unique_ptr<OperatorContext> twin_;    // runs the same function beside this one
  OperatorContext* end_of_parts_ = nullptr;  // that has a part for what comes of this one's runs; null: there is none
  OperatorContext* beside_ = nullptr;        // of a twin: who takes what it gives
  std::atomic_flag in_part_;                 // somebody is in the part of this one: acquire, release
  std::atomic<bool> settles_{false};         // somebody waits for in_part_, which producers leave alone then
  std::unique_ptr<WorkMeter> pace_;          // what a record costs to make and to pass on; null unless paced_
  std::uint32_t switches_seen_ = ~0U;        // of models, when pace_ last began anew: other operators were called in place then
  std::uint64_t made_before_ = 0;            // records, before the run that is timed
  std::unique_ptr<Junction> junction_;       // null for an operator with a single port that takes runs as they come
  std::vector<std::uint32_t> edges_;         // of consumers_
  std::deque<Output> further_outputs_;       // output ports 1, 2, ...
  std::vector<Port*> loop_consumers_;        // of the edges that belong to a loop
  std::size_t onward_ = 0;                   // edges to consumers, without feedback
  std::size_t turn_ = 0;                     // which way the next Time mark takes
  std::size_t inputs_ = 0;                   // edges that aren't feedback
  std::size_t finals_ = 0;
  bool port_ends_ = false;                     // with the final mark that is being taken
  std::atomic<std::uint32_t> ended_ports_{0};  // release: what they brought has been processed
  std::vector<Awaited> begins_after_;          // of a source
  // Relaxed: what others see of the watermark.
  std::atomic<std::int64_t> event_time_{kNoWatermark};
  std::atomic<bool> awaits_{false};         // relaxed: it hasn't begun for that
  bool idle_ = false;                       // all inputs are
  std::int64_t watermark_ = kNoWatermark;   // the least of
  std::vector<std::int64_t> watermarks_;    // by edge that isn't feedback
  std::size_t feedbacks_ = 0;               // edges
  std::size_t probes_ = 0;                  // of this round
  std::size_t returned_ = 0;                // records that came back since the probe was sent
  std::vector<OperatorContext*> meetings_;  // consumers that have several edges
  std::int64_t unaligned_ = 0;              // the epoch whose mark it has passed on to meetings_, until these have aligned; 0: none
  std::int64_t epoch_ = 0;                  // whose marks are coming in
  std::size_t epochs_ = 0;                  // edges by which its mark has come; 0: none, or it has aligned
  bool stops_at_epochs_ = false;
  Mutex held_mutex_;                                             // it is held for an epoch, or that is given up, not both
  std::atomic<std::int64_t> held_at_{0};                         // the epoch at whose mark it is held, or its state is copied; 0: none
  std::atomic<bool> copies_{false};                              // its state is copied there; written before held_at_
  std::shared_ptr<StateCopy> copy_ REL_GUARDED_BY(held_mutex_);  // until somebody takes it
  std::atomic<std::int64_t> aligned_{0};                         // the last epoch whose mark has come by all edges
  std::atomic<std::uint32_t> alignments_{0};                     // changes when aligned_ does, and when waiting for that is vain
  std::atomic<bool> waits_{false};                               // the profiler's
  std::atomic<bool> final_{false};                               // release: everything that the operator did is done
  std::atomic<bool> interrupted_{false};
};

}  // namespace rayelastic
