#include "rayelastic/net/gather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

Gather::Gather(std::shared_ptr<const Schema> schema, GatherOptions options)
    : schema_(std::move(schema)), options_(std::move(options)), pieces_(schema_->record_size()) {}

Gather::~Gather() {
  interrupt();
  for (const auto& arm : arms_.all()) arm->thread.join();
}

bool Gather::add(std::shared_ptr<Link> link) {
  const Lock guard(mutex_);
  if (ended_ || stopping_) return false;
  link->open_in(schema_);
  Arm& arm = arms_.add(std::move(link));
  arm.thread = std::thread([this, &arm] { receive(arm); });
  return true;
}

void Gather::end_local() {
  const Lock guard(mutex_);
  RE_CHECK(local_ended_ < options_.local_ends);
  ++local_ended_;
  arrived_.notify_all();
}

void Gather::seal() {
  const Lock guard(mutex_);
  sealed_ = true;
  arrived_.notify_all();
}

std::vector<std::string> Gather::lost() const {
  const Lock guard(mutex_);
  return lost_;
}

void Gather::interrupt() noexcept {
  const Lock guard(mutex_);
  stopping_ = true;
  for (const auto& arm : arms_.all()) arm->link->interrupt();
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
    Lock lock(mutex_);
    if (!problem.empty()) lost_.push_back(problem);
    arms_.arrive(arm, outcome != Link::Outcome::Ok);
    arrived_.notify_all();
    taken_.wait(lock, [&]() REL_HELD(mutex_) { return arm.stage != Arm::Stage::Arrived || stopping_; });
    if (arm.stage == Arm::Stage::Ended || stopping_) return;
  }
}

std::int64_t Gather::process(std::byte* out, std::size_t capacity, rel_context* context) {
  Lock lock(mutex_);
  Arm* found = nullptr;
  for (;;) {
    if (stopping_) return REL_STOPPED;
    if (!options_.tolerant && !lost_.empty()) {
      context->fail(lost_.front());
      return REL_FAILED(0);
    }
    arms_.remove_ended(turns_.current());
    for (std::size_t tried = 0; found == nullptr && tried < arms_.size(); ++tried) {
      Arm& arm = arms_.next();
      if (arm.stage == Arm::Stage::Arrived && is_due(arm)) found = &arm;
    }
    if (found != nullptr) break;
    if (is_due_locally()) {
      LocalPieces::Piece piece = pieces_.take();
      taken_.notify_all();
      lock.unlock();
      const std::int64_t left = pass_local(std::move(piece), context);
      lock.lock();
      pieces_.pass();
      return left;
    }
    const bool links_ended = arms_.have_ended();
    if (links_ended && pieces_.empty() && local_ended_ == options_.local_ends && (sealed_ || arms_.had_any() || options_.local_ends > 0)) {
      ended_ = true;
      marks_.close();
      lock.unlock();
      if (options_.end_mark != 0) context->mark({MarkKind::Flush, options_.end_mark});
      context->finish();
      return 0;
    }
    if (links_ended && !local_.watermark.has_value() && watermark_.become_idle()) {  // as long as there is no link nothing comes from here
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
  RE_CHECK(found->stage == Arm::Stage::Arrived);
  found->stage = Arm::Stage::Receiving;
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
  if (options_.in_turn && mark.kind == MarkKind::Turn) {
    if (options_.any_order) return;
    const Lock guard(mutex_);
    turns_.pass(arm, mark.value);
    return;
  }
  if (mark.kind == MarkKind::Barrier) {
    const Lock guard(mutex_);
    if (mark.value <= epoch_) return;
    epoch_ = mark.value;
  }
  if (mark.kind == MarkKind::Flush) marks_.note(mark.value);
  if (mark.kind != MarkKind::Watermark) {
    context->mark(mark);
    return;
  }
  // Of several streams the slowest counts.
  RE_CHECK(mark.kind == MarkKind::Watermark);
  arm.watermark = mark.value;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  {
    const Lock guard(mutex_);
    for (const auto& other : arms_.all()) {
      if (other->stage == Arm::Stage::Ended) continue;
      if (!other->watermark.has_value()) return;
      lowest = std::min(lowest, *other->watermark);
    }
    if (local_.watermark.has_value() && local_ended_ == 0) lowest = std::min(lowest, *local_.watermark);
  }
  const std::optional<std::int64_t> passed = watermark_.advance(lowest);
  if (!passed.has_value()) return;
  context->mark({MarkKind::Watermark, *passed});
  watermark_.publish();
}

// --- in turn

bool Gather::is_due(const Arm& arm, bool records, Mark mark) const noexcept {
  if (!records && mark.kind == MarkKind::Barrier) return mark.value <= epoch_ || is_aligned(mark.value);
  if (!options_.in_turn || options_.any_order) return true;
  if (records || mark.kind == MarkKind::Split) return turns_.is_turn_of(arm);
  return mark.kind != MarkKind::Turn || turns_.is_due(arm, mark.value);
}

bool Gather::is_due(const Arm& arm) const noexcept {
  const bool records = arm.received.header.kind == FrameKind::Records;
  return is_due(arm, records, records ? Mark{} : arm.received.mark());
}

bool Gather::is_due_locally() const noexcept {
  return !pieces_.empty() && is_due(local_, pieces_.front().records != nullptr, pieces_.front().mark);
}

// Who has ended counts as one by whom it has come.
bool Gather::is_aligned(std::int64_t epoch) const noexcept {
  const auto has_come = [epoch](Mark mark) { return mark.kind == MarkKind::Barrier && mark.value == epoch; };
  for (const auto& arm : arms_.all()) {
    if (arm->stage == Arm::Stage::Ended) continue;
    if (arm->stage != Arm::Stage::Arrived || arm->received.header.kind != FrameKind::Mark || !has_come(arm->received.mark())) return false;
  }
  if (!pieces_.empty()) return pieces_.front().records == nullptr && has_come(pieces_.front().mark);
  return local_ended_ == options_.local_ends;
}

void Gather::abandon_epochs(std::int64_t epoch) {
  const Lock guard(mutex_);
  epoch_ = std::max(epoch_, epoch);
  arrived_.notify_all();
}

bool Gather::put(const Run& run) {
  Lock lock(mutex_);
  taken_.wait(lock, [this]() REL_HELD(mutex_) { return !pieces_.is_full() || stopping_; });
  if (stopping_) return false;
  pieces_.put(run);
  arrived_.notify_all();
  return true;
}

bool Gather::put(Mark mark) {
  const Lock guard(mutex_);
  pieces_.put(mark);
  arrived_.notify_all();
  return !stopping_;
}

std::pair<std::uint64_t, std::uint64_t> Gather::flow() const {
  const Lock guard(mutex_);
  return pieces_.flow();
}

std::int64_t Gather::pass_local(LocalPieces::Piece piece, rel_context* context) {
  if (piece.records == nullptr) {
    pass(local_, piece.mark, context);
    return 0;
  }
  while (!piece.records->empty()) {
    const Run run = piece.records->front(piece.records->size());
    std::vector<Chunk*> chunks;
    piece.records->chunks_of(run.count, chunks);
    for (Chunk* chunk : chunks) context->attach(chunk);
    if (!context->emit(0, run.records, static_cast<std::int64_t>(run.count))) return REL_STOPPED;
    RE_CHECK(run.count > 0);
    piece.records->pop(run.count);
  }
  return 0;
}

namespace {

class GatherOperator final : public Operator {
 public:
  explicit GatherOperator(std::shared_ptr<Gather> gather)
      : Operator(gather->name(), {}, {gather->schema()}, REL_SOURCE), gather_(std::move(gather)) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    return gather_->process(out, static_cast<std::size_t>(capacity), context);
  }
  void interrupt() override { gather_->interrupt(); }

 private:
  const std::shared_ptr<Gather> gather_;
};

class TapOperator final : public Operator {
 public:
  TapOperator(std::string name, const std::shared_ptr<const Schema>& schema, std::shared_ptr<Tap> tap)
      : Operator(std::move(name), {schema}, {schema}, REL_ONE_TO_ONE | REL_FILTER | REL_IN_PLACE | REL_ON_FINISH),
        tap_(std::move(tap)),
        stride_(schema->record_size()) {
    tap_->bypass.open.store(!tap_->turning, std::memory_order_relaxed);
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t, rel_context* context) override {
    const auto count = static_cast<std::size_t>(n);
    if (tap_->turning) {
      fall_silent(context);
      return tap_->in_turn->put({in, count, stride_, context->input_chunks()}) ? 0 : REL_STOPPED;
    }
    if (in != out) std::memcpy(out, in, count * stride_);
    return n;
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context*) override {
    tap_->marks.close();
    for (const auto& gather : tap_->gathers) gather->end_local();
    return 0;
  }
  bool on_barrier(std::int64_t checkpoint, rel_context*) override {
    for (const auto& gather : tap_->gathers) (void)gather->put(Mark{MarkKind::Barrier, checkpoint});
    return true;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    if (mark.kind == MarkKind::Flush) tap_->marks.note(mark.value);
    if (mark.kind == MarkKind::Flush && mark.value >= kFirstEndMark) return false;  // of an edge into this region
    if (tap_->in_turn == nullptr) return true;
    if (!tap_->turning && mark.kind == MarkKind::Turn) {
      tap_->turning = true;
      tap_->bypass.open.store(false, std::memory_order_relaxed);
      if (tap_->watermark.has_value()) (void)tap_->in_turn->put(*tap_->watermark);
    }
    if (!tap_->turning) {
      if (mark.kind == MarkKind::Watermark) tap_->watermark = mark;
      return true;
    }
    fall_silent(context);
    (void)tap_->in_turn->put(mark);
    return false;
  }
  [[nodiscard]] bool announces_end() const override { return true; }
  [[nodiscard]] Bypass* bypass() override { return &tap_->bypass; }

 private:
  // What the tap itself has passed on keeps nobody waiting any more, once the gather has passed on what is as late.
  void fall_silent(rel_context* context) {
    if (tap_->silent || !tap_->in_turn->speaks()) return;
    tap_->silent = true;
    context->mark({MarkKind::Watermark, kIdle});
  }

  const std::shared_ptr<Tap> tap_;
  const std::size_t stride_;
};

}  // namespace

std::shared_ptr<Operator> make_gather(std::shared_ptr<Gather> gather) { return std::make_shared<GatherOperator>(std::move(gather)); }

std::shared_ptr<Operator> make_tap(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Tap> tap) {
  return std::make_shared<TapOperator>(std::move(name), schema, std::move(tap));
}

}  // namespace rayelastic
