#include "checker/choices.hpp"

#include <bit>

namespace rayelastic::model {

namespace {

constexpr Threads bit(int thread) { return static_cast<Threads>(1U << thread); }
int lowest(Threads threads) { return std::countr_zero(threads); }

}  // namespace

void Exhaustive::begin() {
  depth_ = 0;
  asleep_ = 0;
  preemptions_ = 0;
  stale_ = 0;
}

bool Exhaustive::next() {
  while (!path_.empty()) {
    Node& last = path_.back();
    if (last.of_threads && last.left != 0) {
      last.seen |= bit(last.chosen);
      last.chosen = static_cast<std::uint8_t>(lowest(last.left));
      last.left &= static_cast<Threads>(~bit(last.chosen));
      return true;
    }
    if (!last.of_threads && last.chosen + 1 < last.count) {
      ++last.chosen;
      return true;
    }
    path_.pop_back();
  }
  return false;
}

int Exhaustive::thread(Threads able, int running) {
  const bool reduce = bounds_.preemptions == Bounds::kUnbounded;
  Threads open = able;
  if (reduce) open &= static_cast<Threads>(~asleep_);
  if (!reduce && running >= 0 && preemptions_ == bounds_.preemptions) open = bit(running);
  if (open == 0) return kRedundant;
  int chosen = lowest(open);
  if (std::has_single_bit(open)) {
    // Nothing to choose, nothing to remember.
  } else if (depth_ < path_.size()) {
    const Node& node = path_[depth_++];
    asleep_ = node.asleep | node.seen;
    chosen = node.chosen;
  } else {
    if (running >= 0 && (open & bit(running)) != 0) chosen = running;
    path_.push_back({.of_threads = true,
                     .chosen = static_cast<std::uint8_t>(chosen),
                     .left = static_cast<Threads>(open & ~bit(chosen)),
                     .asleep = asleep_});
    ++depth_;
  }
  if (running >= 0 && chosen != running) ++preemptions_;
  return chosen;
}

unsigned Exhaustive::store(unsigned count) {
  if (stale_ == bounds_.stale) return 0;
  const unsigned chosen = any(count);
  if (chosen > 0) ++stale_;
  return chosen;
}

unsigned Exhaustive::any(unsigned count) {
  if (count == 1) return 0;
  if (depth_ == path_.size()) path_.push_back({.count = static_cast<std::uint8_t>(count)});
  return path_[depth_++].chosen;
}

void Exhaustive::done(int thread, const Step& step, const Steps& next) {
  for (int other = 0; asleep_ >> other != 0; ++other) {
    if (other != thread && depends(step, next[static_cast<std::size_t>(other)])) asleep_ &= static_cast<Threads>(~bit(other));
  }
}

void Random::begin(std::uint64_t seed) {
  state_ = seed * 0x9E3779B97F4A7C15U + 0x632BE59BD9B4E019U;
  constexpr std::uint32_t kSwitch[] = {1, 3, 8, 12};
  constexpr std::uint32_t kStale[] = {0, 2, 5, 10};
  switch_in_16_ = kSwitch[roll(4)];
  stale_in_16_ = kStale[roll(4)];
}

// splitmix64
std::uint32_t Random::roll(std::uint32_t sides) {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return static_cast<std::uint32_t>(((mixed >> 32) * sides) >> 32);
}

int Random::thread(Threads able, int running) {
  if (std::has_single_bit(able)) return lowest(able);
  if (running >= 0 && roll(16) >= switch_in_16_) return running;
  std::uint32_t index = roll(static_cast<std::uint32_t>(std::popcount(able)));
  while (index-- > 0) able &= static_cast<Threads>(able - 1);
  return lowest(able);
}

unsigned Random::store(unsigned count) { return count > 1 && roll(16) < stale_in_16_ ? 1 + roll(count - 1) : 0; }

unsigned Random::any(unsigned count) { return count > 1 ? roll(count) : 0; }

}  // namespace rayelastic::model
