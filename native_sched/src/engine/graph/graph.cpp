#include "engine/graph/graph.hpp"

#include <algorithm>
#include <atomic>

#include "rayelastic/assert.hpp"

namespace rayelastic {

Graph::Graph(const Operators& operators, const std::vector<Placement>& placements, const std::vector<Edge>& edges)
    : operators_(operators),
      placements_(placements),
      edges_(edges),
      wiring_(operators, edges),
      inputs_(operators.size()),
      feedback_inputs_(operators.size()) {
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    for (const auto& schema : operators_[id]->inputs())
      inputs_[id].push_back({.port = inputs_[id].size(), .stride = schema->record_size()});
    feedback_inputs_[id].resize(inputs_[id].size(), 0);
  }
  for (const Edge& edge : edges_) {
    std::size_t input = edge.input;
    if (edge.feedback) {
      std::size_t& feedback = feedback_inputs_[edge.to][edge.input];
      if (feedback == 0) {
        feedback = inputs_[edge.to].size();
        inputs_[edge.to].push_back({.port = edge.input, .stride = inputs_[edge.to][edge.input].stride, .feedback = true});
      }
      input = feedback;
    }
    RE_CHECK(input < inputs_[edge.to].size() && inputs_[edge.to][input].feedback == edge.feedback);
    ++inputs_[edge.to][input].edges;
  }
}

std::size_t Graph::port_count() const noexcept {
  std::size_t ports = 0;
  for (const auto& each : inputs_) ports += each.size();
  return ports;
}

void Graph::build(Engine& engine, const Models& models, const Overflow& overflow) {
  ports_.resize(operators_.size());
  RE_CHECK(contexts_.empty() && placements_.size() == operators_.size());
  for (OperatorId id = 0; id < operators_.size(); ++id) add_operator(id, engine, models, overflow);
  RE_CHECK(contexts_.size() == operators_.size());
  for (const Edge& edge : edges_) connect(edge);
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (!operators_[id]->takes_commands()) continue;
    ports_[id].front()->add_edge();  // of Errands
    engine.takes_commands = true;
  }
  const auto called_for = [this](CalledFor what) {
    return std::ranges::any_of(operators_, [what](const auto& op) { return op->called_for() == what; });
  };
  engine.begins_with_one = called_for(CalledFor::Record) && !called_for(CalledFor::Run);
  for (const Edge& edge : edges_) {
    if (!edge.feedback && contexts_[edge.to]->inputs() > 1) contexts_[edge.from]->align_with(*contexts_[edge.to]);
  }
  for (const auto& context : contexts_) context->keep_way();
  find_parts();
}

void Graph::begin_after(const Beginning& beginning) {
  std::vector<const OperatorContext*> upstream{contexts_[beginning.id].get()};  // it may have a queue to take yet
  const Wiring::Members members = wiring_.upstream_of(beginning.id, beginning.port);
  for (OperatorId id = 0; id < operators_.size(); ++id) {
    if (members[id]) upstream.push_back(contexts_[id].get());
  }
  contexts_[beginning.source]->source_start().begin_after(
      {contexts_[beginning.id].get(), beginning.port, std::move(upstream), beginning.patience});
}

// Downstream first: a function's parts lead to those of what takes its output.
void Graph::find_parts() {
  RE_CHECK(order().size() == operators_.size());
  std::vector<OperatorContext*> next(operators_.size(), nullptr);
  std::vector<std::size_t> ways(operators_.size(), 0);
  for (const Edge& edge : edges_) {
    next[edge.from] = contexts_[edge.to].get();
    ++ways[edge.from];
  }
  for (auto id = order().rbegin(); id != order().rend(); ++id) {
    if (ports_[*id].size() != 1 || contexts_[*id]->junction() != nullptr) continue;
    const bool alone = ways[*id] == 1 && next[*id]->inputs() == 1;  // nobody else gives to the one that it gives to
    if (contexts_[*id]->run_in_parts(alone ? next[*id] : nullptr)) ports_[*id].front()->allow_partial();
  }
}

void Graph::add_operator(OperatorId id, Engine& engine, const Models& models, const Overflow& overflow) {
  const bool conjunctive = !operators_[id]->demands().empty();
  contexts_.push_back(std::make_unique<OperatorContext>(id, operators_[id], placements_[id], engine));
  OperatorContext& context = *contexts_.back();
  RE_CHECK(contexts_.size() == id + 1 && ports_[id].empty());
  if (inputs_[id].size() > 1 || conjunctive) context.meet(inputs_[id]);
  if (conjunctive) relate_ports(id, engine);
  const auto named = models.find(id);
  const ThreadingModel model = possible_model(id, named == models.end() ? placements_[id].model : named->second);
  for (std::size_t input = 0; input < inputs_[id].size(); ++input) {
    ports_[id].push_back(std::make_unique<Port>(context, engine, model, input));
    if (context.junction() != nullptr) ports_[id].back()->meet(context.junction()->gate);
    if (!inputs_[id][input].feedback) continue;
    const std::size_t stride = inputs_[id][input].stride;
    ports_[id].back()->close_loop(std::make_unique<Spill>(stride, engine.options.loop_bytes, [overflow, id] { overflow(id); }));
    engine.replaces_waiting.store(true, std::memory_order_relaxed);
  }
}

void Graph::relate_ports(OperatorId id, Engine& engine) {
  engine.replaces_waiting.store(true, std::memory_order_relaxed);
  for (std::size_t port = 0; port < operators_[id]->demands().size(); ++port) {
    for (std::size_t other = 0; other < operators_[id]->demands().size(); ++other) {
      RE_CHECK(contexts_[id]->junction() != nullptr);
      if (other != port && wiring_.are_related(id, port, other)) contexts_[id]->junction()->relate(port, other);
    }
  }
}

void Graph::connect(const Edge& edge) {
  using Place = OperatorContext::Place;
  Port& port = *ports_[edge.to][edge.feedback ? feedback_inputs_[edge.to][edge.input] : edge.input];
  const Place place = edge.feedback ? Place::Feedback : wiring_.is_in_loop(edge) ? Place::InLoop : Place::Outside;
  const std::uint32_t number = edge.feedback ? 0 : contexts_[edge.to]->add_input();
  RE_CHECK(edge.feedback || number + 1 == contexts_[edge.to]->inputs());
  contexts_[edge.from]->add_consumer(edge.output, &port, number, place);
  port.add_edge();
}

ThreadingModel Graph::possible_model(OperatorId id, ThreadingModel desired) const {
  return desired == ThreadingModel::Manual && wiring_.needs_queue(id) ? ThreadingModel::Dynamic : desired;
}

ThreadingModel Graph::model_of(OperatorId id) const {
  if (operators_[id]->inputs().empty()) return ThreadingModel::Dedicated;
  for (std::size_t input = 0; input < operators_[id]->inputs().size(); ++input) {
    if (ports_[id][input]->is_switching()) return ports_[id][input]->model();
  }
  return ports_[id].front()->model();
}

}  // namespace rayelastic
