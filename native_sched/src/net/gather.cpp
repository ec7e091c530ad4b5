#include "rayelastic/net/gather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace rayelastic {

Gather::Gather(std::shared_ptr<const Schema> schema, GatherOptions options) : schema_(std::move(schema)), options_(std::move(options)) {}

Gather::~Gather() {
  interrupt();
  for (Arm& arm : arms_) arm.thread.join();
}

bool Gather::add(std::shared_ptr<Link> link) {
  const std::lock_guard guard(mutex_);
  if (ended_ || stopping_) return false;
  link->open_in(schema_);
  Arm& arm = arms_.emplace_back(std::move(link));
  arm.thread = std::thread([this, &arm] { receive(arm); });
  return true;
}

void Gather::end_local() {
  const std::lock_guard guard(mutex_);
  ++local_ended_;
  arrived_.notify_all();
}

std::vector<std::string> Gather::lost() const {
  const std::lock_guard guard(mutex_);
  return lost_;
}

void Gather::interrupt() noexcept {
  const std::lock_guard guard(mutex_);
  stopping_ = true;
  for (const Arm& arm : arms_) arm.link->interrupt();
  arrived_.notify_all();
  taken_.notify_all();
  marks_.close();
}

void Gather::receive(Arm& arm) {
  for (;;) {
    Link::Outcome outcome = Link::Outcome::Failed;
    std::string problem;
    try {
      outcome = arm.link->receive(arm.received);
      if (outcome == Link::Outcome::Failed) problem = arm.link->failure();
    } catch (const std::exception& error) {  // no memory, most likely
      problem = "link '" + arm.link->options().name + "': " + error.what();
    }
    std::unique_lock lock(mutex_);
    if (!problem.empty()) lost_.push_back(problem);
    arm.stage = outcome == Link::Outcome::Ok ? Stage::Arrived : Stage::Ended;
    arrived_.notify_all();
    taken_.wait(lock, [&] { return arm.stage != Stage::Arrived || stopping_; });
    if (arm.stage == Stage::Ended || stopping_) return;
  }
}

std::int64_t Gather::process(std::byte* out, std::size_t capacity, rel_context* context) {
  std::unique_lock lock(mutex_);
  Arm* found = nullptr;
  for (;;) {
    if (stopping_) return REL_STOPPED;
    if (!options_.tolerant && !lost_.empty()) {
      context->fail(lost_.front());
      return REL_FAILED(0);
    }
    for (std::size_t tried = 0; found == nullptr && tried < arms_.size(); ++tried) {
      Arm& arm = arms_[next_++ % arms_.size()];
      if (arm.stage == Stage::Arrived) found = &arm;
    }
    if (found != nullptr) break;
    const bool links_ended = std::ranges::all_of(arms_, [](const Arm& arm) { return arm.stage == Stage::Ended; });
    if (links_ended && local_ended_ == options_.local_ends && arms_.size() + options_.local_ends > 0) {
      ended_ = true;
      marks_.close();
      context->finish();
      return 0;
    }
    if (links_ended && !idle_) {  // as long as there is no link nothing comes from here
      idle_ = true;
      lock.unlock();
      context->mark({MarkKind::Watermark, kIdle});
      lock.lock();
      continue;
    }
    arrived_.wait(lock);
  }
  lock.unlock();
  const std::int64_t left = pass(*found, out, capacity, context);
  lock.lock();
  found->stage = Stage::Receiving;
  taken_.notify_all();
  return left;
}

std::int64_t Gather::pass(Arm& arm, std::byte* out, std::size_t capacity, rel_context* context) {
  if (arm.received.header.kind == FrameKind::Records) return arm.link->submit(arm.received, out, capacity, context);
  pass(arm, arm.received.mark(), context);
  arm.link->mark_passed();
  return 0;
}

void Gather::pass(Arm& arm, Mark mark, rel_context* context) {
  if (mark.kind == MarkKind::Final) return;  // the engine sends it, when this source has finished
  if (mark.kind == MarkKind::Flush) marks_.note(mark.value);
  if (mark.kind != MarkKind::Watermark) {
    context->mark(mark);
    return;
  }
  // Of several streams the slowest counts.
  arm.watermark = mark.value;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  {
    const std::lock_guard guard(mutex_);
    for (const Arm& other : arms_) {
      if (other.stage == Stage::Ended) continue;
      if (!other.watermark.has_value()) return;
      lowest = std::min(lowest, *other.watermark);
    }
  }
  const bool was_idle = std::exchange(idle_, false);
  if (watermark_.has_value() && lowest <= *watermark_ && !was_idle) return;
  watermark_ = std::max(watermark_.value_or(lowest), lowest);
  context->mark({MarkKind::Watermark, *watermark_});
}

OperatorSpec make_gather(std::shared_ptr<Gather> gather) {
  OperatorSpec spec;
  spec.name = gather->name();
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* state, rel_context* context) -> std::int64_t {
    try {
      return static_cast<Gather*>(state)->process(static_cast<std::byte*>(out), static_cast<std::size_t>(capacity), context);
    } catch (const std::exception& error) {
      context->fail(std::string("gather: ") + error.what());
      return REL_FAILED(0);
    }
  };
  spec.flags = REL_SOURCE;
  spec.interrupt = [](void* state) { static_cast<Gather*>(state)->interrupt(); };
  spec.output = gather->schema();
  spec.state = std::move(gather);
  spec.model = ThreadingModel::Dedicated;
  return spec;
}

OperatorSpec make_tap(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Tap> tap) {
  OperatorSpec spec;
  spec.name = std::move(name);
  const std::size_t stride = schema->record_size();
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context*) -> std::int64_t {
    auto& [self, size] = *static_cast<std::pair<std::shared_ptr<Tap>, std::size_t>*>(state);
    if (n == 0) {
      self->marks.close();
      for (const auto& gather : self->gathers) gather->end_local();
    } else if (in != out) {
      std::memcpy(out, in, static_cast<std::size_t>(n) * size);
    }
    return n;
  };
  spec.marked = [](void* state, Mark mark, rel_context*) {
    if (mark.kind == MarkKind::Flush) static_cast<std::pair<std::shared_ptr<Tap>, std::size_t>*>(state)->first->marks.note(mark.value);
    return true;
  };
  spec.flags = REL_ONE_TO_ONE | REL_FILTER | REL_IN_PLACE | REL_ON_FINISH;
  spec.tells_others = true;
  spec.input = schema;
  spec.output = std::move(schema);
  spec.state = std::make_shared<std::pair<std::shared_ptr<Tap>, std::size_t>>(std::move(tap), stride);
  return spec;
}

}  // namespace rayelastic
