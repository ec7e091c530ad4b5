#include "engine/context/operator_context.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "engine/context/port.hpp"
#include "rayelastic/operator/recovery.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kMinRunRecords = 64;
constexpr std::size_t kAlignment = 64;

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

OperatorContext::OperatorContext(OperatorId id, std::shared_ptr<Operator> op, const Placement& placement, Engine& engine)
    : op_(*op),
      engine_(engine),
      in_stride_(size_of_records(op_.inputs())),
      out_stride_(size_of_records(op_.outputs())),
      capacity_(run_capacity(engine.options, op_)),
      number_(static_cast<std::uint32_t>(id)),
      in_place_(op_.has_any(REL_IN_PLACE) && in_stride_ == out_stride_),
      text_out_(!op_.outputs().empty() && op_.outputs().front()->has_text()),
      needs_token_(op_.has_any(REL_NEEDS_TOKEN)),
      always_beside_(op_.has_any(REL_BESIDE_TOKEN)),
      bounded_(op_.bounds_runs()),
      source_(op_.has_any(REL_SOURCE)),
      paced_(!op_.outputs().empty() && op_.demands().empty() && !op_.has_any(REL_ONE_TO_ONE | REL_FILTER)),
      whole_(!bounded_ && !paced_),
      skip_(placement.skip),
      id_(id),
      owner_(std::move(op)),
      placement_(placement) {
  if (out_stride_ > 0) renew_buffer();
  if (paced_) pace_ = std::make_unique<WorkMeter>(std::chrono::nanoseconds{}, capacity_);
  for (std::size_t port = 1; port < op_.outputs().size(); ++port)
    further_outputs_.emplace_back(op_.outputs()[port]->record_size(), op_.outputs()[port]->has_text());
}

void OperatorContext::add_consumer(std::size_t output, Port* port, std::uint32_t edge, Place place) {
  (output == 0 ? consumers_ : further_outputs_[output - 1].consumers).push_back(port);
  (output == 0 ? edges_ : further_outputs_[output - 1].edges).push_back(edge);
  if (place != Place::Outside) loop_consumers_.push_back(port);
  if (place != Place::Feedback) ++onward_;
}

void OperatorContext::keep_way() {
  if (consumers_.size() != 1) return;
  only_ = consumers_.front();
  only_->keep_way(way_);
}

Port* OperatorContext::next_port(bool bounded) const noexcept {
  const OperatorContext* at = this;
  for (;;) {
    if (bounded && !at->op_.has_any(REL_ONE_TO_ONE | REL_FILTER)) return nullptr;
    Port* const port = at->only_;
    if (port == nullptr) return nullptr;
    at = port->manual_target();
    if (at == nullptr) return port;
  }
}

const std::shared_ptr<const Schema>& OperatorContext::schema(std::size_t input) const noexcept {
  return op_.inputs()[junction_ == nullptr ? 0 : junction_->input(input).port];
}

// The buffer went on with its records: another one.
void OperatorContext::renew_buffer() {
  home_ = Chunk::allocate(capacity_ * out_stride_ + kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(home_->data());
  buffer_ = reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

// False: there is no memory for it, which has been reported.
bool OperatorContext::try_renew_buffer(bool token_held) {
  try {
    renew_buffer();
    return true;
  } catch (const std::bad_alloc&) {
    if (token_held) engine_.leave_token(*current_thread);
    message_ = "can't have the memory for its output";
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
  const Doing doing(thread, number_);
  OperatorContext* untidy = nullptr;
  bool ok = true;
  for (OperatorContext* at = this; ok && at != nullptr; token_held = false) {
    OperatorContext* const passed = at;
    ok = at->step(thread, current, writable, token_held, at);
    if (passed->untidy_) [[unlikely]]
      passed->also_untidy_ = std::exchange(untidy, passed);
  }
  while (untidy != nullptr) {
    OperatorContext* const next = untidy->also_untidy_;
    untidy->end_call();
    untidy = next;
  }
  return ok;
}

// Processes `run`. Either submits the output and sets `next` to null, or makes the output the `run` of the manual operator `next`.
bool OperatorContext::step(EngineThread& thread, Run& run, bool& writable, bool token_held, OperatorContext*& next) {
  thread.set_doing(number_);
  if (!enter(token_held)) [[unlikely]]
    return false;
  tuples_in_.add(run.count);
  bool ok = false;
  if (writable && in_place_ && whole_) [[likely]] {
    ok = step_whole(run, token_held, next);
  } else {
    ok = step_in_parts(thread, run, writable && in_place_, token_held, next);
    writable = true;
  }
  safe_point_.leave();
  return ok;
}

// In one call, over the run itself: what most operators of a chain do, so it is short.
bool OperatorContext::step_whole(Run& run, bool token_held, OperatorContext*& next) {
  input_ = run;
  auto* const out = const_cast<std::byte*>(run.records);
  const std::int64_t produced = call(out, static_cast<std::int64_t>(run.count), token_held);
  if (produced < 0) return false;
  if (hand_on(out, static_cast<std::size_t>(produced), run.home, run, next)) return true;
  const bool ok = submit(out, static_cast<std::size_t>(produced));
  end_call();
  return ok;
}

// Longer inputs are split, so that a function always has capacity >= n; a call in place or without output needs no buffer.
bool OperatorContext::step_in_parts(EngineThread& thread, Run& run, bool in_place, bool token_held, OperatorContext*& next) {
  std::size_t longest = in_place || out_stride_ == 0 ? run.count : capacity_;
  if (bounded_) [[unlikely]]
    longest = std::min(longest, op_.longest_run());
  for (std::size_t done = 0;;) {
    const std::size_t count = std::min(longest, run.count - done);
    input_ = {run.records + done * in_stride_, count, in_stride_, run.chunks, in_place ? run.home : nullptr};
    done += count;
    if (!in_place && home_ && !home_->is_unique() && !try_renew_buffer(token_held)) return false;
    std::byte* const out = in_place ? const_cast<std::byte*>(input_.records) : buffer_;
    const bool paced = paced_ && begin_paced(thread);
    const std::size_t room = in_place ? count : paced_ ? output_run(count) : std::max(count, capacity_);
    const std::int64_t produced = call(out, static_cast<std::int64_t>(room), token_held);
    if (produced < 0) return false;
    token_held = false;
    const bool last = done == run.count;
    if (last && !paced && hand_on(out, static_cast<std::size_t>(produced), in_place ? run.home : home_.get(), run, next)) return true;
    const bool ok = submit(out, static_cast<std::size_t>(produced));
    if (paced) end_paced(thread);
    end_call();
    next = nullptr;
    if (!ok || last) return ok;
  }
}

// The output becomes the run of the manual operator that alone takes it, which is entered next. False: there is none, or no output.
bool OperatorContext::hand_on(std::byte* out, std::size_t count, Chunk* home, Run& run, OperatorContext*& next) {
  next = nullptr;
  if (count == 0) return false;
  next = way_.load(std::memory_order_relaxed);
  if (next == nullptr && only_ != nullptr) next = only_->open_way();
  if (next == nullptr) return false;
  tuples_out_.add(count);
  run = {out, count, out_stride_, text_out_ ? output_chunks() : std::span<Chunk* const>{}, home};
  next->safe_point_.expect();
  return true;
}

// Where all is manual, nobody gives commands, and nobody looks on, nobody waits for a run. Then runs are as long as there is room, and
// the same input always makes the same runs: where branches meet the order depends on them.
bool OperatorContext::is_bounded() const noexcept { return paced_ && (somebody_waits() || somebody_looks()); }

bool OperatorContext::somebody_looks() const noexcept { return engine_.options.run_work.count() > 0; }

bool OperatorContext::somebody_waits() const noexcept {
  return engine_.takes_commands || engine_.queues.load(std::memory_order_relaxed) > 0;
}

[[gnu::noinline]] std::size_t OperatorContext::output_run(std::size_t count) const noexcept {
  return std::max(count, is_bounded() ? std::min(capacity_, pace_->longest()) : capacity_);
}

// True: what the run costs is measured, until it has been passed on.
[[gnu::noinline]] bool OperatorContext::begin_paced(EngineThread& thread) {
  if (!is_bounded()) return false;
  if (const std::uint32_t switches = engine_.switches.load(std::memory_order_relaxed); switches != switches_seen_) {
    const std::chrono::nanoseconds part = engine_.options.queue_work / WorkMeter::kRuns;
    pace_->forget(somebody_waits() ? part : engine_.options.run_work);
    if (engine_.begins_with_one && switches_seen_ == ~0U) pace_->begin_with_one(capacity_);
    switches_seen_ = switches;
  }
  made_before_ = tuples_out_.get();
  return pace_->begin(thread);
}

void OperatorContext::end_paced(EngineThread& thread) { pace_->end(thread, tuples_out_.get() - made_before_); }

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

[[gnu::noinline]] void OperatorContext::enter_token() {
  engine_.enter_token(*current_thread, beside_token_);
  in_token_ = true;
}

[[gnu::noinline]] void OperatorContext::leave_token() {
  in_token_ = false;
  engine_.leave_token(*current_thread, beside_token_);
}

// One call of the function. Negative: stop; what there was to report has been reported.
std::int64_t OperatorContext::call(std::byte* out, std::int64_t capacity, bool token_held) {
  if (engine_.is_stopping()) [[unlikely]] {
    if (token_held) engine_.leave_token(*current_thread);
    return -1;
  }
  out_ = out;
  out_capacity_ = capacity;
  in_token_ = token_held;
  beside_token_ = false;
  const std::uint64_t sent = tuples_out_.get();
  std::int64_t produced = process(out, capacity);
  if (in_token_) leave_token();
  if (produced >= 0 && produced <= capacity) [[likely]]
    return produced;
  if (produced < 0 && produced != REL_STOPPED && op_.recovery() != nullptr && message_.empty()) {
    produced = recover(-1 - produced, sent, out, capacity);
    if (produced >= 0) return produced;
  }
  if (produced == REL_STOPPED && message_.empty()) {
    if (refused_ || stopping()) return -1;
    message_ = "returned REL_STOPPED although nothing asked it to stop";
  }
  if (produced >= 0) message_ = "returned more records than its output has room for";
  report(produced < 0 && produced != REL_STOPPED ? -1 - produced : -1);
  return -1;
}

// A call without input: of a source, or at the end of the input.
bool OperatorContext::call_and_submit(Occasion occasion) {
  EngineThread& thread = *current_thread;
  const Doing doing(thread, number_);
  input_ = {nullptr, 0, in_stride_, {}};
  const bool paced = paced_ && begin_paced(thread);
  occasion_ = occasion;
  const bool ok = call_once();
  occasion_ = Occasion::Records;
  if (paced) end_paced(thread);
  return ok;
}

// With the input that there is, in the operator's own output buffer.
bool OperatorContext::call_once() {
  if (home_ && !home_->is_unique() && !try_renew_buffer(false)) return false;
  const std::int64_t produced = call(buffer_, static_cast<std::int64_t>(op_.demands().empty() ? output_run(0) : capacity_), false);
  if (produced < 0) return false;
  const bool ok = submit(buffer_, static_cast<std::size_t>(produced));
  end_call();
  return ok;
}

// C++ exceptions of the process itself become failures too (P36).
std::int64_t OperatorContext::process(std::byte* out, std::int64_t capacity) {
  constexpr std::int64_t kNoRecord = REL_FAILED(INT64_MAX - 1);
  try {
    if ((needs_token_ || always_beside_) && !in_token_) {
      beside_token_ = always_beside_ || waits_.load(std::memory_order_relaxed);
      enter_token();
    }
    if (out_stride_ == 0) out = nullptr;
    if (occasion_ == Occasion::Records) [[likely]]
      return op_.process(input_.records, static_cast<std::int64_t>(input_.count), out, capacity, this);
    if (occasion_ == Occasion::Watermark) return op_.on_watermark(watermark_, out, capacity, this);
    return occasion_ == Occasion::Finish ? op_.finish(out, capacity, this) : op_.on_port_end(out, capacity, this);
  } catch (const std::exception& error) {
    message_ = error.what();
  } catch (...) {
    message_ = "threw something that is no std::exception";
  }
  return kNoRecord;
}

// The function failed on a record, having sent what `sent` didn't count yet. What a call returns.
std::int64_t OperatorContext::recover(std::int64_t failed, std::uint64_t sent, std::byte* out, std::int64_t capacity) {
  const auto n = static_cast<std::int64_t>(input_.count);
  if (failed >= n) return REL_FAILED(failed);
  const auto flushed = static_cast<std::int64_t>(tuples_out_.get() - sent);
  try {
    return op_.recovery()->go_on(op_, {input_.records, n, out, capacity, failed, flushed, kept_}, this);
  } catch (const std::exception& error) {
    message_ = error.what();
    return REL_FAILED(INT64_MAX - 1);
  }
}

bool OperatorContext::submit(std::byte* out, std::size_t count) {
  if (skip_ > 0) [[unlikely]] {
    const std::size_t skipped = std::min<std::uint64_t>(skip_, count);
    skip_ -= skipped;
    out += skipped * out_stride_;
    count -= skipped;
  }
  return inside_if_source([&] { return deliver(out, count); });
}

bool OperatorContext::deliver(std::byte* out, std::size_t count) {
  bool ok = true;
  if (count > 0 && out_stride_ != 0) {
    if (!await_alignment()) return false;
    tuples_out_.add(count);
    Run run{out, count, out_stride_, text_out_ ? output_chunks() : std::span<Chunk* const>{}};
    if (beside_ != nullptr) return beside_->take_part(run) >= 0;
    const std::size_t last = consumers_.size() - 1;
    // Kept where it is by one consumer alone; and a function that flushes goes on in its buffer.
    if (last == 0 && !flushing_) run.home = out == buffer_ ? home_.get() : input_.home;
    for (std::size_t index = 0; ok && index < consumers_.size(); ++index) ok = consumers_[index]->accept(run, index == last);
  }
  if (untidy_) attached_.clear();
  return ok;
}

// An output's texts may point into its input's chunks, and into what this call attached or allocated.
std::span<Chunk* const> OperatorContext::output_chunks() {
  if (!untidy_) return input_.chunks;
  combined_.assign(input_.chunks.begin(), input_.chunks.end());
  for (const ChunkRef& chunk : attached_) combined_.push_back(chunk.get());
  for (const ChunkRef& chunk : allocated_) combined_.push_back(chunk.get());
  if (arena_touched_) combined_.push_back(arena_.get());
  return combined_;
}

// An arena that no queue kept starts anew: a pipeline without queues works in warm memory.
void OperatorContext::end_call() {
  if (!untidy_) return;
  untidy_ = false;
  message_.clear();
  attached_.clear();  // what a mark made the operator emit
  allocated_.clear();
  if (arena_touched_ && arena_->is_unique()) arena_used_ = 0;
  arena_touched_ = false;
}

bool OperatorContext::stopping() const { return engine_.is_stopping() || (source_ && interrupted_.load(std::memory_order_relaxed)); }

std::vector<std::uint64_t> OperatorContext::untaken() const {
  std::vector<std::uint64_t> counts;
  for (const Output& output : further_outputs_) counts.push_back(output.untaken.get());
  return counts;
}

}  // namespace rayelastic
