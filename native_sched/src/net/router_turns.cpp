// How a router deals records out in turns: to replicas of a region without state, any of which may have any record.
#include <algorithm>
#include <chrono>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/net/router.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostInTurn = 256;           // records
constexpr std::chrono::milliseconds kLongest{10};  // of a turn: of a replica that runs here, or of a link without room, while others wait

}  // namespace

bool Router::deal(const Run& run, rel_context* context) {
  const std::size_t stride = schema_->record_size();
  std::size_t first = 0;
  while (first < run.count) {
    const std::byte* records = run.records + first * stride;
    const Run rest{records, run.count - first, stride, run.chunks};
    if (owners_.are_held()) {  // all replicas are gone
      hold_back(rest);
      return true;
    }
    if (turns_ == 0 && owners_.sole() != kHeld) return send_all(owners_.sole(), rest, context);
    if (turns_ == 0 && !send_turn(owners_.last_sole(), {records, 0, stride, {}}, context)) return false;
    const std::uint16_t number = next_in_turn();
    RE_CHECK(number < targets_.size() && targets_[number].known);
    Target& target = targets_[number];
    const std::size_t count = std::min(target.in_turn, run.count - first);
    const auto began = Clock::now();
    if (!send_turn(number, {records, count, stride, run.chunks}, context)) return false;
    if (Clock::now() - began > kLongest)
      target.in_turn = std::max<std::size_t>(count / 2, 1);
    else if (count == target.in_turn)
      target.in_turn = std::min(target.in_turn + 1, kMostInTurn);
    first += count;
  }
  RE_CHECK(first == run.count);
  return true;
}

// A mark that has to stay in its place among the records: in a turn of its own.
void Router::deal(Mark mark, rel_context* context) {
  if (owners_.are_held()) return;  // all replicas are gone
  const bool turning = turns_ > 0 || owners_.sole() == kHeld;
  if (turning && turns_ == 0 && !send_turn(owners_.last_sole(), {nullptr, 0, schema_->record_size(), {}}, context)) return;
  Target& target = targets_[turning ? next_in_turn() : owners_.sole()];
  const auto send = [&](Mark one) {
    if (target.port >= 0)
      context->mark(one);
    else if (!target.broken)
      (void)target.link->send(one);
  };
  if (turning) send({MarkKind::Turn, 2 * turns_});
  send(mark);
  if (turning) send({MarkKind::Turn, 2 * turns_++ + 1});
}

// The next one that has room, by the partitions that each has; if none has, the next one: it is waited for.
std::uint16_t Router::next_in_turn() {
  std::uint16_t found = kHeld;
  for (std::size_t tried = 0; tried < owners_.size(); ++tried) {
    const std::uint16_t owner = owners_.next();
    if (owner == kHeld) continue;
    Target& target = targets_[owner];
    if (target.port >= 0 || target.broken) return owner;
    if (const std::size_t room = target.link->room(); room > 0) {
      target.in_turn = std::min(target.in_turn, std::max<std::size_t>(room / schema_->record_size(), 1));
      return owner;
    }
    if (found == kHeld) found = owner;
    if (tried > 2 * targets_.size()) break;  // each was looked at, most likely
  }
  return found;
}

bool Router::send_turn(std::uint16_t number, const Run& run, rel_context* context) {
  RE_CHECK(number < targets_.size());
  const Mark begin{MarkKind::Turn, 2 * turns_};
  const Mark end{MarkKind::Turn, 2 * turns_ + 1};
  ++turns_;
  Target& target = targets_[number];
  if (target.port >= 0) {
    context->mark(begin);
    if (run.count > 0 && !send_all(number, run, context)) return false;
    context->mark(end);
    return true;
  }
  if (target.broken) return run.count == 0 || send_all(number, run, context);
  if (target.link->send(begin) == Link::Outcome::Stopped) return false;
  if (run.count > 0 && !send_all(number, run, context)) return false;
  return target.broken || target.link->send(end) != Link::Outcome::Stopped;
}

bool Router::send_all(std::uint16_t number, const Run& run, rel_context* context) {
  RE_CHECK(number < targets_.size() && run.count > 0);
  Target& target = targets_[number];
  if (target.port >= 0) return context->emit(target.port, run.records, static_cast<std::int64_t>(run.count));
  const Link::Outcome outcome = target.broken ? Link::Outcome::Failed : target.link->send(run.records, run.count);
  if (outcome != Link::Outcome::Failed) return outcome != Link::Outcome::Stopped;
  break_target(number);
  hold_back(run);
  return true;
}

}  // namespace rayelastic
