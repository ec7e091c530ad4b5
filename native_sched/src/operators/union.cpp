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
class UnionOperator final : public Operator {
 public:
  UnionOperator(std::string name, const std::shared_ptr<const Schema>& schema, const std::vector<bool>& tells)
      : Operator(std::move(name), Schemas(tells.size(), schema), {schema}, REL_IN_PLACE | REL_ONE_TO_ONE | REL_ON_PORT_END),
        stride_(schema->record_size()) {
    for (const bool each : tells) ports_.push_back({.tells = each});
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t, rel_context* context) override {
    const auto port = static_cast<std::size_t>(context->port());
    begin(context);
    if (std::exchange(last_, port) != port) say(port, ports_[port].now, SplitChange::Now, context);
    if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * stride_);
    return n;
  }
  std::int64_t on_port_end(std::byte*, std::int64_t, rel_context* context) override {
    const auto port = static_cast<std::size_t>(context->port());
    begin(context);
    while (!ports_[port].open.empty()) end(port, *ports_[port].open.begin(), context);
    return 0;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    const auto port = static_cast<std::size_t>(context->port());
    if (mark.kind != MarkKind::Split) return true;
    begin(context);
    if (ports_[port].tells) pass(port, mark, context);
    return false;
  }

 private:
  void say(std::size_t port, std::int64_t split, SplitChange change, rel_context* context) const {
    context->mark(split_mark(split * static_cast<std::int64_t>(ports_.size()) + static_cast<std::int64_t>(port), change));
  }
  void begin(rel_context* context) {
    if (std::exchange(began_, true)) return;
    for (std::size_t port = 0; port < ports_.size(); ++port) say(port, 0, SplitChange::Open, context);
  }
  void end(std::size_t port, std::int64_t split, rel_context* context) {
    if (ports_[port].open.erase(split) > 0) say(port, split, SplitChange::End, context);
  }
  void pass(std::size_t number, Mark mark, rel_context* context) {
    Port& port = ports_[number];
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
    last_ = number;
  }

  const std::size_t stride_;
  std::vector<Port> ports_;
  std::size_t last_ = SIZE_MAX;  // the port of the last record
  bool began_ = false;
};

}  // namespace

std::shared_ptr<Operator> make_union(std::string name, std::shared_ptr<const Schema> schema, const std::vector<bool>& tells) {
  if (tells.size() < 2) throw std::invalid_argument("operator '" + name + "': there is nothing to unite");
  return std::make_shared<UnionOperator>(std::move(name), schema, tells);
}

}  // namespace rayelastic
