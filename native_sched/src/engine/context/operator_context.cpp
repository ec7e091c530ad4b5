#include "engine/context/operator_context.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "engine/context/port.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/operator/recovery.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kMinRunRecords = 64;

std::size_t size_of_records(const Schemas& ports) { return ports.empty() ? 0 : ports.front()->record_size(); }

// A firing has no more records of a port than an output run has room for.
std::size_t run_capacity(const SchedulerOptions& options, const Operator& op) {
  const std::size_t stride = size_of_records(op.outputs());
  const std::size_t fitting = stride == 0 ? options.run_records : options.run_bytes / stride;
  std::size_t capacity = std::max(std::min(options.run_records, fitting), kMinRunRecords);
  for (const Demand& demand : op.demands()) capacity = std::max(capacity, static_cast<std::size_t>(demand.count));
  return capacity;
}

}  // namespace

OperatorContext::Shape::Shape(const Operator& op, const Engine& engine)
    : out_stride(size_of_records(op.outputs())),
      capacity(run_capacity(engine.options, op)),
      text_out(!op.outputs().empty() && op.outputs().front()->has_text()),
      source(op.has_any(REL_SOURCE)),
      conjunctive(!op.demands().empty()),
      bounded(op.bounds_runs()),
      paced(!op.outputs().empty() && !conjunctive && !op.has_any(REL_ONE_TO_ONE | REL_FILTER)),
      whole(!bounded && !paced) {}

OperatorContext::OperatorContext(OperatorId id, std::shared_ptr<Operator> op, const Placement& placement, Engine& engine)
    : outputs_(op->outputs()),
      op_(std::move(op)),
      engine_(engine),
      shape_(*op_, engine),
      id_(id),
      bypass_(op_->bypass()),
      gil_(*op_),
      buffer_(shape_.capacity, shape_.out_stride),
      pace_(shape_.paced, shape_.capacity),
      placement_(placement) {
  call_.in_stride = size_of_records(op_->inputs());
  call_.in_place = op_->has_any(REL_IN_PLACE) && call_.in_stride == shape_.out_stride;
  start_.skip = placement.skip;
}

void OperatorContext::add_consumer(std::size_t output, Port* port, std::uint32_t edge, Place place) {
  outputs_.add_consumer(output, port, edge, place != Place::Feedback);
  if (place != Place::Outside) probe_.add_consumer(port);
}

void OperatorContext::keep_way() {
  if (outputs_.size() == 0 || outputs_[0].consumers.size() != 1) return;
  RE_CHECK(outputs_.only() == nullptr);
  outputs_.set_only(outputs_[0].consumers.front());
  outputs_.only()->keep_way(outputs_.way());
}

Port* OperatorContext::next_port(bool bounded) const noexcept {
  const OperatorContext* at = this;
  for (;;) {
    if (bounded && !at->op_->has_any(REL_ONE_TO_ONE | REL_FILTER)) return nullptr;
    Port* const port = at->outputs_.only();
    if (port == nullptr) return nullptr;
    at = port->manual_target();
    if (at == nullptr) return port;
  }
}

const std::shared_ptr<const Schema>& OperatorContext::schema(std::size_t input) const noexcept {
  return op_->inputs()[junction_ == nullptr ? 0 : junction_->input(input).port];
}

// False: there is no memory for it, which has been reported.
bool OperatorContext::try_renew_buffer(bool token_held) {
  try {
    buffer_.renew();
    return true;
  } catch (const std::bad_alloc&) {
    if (token_held) engine_.leave_token(*current_thread);
    call_.message = "can't have the memory for its output";
    report(-1);
    return false;
  }
}

// A run goes down a chain of manual operators in this loop, not by recursion: what there is to tidy up after an operator's output was
// processed waits for the end of the chain. So a chain of any length needs no stack, and its returns don't overflow the processor's
// return predictor. Where an operator submits in the middle of its call, or to several others, there is recursion; Graph sees to it
// that there are never many of these in a row. Flattened: one call of a small run costs about 10 ns less than with the functions below called.
[[gnu::flatten]] bool OperatorContext::execute(const Run& run, bool writable, bool token_held) {
  Run current = run;
  EngineThread& thread = *current_thread;
  const Doing doing(thread, static_cast<std::uint32_t>(id_));
  OperatorContext* untidy = nullptr;
  bool ok = true;
  Onward onward{this};
  for (; ok && onward.next != nullptr; token_held = false) {
    OperatorContext* const passed = onward.next;
    ok = passed->step(thread, current, writable, token_held, onward);
    if (passed->call_.needs_cleanup) [[unlikely]]
      passed->call_.next_cleanup = std::exchange(untidy, passed);
  }
  while (untidy != nullptr) {
    OperatorContext* const next = untidy->call_.next_cleanup;
    untidy->end_call();
    untidy = next;
  }
  if (onward.locked != nullptr) Port::unlock_way(onward.locked);
  return ok;
}

// Processes `run`. Either submits the output and sets `next` to null, or makes the output the `run` of the manual operator `next`.
bool OperatorContext::step(EngineThread& thread, Run& run, bool& writable, bool token_held, Onward& onward) {
  thread.set_doing(static_cast<std::uint32_t>(id_));
  if (!enter(token_held)) [[unlikely]]
    return false;
  counters_.in.add(run.count);
  if (bypass_ != nullptr && go_by(run, onward)) {
    safe_point_.leave();
    return true;
  }
  bool ok = false;
  if (writable && call_.in_place && shape_.whole) [[likely]] {
    ok = step_whole(run, token_held, onward);
  } else {
    ok = step_in_parts(thread, run, writable && call_.in_place, token_held, onward);
    writable = true;
  }
  safe_point_.leave();
  return ok;
}

// The manual operator that alone takes the output, and is entered next. False: there is none.
bool OperatorContext::find_next(Onward& onward) {
  onward.next = outputs_.way().load(std::memory_order_relaxed);
  Port* const only = outputs_.only();
  if (onward.next == nullptr && only != nullptr) onward.next = only->open_way();
  // Behind a mark it may have to wait, which `deliver` does.
  if (onward.next == nullptr && only != nullptr && alignment_.awaited() == 0) onward.next = only->lock_way(onward.locked);
  if (onward.next == nullptr) return false;
  RE_CHECK(onward.next != this);
  onward.next->safe_point_.expect();
  return true;
}

// The run goes on as it is. False: this operator is to see it.
bool OperatorContext::go_by(const Run& run, Onward& onward) {
  if (!bypass_->open.load(std::memory_order_relaxed) || ++bypass_->runs % Bypass::kSeen == 0 || !find_next(onward)) return false;
  counters_.out.add(run.count);
  bypass_->records += run.count;
  return true;
}

// In one call, over the run itself: what most operators of a chain do, so it is short.
bool OperatorContext::step_whole(Run& run, bool token_held, Onward& onward) {
  call_.input = run;
  auto* const out = const_cast<std::byte*>(run.records);
  const std::int64_t produced = call(out, static_cast<std::int64_t>(run.count), token_held);
  if (produced < 0) return false;
  if (hand_on(out, static_cast<std::size_t>(produced), run.home, run, onward)) return true;
  const bool ok = submit(out, static_cast<std::size_t>(produced));
  end_call();
  return ok;
}

// Longer inputs are split, so that a function always has capacity >= n; a call in place or without output needs no buffer.
bool OperatorContext::step_in_parts(EngineThread& thread, Run& run, bool in_place, bool token_held, Onward& onward) {
  std::size_t longest = in_place || shape_.out_stride == 0 ? run.count : shape_.capacity;
  if (shape_.bounded) [[unlikely]]
    longest = std::min(longest, op_->longest_run());
  for (std::size_t done = 0;;) {
    const std::size_t count = std::min(longest, run.count - done);
    call_.input = {run.records + done * call_.in_stride, count, call_.in_stride, run.chunks, in_place ? run.home : nullptr};
    done += count;
    RE_CHECK(done <= run.count && count > 0);
    if (!in_place && buffer_.is_shared() && !try_renew_buffer(token_held)) return false;
    std::byte* const out = in_place ? const_cast<std::byte*>(call_.input.records) : buffer_.data();
    const bool paced = shape_.paced && begin_paced(thread);
    const std::size_t room = in_place ? count : shape_.paced ? pace_.output_run(engine_, count) : std::max(count, shape_.capacity);
    const std::int64_t produced = call(out, static_cast<std::int64_t>(room), token_held);
    if (produced < 0) return false;
    token_held = false;
    const bool last = done == run.count;
    if (last && !paced && hand_on(out, static_cast<std::size_t>(produced), in_place ? run.home : buffer_.chunk(), run, onward)) return true;
    const bool ok = submit(out, static_cast<std::size_t>(produced));
    if (paced) end_paced(thread);
    end_call();
    onward.next = nullptr;
    if (!ok || last) return ok;
  }
}

// The output becomes the run of the next operator. False: there is none, or no output.
bool OperatorContext::hand_on(std::byte* out, std::size_t count, Chunk* home, Run& run, Onward& onward) {
  onward.next = nullptr;
  if (count == 0 || !find_next(onward)) return false;
  counters_.out.add(count);
  run = {out, count, shape_.out_stride, shape_.text_out ? output_chunks() : std::span<Chunk* const>{}, home};
  return true;
}

// Somebody holds the operator. Waits with all that the thread has, as it would for room downstream; others take its place meanwhile.
bool OperatorContext::wait_released(bool& token_held) {
  if (token_held) {
    token_held = false;
    engine_.leave_token(*current_thread);
  }
  const PortWorld::Waiting waiting(engine_, *current_thread, true);
  do {
    safe_point_.leave();
    safe_point_.wait();
  } while (!safe_point_.try_enter());
  if (!stopping()) return true;
  safe_point_.leave();
  return false;
}

// One call of the function. Negative: stop; what there was to report has been reported.
std::int64_t OperatorContext::call(std::byte* out, std::int64_t capacity, bool token_held) {
  if (engine_.is_stopping()) [[unlikely]] {
    if (token_held) engine_.leave_token(*current_thread);
    return -1;
  }
  call_.out = out;
  call_.capacity = capacity;
  gil_.begin(token_held);
  const std::uint64_t sent = counters_.out.get();
  std::int64_t produced = process(out, capacity);
  gil_.leave_if_inside(engine_);
  if (produced >= 0 && produced <= capacity) [[likely]]
    return produced;
  if (produced < 0 && produced != REL_STOPPED && op_->recovery() != nullptr && call_.message.empty()) {
    produced = recover(-1 - produced, sent, out, capacity);
    if (produced >= 0) return produced;
  }
  if (produced == REL_STOPPED && call_.message.empty()) {
    if (call_.refused || stopping()) return -1;
    call_.message = "returned REL_STOPPED although nothing asked it to stop";
  }
  if (produced >= 0) call_.message = "returned more records than its output has room for";
  report(produced < 0 && produced != REL_STOPPED ? -1 - produced : -1);
  return -1;
}

// A call without input: of a source, or at the end of the input.
bool OperatorContext::call_and_submit(Occasion occasion) {
  EngineThread& thread = *current_thread;
  const Doing doing(thread, static_cast<std::uint32_t>(id_));
  call_.input = {nullptr, 0, call_.in_stride, {}};
  const bool paced = shape_.paced && begin_paced(thread);
  call_.occasion = occasion;
  const bool ok = call_once();
  call_.occasion = Occasion::Records;
  if (paced) end_paced(thread);
  return ok;
}

// With the input that there is, in the operator's own output buffer.
bool OperatorContext::call_once() {
  if (buffer_.is_shared() && !try_renew_buffer(false)) return false;
  const std::int64_t produced =
      call(buffer_.data(), static_cast<std::int64_t>(op_->demands().empty() ? pace_.output_run(engine_, 0) : shape_.capacity), false);
  if (produced < 0) return false;
  const bool ok = submit(buffer_.data(), static_cast<std::size_t>(produced));
  end_call();
  return ok;
}

// C++ exceptions of the process itself become failures too (P36).
std::int64_t OperatorContext::process(std::byte* out, std::int64_t capacity) {
  constexpr std::int64_t kNoRecord = REL_FAILED(INT64_MAX - 1);
  try {
    gil_.enter_if_needed(engine_);
    if (shape_.out_stride == 0) out = nullptr;
    if (call_.occasion == Occasion::Records) [[likely]]
      return op_->process(call_.input.records, static_cast<std::int64_t>(call_.input.count), out, capacity, this);
    if (call_.occasion == Occasion::Watermark) return op_->on_watermark(watermarks_.value(), out, capacity, this);
    return call_.occasion == Occasion::Finish ? op_->finish(out, capacity, this) : op_->on_port_end(out, capacity, this);
  } catch (const std::exception& error) {
    call_.message = thrown(error);
  } catch (...) {
    call_.message = op_->name() + ": threw something that is no std::exception";
  }
  return kNoRecord;
}

// The function failed on a record, having sent what `sent` didn't count yet. What a call returns.
std::int64_t OperatorContext::recover(std::int64_t failed, std::uint64_t sent, std::byte* out, std::int64_t capacity) {
  const auto n = static_cast<std::int64_t>(call_.input.count);
  if (failed >= n) return REL_FAILED(failed);
  RE_CHECK(failed >= 0 && counters_.out.get() >= sent);
  const auto flushed = static_cast<std::int64_t>(counters_.out.get() - sent);
  try {
    return op_->recovery()->go_on(*op_, {call_.input.records, n, out, capacity, failed, flushed, call_.kept}, this);
  } catch (const std::exception& error) {
    call_.message = thrown(error);
    return REL_FAILED(INT64_MAX - 1);
  }
}

bool OperatorContext::submit(std::byte* out, std::size_t count) {
  if (start_.skip > 0) [[unlikely]] {
    const std::size_t skipped = std::min<std::uint64_t>(start_.skip, count);
    RE_CHECK(skipped <= count && shape_.source);
    start_.skip -= skipped;
    out += skipped * shape_.out_stride;
    count -= skipped;
  }
  return inside_if_source([&] { return deliver(out, count); });
}

bool OperatorContext::deliver(std::byte* out, std::size_t count) {
  bool ok = true;
  if (count > 0 && shape_.out_stride != 0) {
    if (!await_alignment()) return false;
    counters_.out.add(count);
    Run run{out, count, shape_.out_stride, shape_.text_out ? output_chunks() : std::span<Chunk* const>{}};
    if (partial_.beside != nullptr) return partial_.beside->take_part(run) >= 0;
    const std::vector<Port*>& consumers = outputs_[0].consumers;
    const std::size_t last = consumers.size() - 1;
    // Kept where it is by one consumer alone; and a function that flushes goes on in its buffer.
    if (last == 0 && !call_.flushing) run.home = out == buffer_.data() ? buffer_.chunk() : call_.input.home;
    for (std::size_t index = 0; ok && index < consumers.size(); ++index) ok = consumers[index]->accept(run, index == last);
  }
  if (call_.needs_cleanup) memory_.drop_attached();
  return ok;
}

void OperatorContext::end_call() {
  if (!call_.needs_cleanup) return;
  RE_CHECK(!call_.flushing);
  call_.needs_cleanup = false;
  call_.message.clear();
  memory_.end_call();  // also what a mark made the operator emit
}

bool OperatorContext::stopping() const {
  return engine_.is_stopping() || (shape_.source && is_interrupted_.load(std::memory_order_relaxed));
}

}  // namespace rayelastic
