// How a router is told what to do: posted by any thread, carried out by whoever runs it.
#include <algorithm>
#include <utility>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/net/router.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kKeptAnswers = 1024;

}  // namespace

std::uint64_t Router::hold(std::vector<std::uint16_t> partitions, std::uint16_t owner, std::int64_t mark, std::uint64_t epoch) {
  return post({.kind = Kind::Hold, .epoch = epoch, .partitions = std::move(partitions), .target = owner, .mark = mark});
}

std::uint64_t Router::route(std::vector<std::uint16_t> partitions, std::uint16_t target, std::uint64_t epoch) {
  return post({.kind = Kind::Route, .epoch = epoch, .partitions = std::move(partitions), .target = target});
}

std::uint64_t Router::attach(std::uint16_t target, std::shared_ptr<Link> link, std::uint64_t epoch) {
  link->open_out(schema_);
  return post({.kind = Kind::Attach, .epoch = epoch, .target = target, .link = std::move(link)});
}

std::uint64_t Router::detach(std::uint16_t target, std::uint64_t epoch) {
  return post({.kind = Kind::Detach, .epoch = epoch, .target = target});
}

std::uint64_t Router::post(Command command) {
  const Lock guard(mutex_);
  command.ticket = ++tickets_;
  if (command.link != nullptr) {
    std::erase_if(links_, [](const auto& link) { return link.expired(); });
    links_.emplace_back(command.link);
    if (stopping_.load()) command.link->interrupt();
  }
  if (closed_) {
    if (command.link != nullptr) say_goodbye(std::move(command.link));
    answer(Answer::Ended);
  } else {
    commands_.push_back(std::move(command));
    posted_.store(true, std::memory_order_relaxed);
    bypass_.open.store(false, std::memory_order_relaxed);
  }
  changed_.notify_all();
  return tickets_;
}

// The goodbye waits for an answer.
void Router::say_goodbye(std::shared_ptr<Link> link) {
  std::erase_if(farewells_, [](const auto& one) { return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  farewells_.push_back(std::async(std::launch::async, [link = std::move(link)]() mutable {
    (void)link->finish();
    link.reset();
  }));
}

// Of the oldest command that has none.
void Router::answer(Answer given) {
  RE_CHECK(answered_ < tickets_);
  answers_.push_back(given);
  ++answered_;
  if (answers_.size() > kKeptAnswers) answers_.pop_front();
}

Router::Answer Router::wait(std::uint64_t ticket, std::chrono::nanoseconds patience) {
  Lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&]() REL_HELD(mutex_) { return answered_ >= ticket || stopping_.load(); }) ||
      answered_ < ticket) {
    return stopping_.load() ? Answer::Ended : Answer::Late;
  }
  RE_CHECK(answered_ <= tickets_ && answers_.size() <= answered_);
  const std::uint64_t age = answered_ - ticket;
  return age < answers_.size() ? answers_[answers_.size() - 1 - age] : Answer::Refused;
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
                     .held_records = held_->size(),
                     .held_bytes = held_->bytes(),
                     .ever_held = ever_held_,
                     .waits = waits_,
                     .ended = ended_,
                     .closed = closing_,
                     .owners = owners_};
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
      RE_CHECK(commands_.front().ticket == answered_ + 1);
      command = std::move(commands_.front());
      commands_.pop_front();
    }
    const Answer found = carry_out(command, context);
    publish();
    {
      const Lock guard(mutex_);
      answer(found);
    }
    changed_.notify_all();
    if (stopping_.load()) return false;
  }
}

Router::Answer Router::carry_out(Command& command, rel_context* context) {
  const bool fits = std::ranges::all_of(command.partitions, [this](std::uint16_t partition) { return partition < owners_.size(); });
  if (command.epoch < epoch_ || !fits) return Answer::Refused;
  RE_CHECK(!ended_ || held_partitions_ > 0 || held_->empty());
  epoch_ = command.epoch;
  switch (command.kind) {
    case Kind::Hold:
      return begin_hold(command, context);
    case Kind::Route:
      return change_route(command, context);
    case Kind::Attach:
      return add_target(command);
    case Kind::Detach:
      return drop_target(command);
  }
  return Answer::Refused;
}

Router::Answer Router::begin_hold(const Command& command, rel_context* context) {
  if (command.target >= targets_.size() || !targets_[command.target].known) return Answer::Refused;
  for (const std::uint16_t partition : command.partitions) set_owner(partition, kHeld);
  RE_CHECK(std::ranges::all_of(command.partitions, [this](std::uint16_t partition) { return owners_[partition] == kHeld; }));
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
  for (const std::uint16_t partition : command.partitions) set_owner(partition, number);
  RE_CHECK(std::ranges::all_of(command.partitions, [&](std::uint16_t partition) { return owners_[partition] == number; }));
  targets_[number].fed = targets_[number].fed || !command.partitions.empty();
  return release(context) ? Answer::Done : Answer::Ended;
}

// What waited goes its way, in order; what has to wait on stays in order too.
bool Router::release(rel_context* context) {
  auto waited = std::exchange(held_, std::make_unique<RecordBuffer>(schema_->record_size()));
  std::vector<Chunk*> chunks;
  while (!waited->empty()) {
    Run run = waited->front(keys_.size());
    chunks.clear();
    waited->chunks_of(run.count, chunks);
    run.chunks = chunks;
    for (Chunk* chunk : chunks) context->attach(chunk);
    if (!scatter(run, context)) return false;
    RE_CHECK(run.count > 0);
    waited->pop(run.count);
    if (context->stopping()) return false;
  }
  RE_CHECK(held_partitions_ > 0 || held_->empty());
  if (held_partitions_ == 0) pace_.begin(Pace::Clock::now());
  if (held_partitions_ > 0 || !std::exchange(watermark_due_, false)) return true;
  context->mark(*watermark_);
  return send_to_links(*watermark_);
}

Router::Answer Router::add_target(const Command& command) {
  const std::uint16_t number = command.target;
  if (number == kHeld) return Answer::Refused;
  if (targets_.size() <= number) targets_.resize(number + std::size_t{1});
  Target& target = targets_[number];
  if (target.known && !target.broken) return Answer::Refused;
  target.known = true;
  target.broken = false;
  target.fed = std::ranges::find(owners_, number) != owners_.end();
  RE_CHECK(command.link != nullptr && target.port < 0);
  target.link = command.link;
  if (watermark_.has_value() && !watermark_due_ && target.link->send(*watermark_) != Link::Outcome::Ok) break_target(number);
  return Answer::Done;
}

Router::Answer Router::drop_target(const Command& command) {
  const std::uint16_t number = command.target;
  if (number >= targets_.size() || !targets_[number].known) return Answer::Done;  // again
  Target& target = targets_[number];
  if (target.port >= 0 || std::ranges::find(owners_, number) != owners_.end()) return Answer::Refused;
  RE_CHECK(target.link != nullptr);
  std::shared_ptr<Link> link = std::exchange(target.link, nullptr);
  const bool broken = target.broken;
  target = Target();
  if (broken) {
    link->interrupt();
    return Answer::Done;
  }
  const Lock guard(mutex_);
  say_goodbye(std::move(link));
  return Answer::Done;
}

}  // namespace rayelastic
