// What a router does with records and marks; its commands are in router_commands.cpp.
#include "rayelastic/net/router.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::milliseconds kLongestWait{1000};  // of a run: commands for others may need this thread

}  // namespace

Router::Router(std::shared_ptr<const Schema> schema, RouterOptions options)
    : schema_(std::move(schema)),
      owners_(std::move(options.owners)),
      options_(std::move(options)),
      keys_(schema_, options_.keys),
      held_(schema_->record_size()) {
  const auto refuse = [this](const std::string& why) { throw std::invalid_argument("router '" + options_.name + "': " + why); };
  if (owners_.size() == 0 || owners_.size() >= kHeld) refuse("it needs the owners of 1 to 65534 partitions");
  for (std::size_t port = 0; port < options_.locals.size(); ++port) {
    const std::uint16_t number = options_.locals[port];
    if (number == kHeld) refuse("65535 is no target");
    if (targets_.size() <= number) targets_.resize(number + std::size_t{1});
    if (targets_[number].known) refuse("a target has two output ports");
    targets_[number].known = true;
    targets_[number].port = static_cast<std::int32_t>(port);
  }
  for (const std::uint16_t owner : owners_.all()) {
    if (owner == kHeld) refuse("a partition without owner");
    if (owner < targets_.size()) targets_[owner].fed = true;
  }
  if (options_.in_turn && options_.everywhere) refuse("it can't send everywhere and in turn");
  open_bypass();
  publish();
}

Router::~Router() { interrupt(); }

void Router::interrupt() noexcept {
  const Lock guard(mutex_);
  stopping_.store(true);
  links_.interrupt();
  changed_.notify_all();
}

void Router::hold_partitions(const std::vector<std::uint16_t>& partitions) {
  if (!owners_.is_any_held() && !partitions.empty()) held_.begin();
  owners_.assign(partitions, kHeld);
}

void Router::hold_back(const Run& run) {
  held_.add(run);
  publish();
}

std::int64_t Router::process(const std::byte* in, std::int64_t n, std::byte* out, rel_context* context) {
  if (posted_.load(std::memory_order_relaxed) && !carry_out(context)) return REL_STOPPED;
  if (in == nullptr) return finish(context) ? 0 : REL_STOPPED;
  RE_CHECK(n > 0 && !ended_);
  const auto count = static_cast<std::size_t>(n);
  const auto unseen = static_cast<std::size_t>(std::exchange(bypass_.records, 0));
  if (!owners_.is_any_held()) held_.watch(count + unseen, unseen > 0 ? Bypass::kSeen : 1);
  if (!options_.keys.empty() && goes_by_keys()) look_at_keys({in, count, schema_->record_size(), {}});
  if (passes_on()) {
    if (out != in) std::memcpy(out, in, count * schema_->record_size());
    return n;
  }
  if (!scatter({in, count, schema_->record_size(), context->input_chunks()}, context)) return REL_STOPPED;
  while (held_.bytes() > options_.hold_bytes) {
    ++waits_;
    publish();
    if (!wait_for_command(context)) return REL_STOPPED;
  }
  return keep_pace(context) ? 0 : REL_STOPPED;
}

// What is held may be as much as came before in the time that it has been held.
bool Router::keep_pace(rel_context* context) {
  for (std::chrono::milliseconds waited{0}; held_.are_too_many() && waited < kLongestWait; waited += HeldRecords::kStep) {
    if (!wait_for_command(context, HeldRecords::kStep)) return false;
    held_.allow_more();
  }
  return true;
}

void Router::look_at_keys(const Run& run) {
  if (!keys_.sample(run)) return;
  std::optional<HotKey> found = keys_.hottest();
  const Lock guard(mutex_);
  hottest_ = std::move(found);
}

// Each record to the target of its partition, or among those that wait.
bool Router::scatter(const Run& run, rel_context* context) {
  if (options_.in_turn) return deal(run, context);
  if (options_.everywhere) return send_everywhere(run, context);
  const std::size_t stride = schema_->record_size();
  for (std::size_t first = 0; first < run.count; first += RoutedKeys::kBatch) {
    const std::size_t count = std::min(RoutedKeys::kBatch, run.count - first);
    const std::byte* records = run.records + first * stride;
    const std::span<const StringView> keys = keys_.extract(records, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t owner = owners_.of_hash(hash_of(keys[i]));
      RE_CHECK(owner == kHeld || owner < targets_.size());
      Target& target = owner == kHeld ? waiting_ : targets_[owner];
      target.part.insert(target.part.end(), records + i * stride, records + (i + 1) * stride);
      ++target.records;
    }
  }
  RE_ASSERT(std::accumulate(targets_.begin(), targets_.end(), waiting_.records,
                            [](std::size_t records, const Target& target) { return records + target.records; }) == run.count);
  for (std::size_t number = 0; number < targets_.size(); ++number) {
    if (targets_[number].records > 0 && !send(targets_[number], static_cast<std::uint16_t>(number), context)) return false;
  }
  if (waiting_.records > 0) {
    RE_CHECK(waiting_.part.size() == waiting_.records * stride && owners_.is_any_held());
    hold_back({waiting_.part.data(), waiting_.records, stride, run.chunks});
    waiting_.part.clear();
    waiting_.records = 0;
  }
  return true;
}

// Everything goes one way, and on in the thread that runs it.
bool Router::passes_on() const noexcept {
  const std::uint16_t sole = owners_.sole();
  return sole != kHeld && targets_.size() > sole && targets_[sole].port == 0 && turns_ == 0 && !(options_.everywhere && feeds_several());
}

void Router::open_bypass() noexcept {
  const bool looks = !options_.keys.empty() && goes_by_keys();
  bypass_.open.store(!looks && passes_on(), std::memory_order_relaxed);
}

bool Router::feeds_several() const noexcept { return std::ranges::count(targets_, true, &Target::fed) > 1; }

bool Router::send_everywhere(const Run& run, rel_context* context) {
  if (owners_.is_any_held()) {
    hold_back(run);
    return true;
  }
  for (std::size_t number = 0; number < targets_.size(); ++number) {
    Target& target = targets_[number];
    if (!target.fed || target.broken) continue;
    target.part.assign(run.records, run.records + run.count * schema_->record_size());
    target.records = run.count;
    if (!send(target, static_cast<std::uint16_t>(number), context)) return false;
  }
  return true;
}

bool Router::send(Target& target, std::uint16_t number, rel_context* context) {
  RE_CHECK(target.part.size() == target.records * schema_->record_size());
  RE_CHECK(target.port >= 0 || target.broken || target.link != nullptr);
  bool ok = true;
  if (target.port >= 0) {
    ok = context->emit(target.port, target.part.data(), static_cast<std::int64_t>(target.records));
  } else {
    const Link::Outcome outcome = target.broken ? Link::Outcome::Failed : target.link->send(target.part.data(), target.records);
    ok = outcome != Link::Outcome::Stopped;
    if (outcome == Link::Outcome::Failed) {
      // What the link has taken is lost with whoever was behind it; these wait for somebody else. A frame may have taken some of them.
      break_target(number);
      if (!options_.everywhere) {
        waiting_.part.insert(waiting_.part.end(), target.part.begin(), target.part.end());
        waiting_.records += target.records;
      }
    }
  }
  target.part.clear();
  target.records = 0;
  return ok;
}

// Its keys wait until the coordinator says where they are to go.
void Router::break_target(std::uint16_t number) {
  RE_CHECK(number < targets_.size() && targets_[number].port < 0);
  targets_[number].broken = true;
  hold_partitions(owners_.partitions_of(number));
  publish();
}

bool Router::send_to_links(Mark mark) {
  for (std::size_t number = 0; number < targets_.size(); ++number) {
    const Target& target = targets_[number];
    if (target.link == nullptr || target.broken) continue;
    const Link::Outcome outcome = target.link->send(mark);
    if (outcome == Link::Outcome::Stopped) return false;
    if (outcome == Link::Outcome::Failed) break_target(static_cast<std::uint16_t>(number));
  }
  return true;
}

// A Time mark goes to one target, the next one to another. True: it is in this PE, and the mark goes on.
bool Router::send_one_way(Mark mark) {
  for (std::size_t tried = 0; tried < targets_.size(); ++tried) {
    const std::size_t number = turn_++ % targets_.size();
    const Target& target = targets_[number];
    if (target.port >= 0) return true;
    if (target.link == nullptr || target.broken) continue;
    if (target.link->send(mark) == Link::Outcome::Failed) break_target(static_cast<std::uint16_t>(number));
    return false;
  }
  return false;
}

bool Router::marked(Mark mark, rel_context* context) {
  // A target that is to be attached wants this mark, too: it mustn't wait for the first record to hear of a watermark.
  if (posted_.load(std::memory_order_relaxed) && mark.kind != MarkKind::Command && !carry_out(context)) return false;
  if (mark.kind == MarkKind::Time) return send_one_way(mark);
  if (mark.kind == MarkKind::Split && options_.in_turn) {
    deal(mark, context);
    return false;
  }
  if (mark.kind == MarkKind::Command) {
    (void)carry_out(context);
    return false;
  }
  if (mark.kind == MarkKind::Barrier && owners_.is_any_held())
    return false;  // it mustn't overtake what is held: nothing is saved this time
  if (mark.kind == MarkKind::Watermark && !watermark_.arrive(mark, owners_.is_any_held())) return false;
  return send_to_links(mark);
}

bool Router::finish(rel_context* context) {
  ended_ = true;
  while (!closing_) {
    publish();
    if (owners_.is_any_held() ? !wait_for_command(context) : !carry_out(context)) return false;
    const Lock guard(mutex_);
    closing_ = !owners_.is_any_held() && commands_.empty();
  }
  RE_CHECK(held_.size() == 0);
  publish();
  if (!say_goodbyes()) return false;
  if (options_.end_mark != 0 && !options_.locals.empty()) context->mark({MarkKind::Flush, options_.end_mark});
  const Lock guard(mutex_);
  RE_CHECK(closing_);
  while (!commands_.empty()) {
    Command command = commands_.take();
    if (command.link != nullptr) links_.say_goodbye(std::move(command.link));
    commands_.answer(Answer::Ended);
  }
  commands_.close();
  changed_.notify_all();
  return true;
}

// False: stop. A failure now is the other side's to tell.
bool Router::say_goodbyes() {
  return std::ranges::all_of(targets_, [](const Target& target) {
    return target.link == nullptr || target.broken || target.link->finish() != Link::Outcome::Stopped;
  });
}

namespace {

class RouterOperator final : public Operator {
 public:
  explicit RouterOperator(std::shared_ptr<Router> router)
      : Operator(router->name(), {router->schema()}, Schemas(router->local_count(), router->schema()),
                 REL_ON_FINISH | (router->local_count() == 0 ? REL_SINK : REL_IN_PLACE)),
        router_(std::move(router)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t, rel_context* context) override {
    return router_->process(in, n, out, context);
  }
  bool on_mark(Mark mark, rel_context* context) override { return router_->marked(mark, context); }
  void on_command(rel_context* context) override { (void)router_->marked({MarkKind::Command}, context); }
  void interrupt() override { router_->interrupt(); }
  [[nodiscard]] bool takes_commands() const override { return true; }
  [[nodiscard]] bool announces_end() const override { return true; }
  [[nodiscard]] Bypass* bypass() override { return &router_->bypass(); }

 private:
  const std::shared_ptr<Router> router_;
};

}  // namespace

std::shared_ptr<Operator> make_router(std::shared_ptr<Router> router) { return std::make_shared<RouterOperator>(std::move(router)); }

}  // namespace rayelastic
