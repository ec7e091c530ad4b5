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
#include "rayelastic/assert.hpp"

namespace rayelastic {

bool OperatorContext::pass(Mark mark) {
  if (mark.kind == MarkKind::Time) {  // one way at a fork, and the next one the next time
    if (!await_alignment()) return false;
    std::uint32_t edge = 0;
    Port* const port = outputs_.rotate(edge);
    return port == nullptr || port->accept({mark.kind, mark.value, edge});
  }
  if (mark.kind == MarkKind::Watermark) watermarks_.emit(mark.value);
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    if (!pass(output, mark)) return false;
  }
  if (mark.kind == MarkKind::Barrier) alignment_.pass(mark.value);
  RE_CHECK(mark.kind != MarkKind::Probe && mark.kind != MarkKind::Command);  // these never leave by here
  return true;
}

bool OperatorContext::pass(std::size_t output, Mark mark) {
  if (!await_alignment()) return false;
  const OutputPort& port = outputs_[output];
  RE_CHECK(port.edges.size() == port.consumers.size());
  for (std::size_t index = 0; index < port.consumers.size(); ++index) {
    if (!port.consumers[index]->accept({mark.kind, mark.value, port.edges[index]})) return false;
  }
  return true;
}

bool OperatorContext::advance(std::uint32_t edge, std::int64_t watermark) {
  switch (watermarks_.advance(edge, watermark)) {
    case Watermarks::Change::None:
      return true;
    case Watermarks::Change::Idle:
      return ends_.ended() + 1 >= ends_.edges() || show({MarkKind::Watermark, kIdle});
    case Watermarks::Change::Advanced:
      if (op_->has_any(REL_ON_WATERMARK)) return call_and_submit(Occasion::Watermark);
      break;
    case Watermarks::Change::Active:
      break;
  }
  return show({MarkKind::Watermark, watermarks_.value()});
}

bool OperatorContext::accept(Mark mark) {
  return inside([&] {
    call_.in_mark = true;
    const bool ok = deliver(mark);
    call_.in_mark = false;
    return ok;
  });
}

bool OperatorContext::deliver(Mark mark) {
  if (mark.kind == MarkKind::Probe) {
    return !probe_.arrive(ends_.edges()) || send_probe();
  }
  if (mark.kind == MarkKind::Watermark) return advance(mark.edge, mark.value);
  if (mark.kind == MarkKind::Barrier) return take_epoch(mark);
  if (mark.kind != MarkKind::Final) return show(mark);
  // A stream that goes on elsewhere isn't at the end of its time: what waits for that is in the snapshot, and comes there.
  if (engine_.finishing.load(std::memory_order_relaxed) && !advance(mark.edge, kEndOfTime)) return false;
  if (!ends_.end_edge()) return end_port() && align();
  return probe_.is_head() ? send_probe() : end();
}

// To the operator, and then on if it says so. A command may come after the end, for its sender can't know.
bool OperatorContext::show(Mark mark) {
  if (is_final()) return true;
  const Doing doing(*current_thread, static_cast<std::uint32_t>(id_));
  call_.input = {nullptr, 0, call_.in_stride, {}};
  if (mark.kind == MarkKind::Time && placement_.latency != nullptr)
    placement_.latency->add(std::chrono::nanoseconds(placement_.clock() - mark.value));
  bool onward = false;
  try {
    if (mark.kind == MarkKind::Command) {
      op_->on_command(this);
    } else {
      onward = mark.kind == MarkKind::Barrier ? op_->on_barrier(mark.value, this) : op_->on_mark(mark, this);
    }
  } catch (const std::exception& error) {
    fail(thrown(error));
  }
  if (!call_.message.empty()) report(-1);
  end_call();
  return !call_.refused && !stopping() && (!onward || pass(mark));
}

// An edge has ended, and with it perhaps an input port; others go on.
bool OperatorContext::end_port() {
  if (!ends_.take_port_end()) return true;
  const bool wanted = op_->has_any(REL_ON_PORT_END) && engine_.finishing.load(std::memory_order_relaxed);
  if (wanted && !call_and_submit(Occasion::PortEnd)) return false;
  ends_.publish(junction_->port);
  return true;
}

// All that was to come has come.
bool OperatorContext::end() {
  const bool finishing = op_->has_any(REL_SINK) || op_->announces_end() || engine_.finishing.load(std::memory_order_relaxed);
  RE_CHECK(!is_final());
  watermarks_.end();
  if (op_->has_any(REL_ON_FINISH) && finishing && !call_and_submit(Occasion::Finish)) return false;
  if (engine_.is_stopping() || !pass(Mark{MarkKind::Final, 0})) return false;
  is_final_.store(true, std::memory_order_release);
  if (is_terminal()) engine_.listener.terminal_final();
  return true;
}

void SourceStart::wait(const OperatorContext& source) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t before = 0;
  Clock::time_point since = Clock::now();
  waiting_.store(true, std::memory_order_relaxed);
  while (!source.stopping()) {
    std::uint64_t moved = 0;
    bool awaits = false;
    auto patience = std::chrono::nanoseconds::max();
    bool ended = true;
    for (const Awaited& side : awaited_) {
      if (side.consumer->has_ended(side.port)) continue;
      ended = false;
      patience = std::min(patience, side.patience);
      for (const OperatorContext* const each : side.upstream) {
        moved += each->tuples_in() + each->tuples_out();
        awaits = awaits || each->source_start().is_waiting();
      }
    }
    if (ended) break;
    if (awaits || std::exchange(before, moved) != moved) since = Clock::now();
    if (Clock::now() - since >= patience) break;
    std::this_thread::sleep_for(kWaitSlice);
  }
  waiting_.store(false, std::memory_order_relaxed);
}

// In front of what the next call emits.
bool OperatorContext::send_time_mark() {
  std::int64_t now = 0;
  return !start_.take_time_mark(placement_, now) || inside_if_source([&] { return pass({MarkKind::Time, now}); });
}

void OperatorContext::run_source() {
  RE_CHECK(shape_.source && ends_.edges() == 0);
  (void)ends_.add_edge();  // its own end
  bool ok = true;
  start_.wait(*this);
  while (ok && !call_.finished && !stopping()) ok = send_time_mark() && call_and_submit(Occasion::Records);
  if (call_.finished && start_.skip > 0 && !is_interrupted_.load(std::memory_order_acquire) && !engine_.is_stopping()) {
    call_.message =
        "ended " + std::to_string(start_.skip) + " tuples before where the job was stopped: its input is shorter than it was then";
    report(-1);
  }
  // An interruption ends a source as if it had finished; REL_STOPPED is then its consent.
  if (!engine_.is_stopping()) (void)accept(Mark{MarkKind::Final, 0});
}

}  // namespace rayelastic
