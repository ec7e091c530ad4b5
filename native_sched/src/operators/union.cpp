#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/operators/time/splits.hpp"

namespace rayelastic {

namespace {

struct Port {
  bool tells = false;
  bool told = false;                  // its source has said what there is
  std::int64_t now = 0;               // whose records come
  std::set<std::int64_t> open = {0};  // those that haven't ended
};

// What it knows isn't saved: whoever begins again says it again.
struct Union {
  std::size_t stride = 0;
  std::vector<Port> ports;
  std::size_t last = SIZE_MAX;  // the port of the last record
  bool began = false;

  void say(std::size_t port, std::int64_t split, SplitChange change, rel_context* context) const {
    context->mark(split_mark(split * static_cast<std::int64_t>(ports.size()) + static_cast<std::int64_t>(port), change));
  }
  void begin(rel_context* context) {
    if (std::exchange(began, true)) return;
    for (std::size_t port = 0; port < ports.size(); ++port) say(port, 0, SplitChange::Open, context);
  }
  void end(std::size_t port, std::int64_t split, rel_context* context) {
    if (ports[port].open.erase(split) > 0) say(port, split, SplitChange::End, context);
  }
  void pass(std::size_t number, Mark mark, rel_context* context) {
    Port& port = ports[number];
    const std::int64_t split = split_of(mark);
    if (change_of(mark) == SplitChange::End) {
      end(number, split, context);
      return;
    }
    const bool first = !std::exchange(port.told, true) && split != 0;
    port.open.insert(split);
    say(number, split, change_of(mark), context);
    if (first) end(number, 0, context);  // there was none of that number, or it has ended before
    if (change_of(mark) != SplitChange::Now) return;
    port.now = split;
    last = number;
  }
};

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Union*>(state);
  const auto port = static_cast<std::size_t>(context->port());
  self.begin(context);
  if (n == 0) {
    while (!self.ports[port].open.empty()) self.end(port, *self.ports[port].open.begin(), context);
    return 0;
  }
  if (std::exchange(self.last, port) != port) self.say(port, self.ports[port].now, SplitChange::Now, context);
  if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * self.stride);
  return n;
}

bool marked(void* state, Mark mark, rel_context* context) {
  auto& self = *static_cast<Union*>(state);
  const auto port = static_cast<std::size_t>(context->port());
  if (mark.kind != MarkKind::Split) return true;
  self.begin(context);
  if (self.ports[port].tells) self.pass(port, mark, context);
  return false;
}

}  // namespace

OperatorSpec make_union(std::string name, std::shared_ptr<const Schema> schema, std::vector<bool> tells) {
  if (tells.size() < 2) throw std::invalid_argument("operator '" + name + "': there is nothing to unite");
  auto self = std::make_shared<Union>();
  self->stride = schema->record_size();
  for (const bool one : tells) self->ports.push_back({.tells = one});
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.marked = marked;
  spec.flags = REL_IN_PLACE | REL_ONE_TO_ONE | REL_ON_PORT_END;
  spec.state = std::move(self);
  spec.input = schema;
  spec.further_inputs.assign(tells.size() - 1, schema);
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
