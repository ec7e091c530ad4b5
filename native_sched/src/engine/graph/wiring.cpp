#include "engine/graph/wiring.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

// The calls of manual operators are inside one another: for a mark those of all operators of the stretch, for records those that submit in
// the middle of their call, or to several others. Their frames are larger. For as long as ports change their models runs may be, too.
constexpr std::size_t kStackOfStretch = 1024;  // in frames of marks, 0.3 KiB each, and of runs that come so, up to 1 KiB
constexpr std::size_t kStackOfNested = 16;

std::size_t stack_of(const Operator& op, std::size_t consumers) {
  return !op.has_any(REL_ONE_TO_ONE | REL_FILTER) || consumers > 1 ? kStackOfNested : 1;
}

}  // namespace

void refuse(const Operator& op, const std::string& why) { throw std::invalid_argument("operator '" + op.name() + "' " + why); }

void check_operator(Operator& op, const Placement& placement) {
  const bool source = op.has_any(REL_SOURCE);
  const bool sink = op.has_any(REL_SINK);
  const bool keyed = op.has_any(REL_KEYED);
  const std::vector<Demand>& demands = op.demands();
  if (source && sink) refuse(op, "is both source and sink");
  if (source != op.inputs().empty()) refuse(op, source ? "is a source but has an input schema" : "has no input schema");
  if (sink != op.outputs().empty()) refuse(op, sink ? "is a sink but has an output schema" : "has no output schema");
  if (keyed != (op.keyed_state() != nullptr)) refuse(op, "must have keyed state exactly if it is keyed");
  if (source && keyed) refuse(op, "is a source and can't be keyed");
  if (source && op.takes_commands()) refuse(op, "is a source and has no input port for commands");
  if (source && !demands.empty()) refuse(op, "is a source and has no input ports");
  if (!source && placement.skip > 0) refuse(op, "is no source and can't skip what it submitted before");
  const auto missing = [](const std::shared_ptr<const Schema>& schema) { return schema == nullptr; };
  if (std::ranges::any_of(op.inputs(), missing) || std::ranges::any_of(op.outputs(), missing)) refuse(op, "has a port without schema");
  if (!demands.empty() && demands.size() != op.inputs().size()) refuse(op, "must have a demand for each input port, or none at all");
  if (std::ranges::any_of(demands, [](const Demand& demand) { return demand.count < 1; }))
    refuse(op, "must ask for one record of each port at least");
  if (keyed && (op.inputs().size() > 1 || !demands.empty())) refuse(op, "is keyed: it takes the runs of a single input port as they come");
}

void check_edge(const Operators& operators, const Edge& edge) {
  if (edge.from >= operators.size() || edge.to >= operators.size()) throw std::invalid_argument("connect: no such operator");
  const Operator& from = *operators[edge.from];
  const Operator& to = *operators[edge.to];
  if (from.outputs().empty()) refuse(from, "is a sink and has no output to connect");
  if (to.inputs().empty()) refuse(to, "is a source and has no input to connect");
  if (edge.output >= from.outputs().size()) refuse(from, "has no output port " + std::to_string(edge.output));
  if (edge.input >= to.inputs().size()) refuse(to, "has no input port " + std::to_string(edge.input));
  if (from.outputs()[edge.output]->record_size() != to.inputs()[edge.input]->record_size())
    refuse(to, "takes records of another size than '" + from.name() + "' makes");
  if (edge.feedback && !to.demands().empty())
    refuse(to, "is conjunctive and can't be the head of a loop: put an operator that takes runs as they come in front");
}

void check_beginning(const Operators& operators, const Beginning& beginning) {
  if (beginning.source >= operators.size() || beginning.id >= operators.size())
    throw std::invalid_argument("begin_after: no such operator");
  if (!operators[beginning.source]->has_any(REL_SOURCE)) refuse(*operators[beginning.source], "is no source, which could wait");
  if (beginning.port >= std::min<std::size_t>(operators[beginning.id]->inputs().size(), kPortsWaitedFor))
    refuse(*operators[beginning.id], "has no input port " + std::to_string(beginning.port) + " to wait for");
}

Wiring::Wiring(const Operators& operators, const std::vector<Edge>& edges)
    : operators_(operators), edges_(edges), loops_(operators.size()) {
  check_fed();
  find_order();
  find_queues();
  for (const Edge& edge : edges_) {
    if (!edge.feedback || loops_[edge.to].has_value()) continue;
    Members head(operators_.size(), false);
    head[edge.to] = true;
    Members origins(operators_.size(), false);
    const Members below = reach(head, true);
    for (const Edge& other : edges_) {
      if (!other.feedback || other.to != edge.to) continue;
      if (!below[other.from])
        refuse(*operators_[other.from], "has a feedback edge to '" + operators_[edge.to]->name() + "', which doesn't feed it: no loop");
      origins[other.from] = true;
    }
    Members members = reach(origins, false);
    for (OperatorId id = 0; id < operators_.size(); ++id) members[id] = members[id] && below[id];
    loops_[edge.to] = std::move(members);
  }
  for (OperatorId head = 0; head < operators_.size(); ++head) {
    if (loops_[head].has_value()) check_loop(head);
  }
}

bool Wiring::is_in_loop(const Edge& edge) const {
  if (edge.feedback) return true;
  return std::ranges::any_of(loops_, [&](const auto& loop) { return loop.has_value() && (*loop)[edge.from] && (*loop)[edge.to]; });
}

bool Wiring::are_related(OperatorId id, std::size_t port, std::size_t other) const {
  const Members some = upstream_of(id, port);
  const Members others = upstream_of(id, other);
  for (OperatorId each = 0; each < operators_.size(); ++each) {
    if (some[each] && others[each]) return true;
  }
  return false;
}

// With all that feeds them, or that they feed; feedback edges apart.
Wiring::Members Wiring::upstream_of(OperatorId id, std::size_t port) const {
  Members members(operators_.size(), false);
  for (const Edge& edge : edges_) {
    if (edge.to == id && edge.input == port) members[edge.from] = true;
  }
  return reach(std::move(members), false);
}

Wiring::Members Wiring::reach(Members members, bool downstream) const {
  std::vector<std::vector<OperatorId>> next(operators_.size());
  for (const Edge& edge : edges_) {
    if (!edge.feedback) next[downstream ? edge.from : edge.to].push_back(downstream ? edge.to : edge.from);
  }
  std::vector<OperatorId> left;
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (members[id]) left.push_back(id);
  }
  while (!left.empty()) {
    const OperatorId id = left.back();
    left.pop_back();
    for (const OperatorId other : next[id]) {
      if (members[other]) continue;
      members[other] = true;
      left.push_back(other);
    }
  }
  return members;
}

void Wiring::check_fed() const {
  std::vector<std::vector<bool>> fed(operators_.size());
  std::vector<bool> entered(operators_.size(), false);
  for (OperatorId id = 0; id < operators_.size(); ++id) fed[id].resize(operators_[id]->inputs().size(), false);
  for (const Edge& edge : edges_) {
    fed[edge.to][edge.input] = true;
    entered[edge.to] = entered[edge.to] || !edge.feedback;
  }
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (fed[id].empty()) continue;
    if (!entered[id]) refuse(*operators_[id], "has no operator that feeds it");
    const auto unfed = std::ranges::find(fed[id], false);
    if (unfed != fed[id].end())
      refuse(*operators_[id], "has no operator that feeds its input port " + std::to_string(unfed - fed[id].begin()));
  }
}

void Wiring::find_order() {
  std::vector<std::size_t> inputs(operators_.size(), 0);
  std::vector<std::vector<OperatorId>> next(operators_.size());
  for (const Edge& edge : edges_) {
    if (edge.feedback) continue;
    ++inputs[edge.to];
    next[edge.from].push_back(edge.to);
  }
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (inputs[id] == 0) order_.push_back(id);
  }
  for (std::size_t ordered = 0; ordered < order_.size(); ++ordered) {
    for (const OperatorId to : next[order_[ordered]]) {
      RE_CHECK(inputs[to] > 0);
      if (--inputs[to] == 0) order_.push_back(to);
    }
  }
  RE_CHECK(order_.size() <= operators_.size());
  if (order_.size() == operators_.size()) return;
  const auto on_cycle = std::ranges::find_if(inputs, [](std::size_t left) { return left > 0; });
  refuse(*operators_[static_cast<std::size_t>(on_cycle - inputs.begin())],
         "is on or behind a cycle: connect the edge that closes the loop with feedback = true");
}

void Wiring::find_queues() {
  queued_.resize(operators_.size(), false);
  std::vector<std::vector<OperatorId>> next(operators_.size());
  for (const Edge& edge : edges_) {
    if (edge.feedback) {
      queued_[edge.to] = true;
    } else {
      next[edge.from].push_back(edge.to);
    }
  }
  RE_CHECK(order_.size() == operators_.size());
  std::vector<std::size_t> stack(operators_.size(), 0);  // of the calls that this one is in, if nothing had a queue that needs none
  for (const OperatorId id : order_) {
    queued_[id] = queued_[id] || !operators_[id]->demands().empty() || stack[id] >= kStackOfStretch;
    const std::size_t below = (queued_[id] ? 0 : stack[id]) + stack_of(*operators_[id], next[id].size());
    for (const OperatorId to : next[id]) stack[to] = std::max(stack[to], below);
  }
}

void Wiring::check_loop(OperatorId head) const {
  const Members& loop = *loops_[head];
  const std::string of = " the loop of '" + operators_[head]->name() + "'";
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (!loop[id]) continue;
    if (id != head && loops_[id].has_value()) refuse(*operators_[id], "is the head of a loop inside" + of + ", which isn't supported");
    if (!operators_[id]->demands().empty())
      refuse(*operators_[id], "is conjunctive and can't stand in" + of + ": what it keeps back would hide that the loop isn't empty");
    if (operators_[id]->has_any(REL_ON_FINISH))
      refuse(*operators_[id], "has an end-of-input call and can't stand in" + of + ", which has ended by then: put it behind the loop");
  }
  for (const Edge& edge : edges_) {
    if (edge.to != head && loop[edge.to] && !loop[edge.from])
      refuse(*operators_[edge.from], "leads into" + of + " elsewhere than at its head: connect it with a port of the head");
  }
}

}  // namespace rayelastic
