// What an operator does with marks: they go on in order with the records, watermarks as the least of all inputs, the end when all have
// come to theirs.
#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "operator/waiting.hpp"

namespace rayelastic {

// One way at a fork, and the next one the next time.
bool OperatorContext::pass_one_way(Mark mark) {
  if (!await_alignment()) return false;
  const std::vector<Port*>* consumers = &consumers_;
  const std::vector<std::uint32_t>* edges = &edges_;
  std::size_t ways = consumers->size();
  for (const Output& output : further_outputs_) ways += output.consumers.size();
  if (ways == 0) return true;
  std::size_t way = turn_++ % ways;
  for (auto output = further_outputs_.begin(); way >= consumers->size(); ++output) {
    way -= consumers->size();
    consumers = &output->consumers;
    edges = &output->edges;
  }
  return (*consumers)[way]->accept({mark.kind, mark.value, (*edges)[way]});
}

bool OperatorContext::pass(Mark mark) {
  if (mark.kind == MarkKind::Time) return pass_one_way(mark);
  if (mark.kind == MarkKind::Watermark && mark.value != kIdle && watermark_ == kNoWatermark)
    event_time_.store(mark.value, std::memory_order_relaxed);  // it is where the event time begins
  for (std::size_t output = 0; output <= further_outputs_.size(); ++output) {
    if (!pass(output, mark)) return false;
  }
  if (mark.kind == MarkKind::Barrier && !meetings_.empty()) unaligned_ = mark.value;
  return true;
}

bool OperatorContext::pass(std::size_t output, Mark mark) {
  if (!await_alignment()) return false;
  const std::vector<Port*>& consumers = output == 0 ? consumers_ : further_outputs_[output - 1].consumers;
  const std::vector<std::uint32_t>& edges = output == 0 ? edges_ : further_outputs_[output - 1].edges;
  for (std::size_t index = 0; index < consumers.size(); ++index) {
    if (!consumers[index]->accept({mark.kind, mark.value, edges[index]})) return false;
  }
  return true;
}

// An edge has a new watermark, is idle, or has ended. That of the operator is the least of those that count, and never goes back.
bool OperatorContext::advance(std::uint32_t edge, std::int64_t watermark) {
  if (edge >= watermarks_.size()) return true;  // a source's own end
  watermarks_[edge] = watermark;
  const std::int64_t least = *std::ranges::min_element(watermarks_);
  const bool was_idle = std::exchange(idle_, least == kEndOfTime);
  if (idle_) return was_idle || finals_ + 1 >= inputs_ || show({MarkKind::Watermark, kIdle});
  if (least <= watermark_ && !was_idle) return true;
  const bool advanced = least > watermark_;
  watermark_ = std::max(watermark_, least);
  if (watermark_ == kNoWatermark) return true;
  event_time_.store(watermark_, std::memory_order_relaxed);
  if (advanced && op_.has_any(REL_ON_WATERMARK)) return call_and_submit(Occasion::Watermark);
  return show({MarkKind::Watermark, watermark_});
}

bool OperatorContext::accept(Mark mark) {
  return inside([&] {
    in_mark_ = true;
    const bool ok = deliver(mark);
    in_mark_ = false;
    return ok;
  });
}

bool OperatorContext::deliver(Mark mark) {
  if (mark.kind == MarkKind::Probe) {
    if (++probes_ < inputs_) return true;
    probes_ = 0;
    return send_probe();
  }
  if (mark.kind == MarkKind::Watermark) return advance(mark.edge, mark.value);
  if (mark.kind == MarkKind::Barrier) return take_epoch(mark);
  if (mark.kind != MarkKind::Final) return show(mark);
  // A stream that goes on elsewhere isn't at the end of its time: what waits for that is in the snapshot, and comes there.
  if (engine_.finishing.load(std::memory_order_relaxed) && !advance(mark.edge, kEndOfTime)) return false;
  if (++finals_ < inputs_) return end_port() && align();
  return feedbacks_ > 0 ? send_probe() : end();
}

// To the operator, and then on if it says so. A command may come after the end, for its sender can't know.
bool OperatorContext::show(Mark mark) {
  if (is_final()) return true;
  const Doing doing(*current_thread, number_);
  input_ = {nullptr, 0, in_stride_, {}};
  if (mark.kind == MarkKind::Time && placement_.latency != nullptr) placement_.latency->add(std::chrono::nanoseconds(placement_.clock() - mark.value));
  bool onward = false;
  try {
    if (mark.kind == MarkKind::Command) {
      op_.on_command(this);
    } else {
      onward = mark.kind == MarkKind::Barrier ? op_.on_barrier(mark.value, this) : op_.on_mark(mark, this);
    }
  } catch (const std::exception& error) {
    fail(error.what());
  }
  if (!message_.empty()) report(-1);
  end_call();
  return !refused_ && !stopping() && (!onward || pass(mark));
}

// An edge has ended, and with it perhaps an input port; others go on.
bool OperatorContext::end_port() {
  if (!std::exchange(port_ends_, false)) return true;
  const bool wanted = op_.has_any(REL_ON_PORT_END) && engine_.finishing.load(std::memory_order_relaxed);
  if (wanted && !call_and_submit(Occasion::PortEnd)) return false;
  ended_ports_.fetch_or(1U << (junction_->port % kPortsWaitedFor), std::memory_order_release);
  return true;
}

// All that was to come has come.
bool OperatorContext::end() {
  const bool finishing = op_.has_any(REL_SINK) || op_.announces_end() || engine_.finishing.load(std::memory_order_relaxed);
  watermark_ = kEndOfTime;
  if (op_.has_any(REL_ON_FINISH) && finishing && !call_and_submit(Occasion::Finish)) return false;
  if (engine_.is_stopping() || !pass(Mark{MarkKind::Final, 0})) return false;
  final_.store(true, std::memory_order_release);
  if (is_terminal()) engine_.listener.terminal_final();
  return true;
}

// What it waits for may wait for this source, in the code of a user: then nothing upstream of the awaited ports moves, and it begins all the
// same. A source that waits itself isn't stuck.
void OperatorContext::await_beginning() {
  using Clock = std::chrono::steady_clock;
  std::uint64_t before = 0;
  Clock::time_point since = Clock::now();
  awaits_.store(true, std::memory_order_relaxed);
  while (!stopping()) {
    std::uint64_t moved = 0;
    bool awaits = false;
    auto patience = std::chrono::nanoseconds::max();
    bool ended = true;
    for (const Awaited& side : begins_after_) {
      if (side.consumer->has_ended(side.port)) continue;
      ended = false;
      patience = std::min(patience, side.patience);
      for (const OperatorContext* const each : side.upstream) {
        moved += each->tuples_in() + each->tuples_out();
        awaits = awaits || each->awaits_.load(std::memory_order_relaxed);
      }
    }
    if (ended) break;
    if (awaits || std::exchange(before, moved) != moved) since = Clock::now();
    if (Clock::now() - since >= patience) break;
    std::this_thread::sleep_for(kWaitSlice);
  }
  awaits_.store(false, std::memory_order_relaxed);
}

// In front of what the next call emits.
bool OperatorContext::send_time_mark() {
  if (!placement_.time_marks.has_value()) return true;
  const std::int64_t now = placement_.clock();
  if (now < time_mark_due_) return true;
  time_mark_due_ = now + placement_.time_marks->count();
  return inside_if_source([&] { return pass({MarkKind::Time, now}); });
}

void OperatorContext::run_source() {
  inputs_ = 1;
  bool ok = true;
  await_beginning();
  while (ok && !finished_ && !stopping()) ok = send_time_mark() && call_and_submit(Occasion::Records);
  if (finished_ && skip_ > 0 && !interrupted_.load(std::memory_order_acquire) && !engine_.is_stopping()) {
    message_ = "ended " + std::to_string(skip_) + " tuples before where the job was stopped: its input is shorter than it was then";
    report(-1);
  }
  // An interruption ends a source as if it had finished; REL_STOPPED is then its consent.
  if (!engine_.is_stopping()) (void)accept(Mark{MarkKind::Final, 0});
}

}  // namespace rayelastic
