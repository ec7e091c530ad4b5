// How a router is told what to do: posted by any thread, carried out by whoever runs it.
#include <algorithm>
#include <utility>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/net/router.hpp"

namespace rayelastic {

std::uint64_t Router::hold(std::vector<std::uint16_t> partitions, std::uint16_t owner, std::int64_t mark, std::uint64_t epoch) {
  return post({.kind = Command::Kind::Hold, .epoch = epoch, .partitions = std::move(partitions), .target = owner, .mark = mark});
}

std::uint64_t Router::route(std::vector<std::uint16_t> partitions, std::uint16_t target, std::uint64_t epoch) {
  return post({.kind = Command::Kind::Route, .epoch = epoch, .partitions = std::move(partitions), .target = target});
}

std::uint64_t Router::attach(std::uint16_t target, std::shared_ptr<Link> link, std::uint64_t epoch) {
  link->open_out(schema_);
  return post({.kind = Command::Kind::Attach, .epoch = epoch, .target = target, .link = std::move(link)});
}

std::uint64_t Router::detach(std::uint16_t target, std::uint64_t epoch) {
  return post({.kind = Command::Kind::Detach, .epoch = epoch, .target = target});
}

std::uint64_t Router::post(Command command) {
  const Lock guard(mutex_);
  if (command.link != nullptr) {
    links_.add(command.link);
    if (stopping_.load()) command.link->interrupt();
  }
  std::uint64_t ticket = 0;
  if (commands_.is_closed()) {
    if (command.link != nullptr) links_.say_goodbye(std::move(command.link));
    ticket = commands_.post_late();
  } else {
    ticket = commands_.post(std::move(command));
    posted_.store(true, std::memory_order_relaxed);
    bypass_.open.store(false, std::memory_order_relaxed);
  }
  changed_.notify_all();
  return ticket;
}

Router::Answer Router::wait(std::uint64_t ticket, std::chrono::nanoseconds patience) {
  Lock lock(mutex_);
  std::optional<Answer> answer;
  (void)changed_.wait_for(lock, patience, [&]() REL_HELD(mutex_) {
    answer = commands_.answer_to(ticket);
    return answer.has_value() || stopping_.load();
  });
  return answer.value_or(stopping_.load() ? Answer::Ended : Answer::Late);
}

RouterCounters Router::counters() const {
  const Lock guard(mutex_);
  return counters_;
}

std::optional<HotKey> Router::hottest() const {
  const Lock guard(mutex_);
  return hottest_;
}

void Router::publish() {
  RouterCounters now{.epoch = epoch_,
                     .held_records = held_.size(),
                     .held_bytes = held_.bytes(),
                     .ever_held = held_.total(),
                     .waits = waits_,
                     .ended = ended_,
                     .closed = closing_,
                     .owners = owners_.all()};
  for (std::size_t number = 0; number < targets_.size(); ++number) {
    if (targets_[number].broken) now.broken.push_back(static_cast<std::uint16_t>(number));
  }
  const Lock guard(mutex_);
  counters_ = std::move(now);
}

bool Router::wait_for_command(rel_context* context) {
  {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() REL_HELD(mutex_) { return !commands_.empty() || stopping_.load(); });
  }
  return !stopping_.load() && carry_out(context);
}

bool Router::wait_for_command(rel_context* context, std::chrono::milliseconds most) {
  {
    Lock lock(mutex_);
    changed_.wait_for(lock, most, [this]() REL_HELD(mutex_) { return !commands_.empty() || stopping_.load(); });
  }
  return !stopping_.load() && carry_out(context);
}

// All that was posted. False: stop.
bool Router::carry_out(rel_context* context) {
  for (;;) {
    Command command;
    {
      const Lock guard(mutex_);
      if (commands_.empty()) {
        posted_.store(false, std::memory_order_relaxed);
        open_bypass();
        return !stopping_.load();
      }
      command = commands_.take();
    }
    const Answer found = carry_out(command, context);
    publish();
    {
      const Lock guard(mutex_);
      commands_.answer(found);
    }
    changed_.notify_all();
    if (stopping_.load()) return false;
  }
}

Router::Answer Router::carry_out(Command& command, rel_context* context) {
  const bool fits = std::ranges::all_of(command.partitions, [this](std::uint16_t partition) { return partition < owners_.size(); });
  if (command.epoch < epoch_ || !fits) return Answer::Refused;
  RE_CHECK(!ended_ || owners_.is_any_held() || held_.size() == 0);
  epoch_ = command.epoch;
  switch (command.kind) {
    case Command::Kind::Hold:
      return begin_hold(command, context);
    case Command::Kind::Route:
      return change_route(command, context);
    case Command::Kind::Attach:
      return add_target(command);
    case Command::Kind::Detach:
      return drop_target(command);
  }
  return Answer::Refused;
}

Router::Answer Router::begin_hold(const Command& command, rel_context* context) {
  if (command.target >= targets_.size() || !targets_[command.target].known) return Answer::Refused;
  hold_partitions(command.partitions);
  RE_CHECK(owners_.are_all(command.partitions, kHeld));
  const Mark mark{MarkKind::Flush, command.mark};
  Target& owner = targets_[command.target];
  if (owner.port >= 0) {
    context->mark(mark);
  } else if (!owner.broken) {
    const Link::Outcome outcome = owner.link->send(mark);
    if (outcome == Link::Outcome::Stopped) return Answer::Ended;
    if (outcome == Link::Outcome::Failed) break_target(command.target);
  }
  return Answer::Done;
}

Router::Answer Router::change_route(const Command& command, rel_context* context) {
  const std::uint16_t number = command.target;
  if (number >= targets_.size() || !targets_[number].known || targets_[number].broken) return Answer::Refused;
  owners_.assign(command.partitions, number);
  RE_CHECK(owners_.are_all(command.partitions, number));
  targets_[number].fed = targets_[number].fed || !command.partitions.empty();
  return release(context) ? Answer::Done : Answer::Ended;
}

// What waited goes its way, in order; what has to wait on stays in order too.
bool Router::release(rel_context* context) {
  const std::unique_ptr<RecordBuffer> waited = held_.take();
  std::vector<Chunk*> chunks;
  while (!waited->empty()) {
    Run run = waited->front(RoutedKeys::kBatch);
    chunks.clear();
    waited->chunks_of(run.count, chunks);
    run.chunks = chunks;
    for (Chunk* chunk : chunks) context->attach(chunk);
    if (!scatter(run, context)) return false;
    RE_CHECK(run.count > 0);
    waited->pop(run.count);
    if (context->stopping()) return false;
  }
  RE_CHECK(owners_.is_any_held() || held_.size() == 0);
  if (owners_.is_any_held()) return true;
  held_.end();
  const std::optional<Mark> watermark = watermark_.take_due();
  if (!watermark.has_value()) return true;
  context->mark(*watermark);
  return send_to_links(*watermark);
}

Router::Answer Router::add_target(const Command& command) {
  const std::uint16_t number = command.target;
  if (number == kHeld) return Answer::Refused;
  if (targets_.size() <= number) targets_.resize(number + std::size_t{1});
  Target& target = targets_[number];
  if (target.known && !target.broken) return Answer::Refused;
  target.known = true;
  target.broken = false;
  target.fed = owners_.has(number);
  RE_CHECK(command.link != nullptr && target.port < 0);
  target.link = command.link;
  const std::optional<Mark> watermark = watermark_.passed();
  if (watermark.has_value() && target.link->send(*watermark) != Link::Outcome::Ok) break_target(number);
  return Answer::Done;
}

Router::Answer Router::drop_target(const Command& command) {
  const std::uint16_t number = command.target;
  if (number >= targets_.size() || !targets_[number].known) return Answer::Done;  // again
  Target& target = targets_[number];
  if (target.port >= 0 || owners_.has(number)) return Answer::Refused;
  RE_CHECK(target.link != nullptr);
  std::shared_ptr<Link> link = std::exchange(target.link, nullptr);
  const bool broken = target.broken;
  target = Target();
  if (broken) {
    link->interrupt();
    return Answer::Done;
  }
  const Lock guard(mutex_);
  links_.say_goodbye(std::move(link));
  return Answer::Done;
}

}  // namespace rayelastic
