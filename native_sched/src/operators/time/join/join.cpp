// Left records wait until the watermark says that all right ones that they match are there; right ones are kept by key, in the order of
// their times, as long as a left one may match them. Pairs has no times: each side is kept as long as the other may have more.
#include "rayelastic/operators/time/join.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "operators/time/join/join_state.hpp"

namespace rayelastic {

namespace {

class KeyedJoin final : public JoinOperator<JoinState> {
 public:
  using JoinOperator::JoinOperator;

  // By the clock: keys end though nothing comes.
  [[nodiscard]] bool takes_commands() const override { return join->lives.any() && !join->is_timed(); }
  void on_command(rel_context* context) override {
    constexpr std::size_t kRecords = 256;
    join->aside.resize(kRecords * join->output->record_size());
    OutputWriter writer(*join->output, join->aside.data(), kRecords, context, true);
    if (join->begin_run(writer)) (void)writer.flush();
    join->publish();
  }

 private:
  // Left records, and right ones that are dropped, by the watermark at which they are due; of equal ones the left first. So the output doesn't
  // depend on which watermarks there are.
  [[nodiscard]] std::int64_t advance(std::int64_t watermark, OutputWriter& writer, rel_context* context) override {
    if (join->is_of_pairs()) {
      const bool all = watermark == kEndOfTime;
      const bool ok = (!all && context->port() != 0) || join->end_side(true, writer);
      if (!ok || !((!all && context->port() != 1) || join->end_side(false, writer))) return REL_STOPPED;
      join->publish();
      return writer.result();
    }
    for (bool more = true; more;) {
      const std::int64_t due = join->due.next();
      more = due <= watermark && due != kEndOfTime;
      for (const std::int64_t end = more ? due : watermark; join->waiting.is_due(end); join->waiting.pop()) {
        const Waiting& next = join->waiting.top();
        if (!join->match(next.record, next.time, writer)) return REL_STOPPED;
      }
      const auto end_at = [&](std::int64_t now, void* slot) {
        return join->is_bounded() ? join->expire(now, slot, writer) : join->end_life(now, slot, writer);
      };
      if (more && !join->due.take(due, end_at)) return REL_STOPPED;
    }
    if (watermark == kEndOfTime) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, std::max(watermark, -kLatestTime) - join->delay()});
    return 0;
  }
};

void check_keys(const JoinState& join) {
  const auto one = join.left_keys.fields();
  const auto other = const_cast<JoinState&>(join).table.extractor().fields();
  if (one.size() != other.size()) throw std::invalid_argument("both sides have to have as many key fields");
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i]->type != other[i]->type)
      throw std::invalid_argument("key '" + one[i]->name + "' is of another type than '" + other[i]->name + "' on the right");
  }
}

}  // namespace

std::shared_ptr<Operator> make_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                                    std::shared_ptr<const Schema> output, const JoinOptions& options) try {
  auto join = std::make_unique<JoinState>(options, left, right, output);
  check_keys(*join);
  const std::size_t own = left->fields().size();
  if (output->fields().size() != own + options.right_fields.size())
    throw std::invalid_argument("the output schema has to have the fields of the left, then those chosen of the right");
  join->left_fields = joined_fields(*left, names_of(*left), *output, 0, options.right_outer, options.left_keys);
  join->right_fields = joined_fields(*right, options.right_fields, *output, own, options.left_outer);
  for (std::size_t i = 0; i < options.left_keys.size() && options.right_outer; ++i) {
    const Field* const from = right->find(options.right_keys[i]);
    const Field* const to = output->find(options.left_keys[i]);
    if (to == nullptr || (from->nullable && !to->nullable))
      throw std::invalid_argument("key '" + options.left_keys[i] + "' of the output schema has to be nullable");
    join->right_keys.push_back({from, to});
  }
  const bool timed = !options.left_time.empty();
  if (timed != !options.right_time.empty() || (!timed && join->is_bounded()))
    throw std::invalid_argument("both sides need an event time, or neither, for what there is by arrival");
  if (options.symmetric && timed) throw std::invalid_argument("by time no join is symmetric but those by interval and window");
  if (join->is_of_pairs() && (timed || options.symmetric)) throw std::invalid_argument("pairs have no times, and both sides anyway");
  if (options.right_outer && !join->keeps_lefts() && !join->is_bounded())
    throw std::invalid_argument("right records without a match are known by interval, by window, of pairs, and where it is symmetric");
  if (options.before < (options.kind == JoinKind::Window ? 1 : 0) || options.before > kLongestSpan || options.after < 0 ||
      options.after > kLongestSpan)
    throw std::invalid_argument("the times of a join are negative or too long");
  if (options.kind == JoinKind::Window) options.times.check(options.before, options.before);
  if (options.ttl.ticks != 0 &&
      (join->is_bounded() || options.ttl.touch == Touch::Change || options.ttl.field.empty() != options.left_time.empty()))
    throw std::invalid_argument("a time to live is of joins that keep without end, by the time of the left or by the clock");
  return std::make_shared<KeyedJoin>(name, std::move(join), options);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
