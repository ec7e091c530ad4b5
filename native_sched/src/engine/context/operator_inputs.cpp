// The side of OperatorContext where several input ports come in: runs of any port, firings of all, marks, and the probe that finds
// out whether a loop is empty (loop_probe.hpp; P22, P34, J02, J03).
#include <string>
#include <utility>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "engine/graph/junction.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

void OperatorContext::meet(std::vector<Junction::Input> inputs) {
  for (const Junction::Input& input : inputs) probe_.add_feedback(input.feedback ? input.edges : 0);
  junction_ = std::make_unique<Junction>(*op_, std::move(inputs), shape_.capacity, engine_.options.loop_bytes);
}

std::int64_t OperatorContext::take(std::size_t input, const Run& run, bool writable, bool token_held) {
  if (junction_->is_conjunctive()) return stage(input, run);
  const Junction::Input& from = junction_->input(input);
  RE_CHECK(run.stride == from.stride);
  if (!from.feedback && junction_->gate.is_burdened()) {
    if (token_held) engine_.leave_token(*current_thread);
    return 0;
  }
  if (from.feedback) probe_.note_returned(run.count);
  junction_->port = from.port;
  call_.in_stride = from.stride;
  call_.in_place = op_->has_any(REL_IN_PLACE) && call_.in_stride == shape_.out_stride;
  return execute(run, writable, token_held) ? static_cast<std::int64_t>(run.count) : -1;
}

std::int64_t OperatorContext::stage(std::size_t input, const Run& run) {
  Run rest = run;
  for (;;) {
    const std::size_t staged = junction_->stage(input, rest);
    RE_CHECK(staged <= rest.count);
    rest.records += staged * rest.stride;
    rest.count -= staged;
    if (!fire()) return -1;
    if (rest.count == 0 || !junction_->has_room(input)) return static_cast<std::int64_t>(run.count - rest.count);
  }
}

// Calls the function as long as there is a firing.
bool OperatorContext::fire() {
  if (!junction_->ready().has_value()) return true;
  return inside([this] { return fire_all(); });
}

bool OperatorContext::fire_all() {
  bool fired = false;
  bool ok = true;
  for (auto firings = junction_->ready(); ok && firings.has_value(); firings = junction_->ready()) {
    const Doing doing(*current_thread, static_cast<std::uint32_t>(id_));
    RE_CHECK(!junction_->is_firing());
    junction_->begin(*firings);
    counters_.in.add(junction_->records());
    call_.input = junction_->part(0);
    call_.input.chunks = junction_->chunks();
    ok = call_once();
    junction_->consume();
    fired = true;
  }
  if (fired) junction_->gate.release();
  return ok;
}

bool OperatorContext::widen(std::size_t input) {
  if (!junction_->is_conjunctive()) return false;
  const Junction::Widened widened = junction_->widen(input);
  if (widened == Junction::Widened::Beyond) {
    call_.input = {};
    call_.message =
        "has more than loop_bytes waiting at its input port " + std::to_string(input) +
        " for records of another port, which come from the same operator but are fewer: ask for counts in that proportion, take "
        "the records as they come (no demands), or raise loop_bytes";
    report(-1);
  }
  return widened == Junction::Widened::Yes;
}

bool OperatorContext::take(std::size_t input, Mark mark) {
  const bool probe = mark.kind == MarkKind::Probe;
  if (junction_->input(input).feedback) return !probe || take_probe();  // other marks would go round for ever
  if (mark.kind == MarkKind::Final) {
    const bool port_ends = junction_->end_edge(input);
    ends_.begin(port_ends);
    if (port_ends && junction_->is_conjunctive() && !fire()) return false;
  } else if (junction_->is_conjunctive()) {
    return true;  // between which firings would it stand?
  }
  junction_->port = junction_->input(input).port;
  return accept(mark);
}

bool OperatorContext::send_probe() {
  probe_.begin();
  for (Port* port : probe_.consumers()) {
    if (!port->accept(Mark{MarkKind::Probe, 0})) return false;
  }
  return true;
}

// At the head: one has come back.
bool OperatorContext::take_probe() {
  if (!probe_.arrive_at_head()) return true;
  return probe_.is_loop_empty() ? end() : send_probe();
}

std::int32_t OperatorContext::port() const { return junction_ == nullptr ? 0 : static_cast<std::int32_t>(junction_->port); }

std::int64_t OperatorContext::firings() const { return junction_ == nullptr ? -1 : junction_->firings(); }

const void* OperatorContext::staged(std::int32_t port, std::int64_t& n) const {
  Run part;
  if (junction_ != nullptr && junction_->is_firing()) {
    if (port >= 0 && static_cast<std::size_t>(port) < op_->demands().size()) part = junction_->part(static_cast<std::size_t>(port));
  } else if (port == this->port()) {
    part = call_.input;
  }
  n = static_cast<std::int64_t>(part.count);
  return n == 0 ? nullptr : part.records;
}

}  // namespace rayelastic
