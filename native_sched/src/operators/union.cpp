#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "operators/joined_splits.hpp"
#include "rayelastic/operators/time/splits.hpp"

namespace rayelastic {

namespace {

class UnionOperator final : public Operator {
 public:
  UnionOperator(std::string name, const std::shared_ptr<const Schema>& schema, const std::vector<bool>& tells)
      : Operator(std::move(name), Schemas(tells.size(), schema), {schema}, REL_IN_PLACE | REL_ONE_TO_ONE | REL_ON_PORT_END),
        stride_(schema->record_size()),
        splits_(tells) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t, rel_context* context) override {
    begin(context);
    splits_.enter(static_cast<std::size_t>(context->port()), context);
    if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * stride_);
    return n;
  }
  std::int64_t on_port_end(std::byte*, std::int64_t, rel_context* context) override {
    begin(context);
    splits_.end(static_cast<std::size_t>(context->port()), context);
    return 0;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    if (mark.kind != MarkKind::Split) return true;
    begin(context);
    splits_.pass(static_cast<std::size_t>(context->port()), mark, context);
    return false;
  }

 private:
  void begin(rel_context* context) {
    if (std::exchange(began_, true)) return;
    for (std::size_t port = 0; port < splits_.streams(); ++port) splits_.open(port, context);
  }

  const std::size_t stride_;
  JoinedSplits splits_;
  bool began_ = false;
};

}  // namespace

std::shared_ptr<Operator> make_union(std::string name, std::shared_ptr<const Schema> schema, const std::vector<bool>& tells) {
  if (tells.size() < 2) throw std::invalid_argument("operator '" + name + "': there is nothing to unite");
  return std::make_shared<UnionOperator>(std::move(name), schema, tells);
}

}  // namespace rayelastic
